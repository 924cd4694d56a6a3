#include "cpu/neon/open256.h"

void ak_neon_open_tile256(enum ak_quant_type type, const uint8_t *restrict tile,
                          struct ak_neon_panel256 *restrict lower,
                          struct ak_neon_panel256 *restrict upper)
{
    ak_neon_open_any256(type, false, tile, lower, upper);
}
