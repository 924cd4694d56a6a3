/* NEON's unpacking of 256-element tiles, out of line: shared by dot256.c's panels and its skinny
 * GEMM. */
#include "engine/cpu/neon/unpack256.h"

void ak_neon_unpack_tile256(enum ak_quant_type type, const uint8_t *restrict tile,
                            struct ak_neon_micropanel256 *restrict lower,
                            struct ak_neon_micropanel256 *restrict upper)
{
    ak_neon_unpack_any256(type, false, tile, lower, upper);
}
