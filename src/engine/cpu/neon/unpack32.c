/* NEON's unpacking of tiles of blocks of 32, out of line: shared by dot32.c's panels and its skinny
 * GEMM. */
#include "engine/cpu/neon/unpack32.h"

void ak_neon_unpack_tile32(enum ak_quant_type type, const uint8_t *restrict tile, size_t blocks,
                           struct ak_neon_micropanel32 *restrict lower,
                           struct ak_neon_micropanel32 *restrict upper)
{
    ak_neon_unpack_any32(type, false, tile, blocks, lower, upper);
}
