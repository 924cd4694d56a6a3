#include "cpu/neon/panel.h"
#include "cpu/neon/tile32.h"

/* Four rows (register g of the tile's lines) of one block. */
AK_KERNEL void open_rows(enum ak_type type, const struct ak_neon_tile32 *t, size_t b, size_t g, struct ak_neon_panel32 *panel)
{
    int8x16_t w[8];
    ak_neon_quants32(type, t, b, g, w);
    size_t at = g % 2 * 4; /* first of the four rows in the panel */
#pragma GCC unroll 8
    for (size_t i = 0; i < 8; i++)
        vst1q_s8(panel->q[i] + at * 4, type == AK_Q4_0 ? vsubq_s8(w[i], vdupq_n_s8(8)) : w[i]);
    vst1q_f32(panel->scale + at, ak_neon_load_f16(t->scales + b * 32 + g * 8));
    vst1q_f32(panel->min + at, type == AK_Q4_1 ? ak_neon_load_f16(t->mins + b * 32 + g * 8) : vdupq_n_f32(0.0f));
}

AK_KERNEL void open_tile(enum ak_type type, const uint8_t *tile, size_t blocks, struct ak_neon_panel32 *lower,
                         struct ak_neon_panel32 *upper)
{
    struct ak_neon_tile32 t = ak_neon_tile32(type, tile, blocks);
    for (size_t b = 0; b < blocks; b++) {
#pragma GCC unroll 4
        for (size_t g = 0; g < AK_NEON_GROUPS; g++)
            open_rows(type, &t, b, g, g < 2 ? lower + b : upper + b);
    }
}

void ak_neon_open_tile32(enum ak_type type, const uint8_t *restrict tile, size_t blocks, struct ak_neon_panel32 *restrict lower,
                         struct ak_neon_panel32 *restrict upper)
{
    switch (type) {
    case AK_Q4_0: open_tile(AK_Q4_0, tile, blocks, lower, upper); break;
    case AK_Q4_1: open_tile(AK_Q4_1, tile, blocks, lower, upper); break;
    case AK_Q5_0: open_tile(AK_Q5_0, tile, blocks, lower, upper); break;
    default: open_tile(AK_Q8_0, tile, blocks, lower, upper); break;
    }
}
