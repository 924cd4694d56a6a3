#include "cpu/neon/open32.h"

void ak_neon_open_tile32(enum ak_quant_type type, const uint8_t *restrict tile, size_t blocks,
                         struct ak_neon_panel32 *restrict lower,
                         struct ak_neon_panel32 *restrict upper)
{
    ak_neon_open_any32(type, false, tile, blocks, lower, upper);
}
