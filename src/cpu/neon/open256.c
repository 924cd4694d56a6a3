#include "cpu/neon/panel.h"
#include "cpu/neon/tile256.h"

static void open_q4_k(const uint8_t *tile, size_t g, struct ak_neon_panel256 *panel)
{
    size_t at = g % 2 * 4; /* first of the four rows in the panel */
    uint8x16_t scales[2];
    int8x16_t mins[2];
    float32x4_t min, scale = ak_neon_super_q4_k(tile, g, &min);
    ak_neon_scales_q4_k(tile, g, scales, mins);
    vst1q_f32(panel->scale + at, scale);
    vst1q_f32(panel->min + at, vnegq_f32(min));
    vst1q_s8(panel->mins[0] + at * 4, mins[0]);
    vst1q_s8(panel->mins[1] + at * 4, mins[1]);
#pragma GCC unroll 4
    for (size_t c = 0; c < 4; c++) {
        const uint8_t *lines = tile + AK_NEON_Q4_K_QUANTS + c * 8 * AK_LINE_BYTES + g * 16;
        vst1q_s32(panel->block[2 * c].scale[0] + at, ak_neon_byte_u8(scales[c / 2], c % 2 * 2));
        vst1q_s32(panel->block[2 * c + 1].scale[0] + at, ak_neon_byte_u8(scales[c / 2], c % 2 * 2 + 1));
#pragma GCC unroll 8
        for (size_t i = 0; i < 8; i++) {
            uint8x16_t v = vld1q_u8(lines + i * AK_LINE_BYTES);
            vst1q_s8(panel->block[2 * c].q[i] + at * 4, vreinterpretq_s8_u8(vandq_u8(v, vdupq_n_u8(15))));
            vst1q_s8(panel->block[2 * c + 1].q[i] + at * 4, vreinterpretq_s8_u8(vshrq_n_u8(v, 4)));
        }
    }
}

static void open_q6_k(const uint8_t *tile, size_t g, struct ak_neon_panel256 *panel)
{
    size_t at = g % 2 * 4;
    vst1q_f32(panel->scale + at, ak_neon_load_f16(tile + g * 8));
#pragma GCC unroll 4
    for (size_t i = 0; i < 4; i++) { /* scales 4i … 4i+3 are those of blocks 2i and 2i+1 */
        uint8x16_t scales = vld1q_u8(tile + AK_NEON_Q6_K_SCALES + i * AK_LINE_BYTES + g * 16);
#pragma GCC unroll 4
        for (size_t j = 0; j < 4; j++)
            vst1q_s32(panel->block[2 * i + j / 2].scale[j % 2] + at, ak_neon_byte_s8(scales, j));
    }
    for (size_t h = 0; h < 2; h++) {
#pragma GCC unroll 2
        for (size_t s = 0; s < 2; s++) {
            int8x16_t w[4][4];
            ak_neon_quants_q6_k(tile, h, s, g, w);
#pragma GCC unroll 4
            for (size_t q = 0; q < 4; q++)
#pragma GCC unroll 4
                for (size_t i = 0; i < 4; i++)
                    vst1q_s8(panel->block[4 * h + q].q[4 * s + i] + at * 4, w[q][i]);
        }
    }
}

void ak_neon_open_tile256(enum ak_type type, const uint8_t *restrict tile, struct ak_neon_panel256 *restrict lower,
                          struct ak_neon_panel256 *restrict upper)
{
    for (size_t g = 0; g < AK_NEON_GROUPS; g++) {
        if (type == AK_Q4_K)
            open_q4_k(tile, g, g < 2 ? lower : upper);
        else
            open_q6_k(tile, g, g < 2 ? lower : upper);
    }
}
