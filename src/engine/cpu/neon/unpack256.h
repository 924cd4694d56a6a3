/* Unpacks tiles of types with blocks of 256 into micropanels, four rows (register g of each line)
 * at a time. */
#ifndef AK_ENGINE_CPU_NEON_UNPACK256_H
#define AK_ENGINE_CPU_NEON_UNPACK256_H

#include "engine/cpu/neon/micropanel.h"
#include "engine/cpu/neon/tile256.h"

AK_KERNEL void ak_neon_store_super_scales(const uint8_t *tile, size_t g,
                                          struct ak_neon_micropanel256 *panel)
{
    float32x4_t min, scale = ak_neon_load_super_scales(tile, g, &min);
    vst1q_f32(panel->scale + g % 2 * 4, scale);
    vst1q_f32(panel->min + g % 2 * 4, vnegq_f32(min));
}

/* Destination of the rows' part of line 4s of block 4h. The other lines are at constant distances;
 * without the barrier gcc would compute each address separately. */
AK_KERNEL int8_t *ak_neon_part_lines(bool paired, struct ak_neon_micropanel256 *panel, size_t h,
                                     size_t s, size_t g)
{
    int8_t *lines = (int8_t *)(panel->block + 4 * h) + s * sizeof panel->block[0].q / 2 +
                    g % 2 * (paired ? 32 : 16);
    __asm__("" : "+r"(lines));
    return lines;
}

AK_KERNEL void ak_neon_unpack_rows_q2_k(bool paired, const uint8_t *tile, size_t g,
                                        struct ak_neon_micropanel256 *panel)
{
    uint8x16_t scales[4];
    int8x16_t mins[4];
    ak_neon_store_super_scales(tile, g, panel);
    ak_neon_scales_q2_k(tile, g, scales, mins);
    ak_neon_store_lines(paired, panel->mins[0], g, mins[0], mins[1]);
    ak_neon_store_lines(paired, panel->mins[2], g, mins[2], mins[3]);
    for (size_t part = 0; part < 4; part++) {
        size_t h = part / 2, s = part % 2;
        int8_t *lines = ak_neon_part_lines(paired, panel, h, s, g);
        int8x16_t w[4][4];
        ak_neon_quants_q2_k(tile, h, s, g, w);
#pragma GCC unroll 4
        for (size_t i = 0; i < 4; i++) {
            w[1][i] = vreinterpretq_s8_u8(vshrq_n_u8(vreinterpretq_u8_s8(w[1][i]), 2));
            w[2][i] = vreinterpretq_s8_u8(vshrq_n_u8(vreinterpretq_u8_s8(w[2][i]), 4));
        }
#pragma GCC unroll 4
        for (size_t q = 0; q < 4; q++) {
            int8x16_t scale =
                vreinterpretq_s8_u8(ak_neon_broadcast_byte(scales[2 * h + q / 2], q % 2 * 2 + s));
#pragma GCC unroll 2
            for (size_t i = 0; i < 4; i += 2)
                ak_neon_store_lines(paired, lines + q * sizeof panel->block[0] + i * 32, 0,
                                    vmulq_s8(w[q][i], scale), vmulq_s8(w[q][i + 1], scale));
        }
    }
}

AK_KERNEL void ak_neon_unpack_rows_q3_k(bool paired, const uint8_t *tile, size_t g,
                                        struct ak_neon_micropanel256 *panel)
{
    int8x16_t scales[4];
    ak_neon_scales_q3_k(tile, g, scales);
    vst1q_f32(panel->scale + g % 2 * 4, ak_neon_load_f16(tile + g * 8));
    for (size_t i = 0; i < 8; i += 2) {
        int8x16_t w[2][8];
        ak_neon_three_bits(tile + AK_Q3_K_QUANTS_AT, i, g, w[0]);
        ak_neon_three_bits(tile + AK_Q3_K_QUANTS_AT, i + 1, g, w[1]);
#pragma GCC unroll 8
        for (size_t j = 0; j < 8; j++) {
            uint8x16_t scale_bytes =
                ak_neon_broadcast_byte(vreinterpretq_u8_s8(scales[j / 2]), j % 2 * 2 + i / 4);
            int8x16_t minus = vnegq_s8(vreinterpretq_s8_u8(scale_bytes));
#pragma GCC unroll 2
            for (size_t line = 0; line < 2; line++) {
                if (j == 1 || j == 3 || j == 5)
                    w[line][j] = vshrq_n_s8(w[line][j], 3);
                w[line][j] = vmulq_s8(vsubq_s8(w[line][j], vdupq_n_s8(4)), minus);
            }
            ak_neon_store_lines(paired, panel->block[j].q[i], g, w[0][j], w[1][j]);
        }
    }
}

AK_KERNEL void ak_neon_unpack_rows_q45_k(enum ak_quant_type type, bool paired, const uint8_t *tile,
                                         size_t g, struct ak_neon_micropanel256 *panel)
{
    uint8x16_t scales[2];
    int8x16_t mins[2];
    ak_neon_store_super_scales(tile, g, panel);
    ak_neon_scales_q45_k(tile, g, scales, mins);
    ak_neon_store_lines(paired, panel->mins[0], g, mins[0], mins[1]);
#pragma GCC unroll 4
    for (size_t c = 0; c < 4; c++) {
        int8x16_t low[8], high[8];
        ak_neon_quants_q45_k(type, tile, c, g, low, high);
#pragma GCC unroll 8
        for (size_t i = 0; i < 8; i++) {
            low[i] = type == AK_QUANT_Q5_K ? vaddq_s8(low[i], vdupq_n_s8(16)) : low[i];
            high[i] = type == AK_QUANT_Q5_K ? vaddq_s8(high[i], vdupq_n_s8(16)) : high[i];
        }
        ak_neon_store_scales(paired, panel->block[2 * c].scales, g,
                             ak_neon_byte_u8(scales[c / 2], c % 2 * 2));
        ak_neon_store_scales(paired, panel->block[2 * c + 1].scales, g,
                             ak_neon_byte_u8(scales[c / 2], c % 2 * 2 + 1));
#pragma GCC unroll 4
        for (size_t i = 0; i < 8; i += 2) {
            ak_neon_store_lines(paired, panel->block[2 * c].q[i], g, low[i], low[i + 1]);
            ak_neon_store_lines(paired, panel->block[2 * c + 1].q[i], g, high[i], high[i + 1]);
        }
    }
}

AK_KERNEL void ak_neon_unpack_rows_q6_k(bool paired, const uint8_t *tile, size_t g,
                                        struct ak_neon_micropanel256 *panel)
{
    vst1q_f32(panel->scale + g % 2 * 4, ak_neon_load_f16(tile + g * 8));
#pragma GCC unroll 4
    for (size_t i = 0; i < 4; i++) { /* scales 4i … 4i+3 belong to blocks 2i and 2i+1 */
        uint8x16_t scales = vld1q_u8(tile + AK_K_SCALES_AT + i * AK_LINE_BYTES + g * 16);
#pragma GCC unroll 4
        for (size_t j = 0; j < 4; j++)
            ak_neon_store_scales(false, panel->block[2 * i + j / 2].scales + j % 2 * 8, g,
                                 ak_neon_byte_s8(scales, j));
    }
    for (size_t part = 0; part < 4; part++) {
        size_t h = part / 2, s = part % 2;
        int8_t *lines = ak_neon_part_lines(paired, panel, h, s, g);
        int8x16_t w[4][4];
        ak_neon_quants_q6_k(tile, h, s, g, w);
#pragma GCC unroll 4
        for (size_t q = 0; q < 4; q++) {
#pragma GCC unroll 4
            for (size_t i = 0; i < 4; i++)
                w[q][i] = vsubq_s8(w[q][i], vdupq_n_s8(32));
            ak_neon_store_lines(paired, lines + q * sizeof panel->block[0], 0, w[q][0], w[q][1]);
            ak_neon_store_lines(paired, lines + q * sizeof panel->block[0] + 64, 0, w[q][2],
                                w[q][3]);
        }
    }
}

AK_KERNEL void ak_neon_unpack_rows_v3(bool paired, const uint8_t *tile, size_t g,
                                      struct ak_neon_micropanel256 *panel)
{
    uint8x16_t scales[4];
    ak_neon_scales_v3(tile, g, scales);
    vst1q_f32(panel->scale + g % 2 * 4, ak_neon_table_scales(tile, g));
#pragma GCC unroll 8
    for (size_t j = 0; j < 8; j++)
#pragma GCC unroll 2
        for (size_t s = 0; s < 2; s++)
            ak_neon_store_scales(false, panel->block[j].scales + s * 8, g,
                                 ak_neon_byte_u8(scales[j / 2], j % 2 * 2 + s));
    for (size_t i = 0; i < 8; i += 2) {
        int8x16_t w[2][8];
        ak_neon_quants_v3(tile, i, g, w[0]);
        ak_neon_quants_v3(tile, i + 1, g, w[1]);
#pragma GCC unroll 8
        for (size_t j = 0; j < 8; j++)
            ak_neon_store_lines(paired, panel->block[j].q[i], g, w[0][j], w[1][j]);
    }
}

/* IQ4_XS, V4. */
AK_KERNEL void ak_neon_unpack_rows_nibbles(enum ak_quant_type type, bool paired,
                                           const uint8_t *tile, size_t g,
                                           struct ak_neon_micropanel256 *panel)
{
    uint8x16_t scales[2];
    float32x4_t d;
    ak_neon_scales_nibbles(type, tile, g, &d, scales);
    vst1q_f32(panel->scale + g % 2 * 4, d);
    for (size_t j = 0; j < 8; j++) {
        int8x16_t w[8];
        ak_neon_quants_nibbles(type, tile, j, g, w);
        ak_neon_store_scales(paired, panel->block[j].scales, g,
                             ak_neon_nibbles_scale(type, scales, j));
#pragma GCC unroll 4
        for (size_t i = 0; i < 8; i += 2)
            ak_neon_store_lines(paired, panel->block[j].q[i], g, w[i], w[i + 1]);
    }
}

AK_KERNEL void ak_neon_unpack_any256(enum ak_quant_type type, bool paired, const uint8_t *tile,
                                     struct ak_neon_micropanel256 *lower,
                                     struct ak_neon_micropanel256 *upper)
{
    for (size_t g = 0; g < AK_NEON_GROUPS; g++) {
        struct ak_neon_micropanel256 *panel = g < 2 ? lower : upper;
        switch (type) {
        case AK_QUANT_Q2_K: ak_neon_unpack_rows_q2_k(paired, tile, g, panel); break;
        case AK_QUANT_Q3_K: ak_neon_unpack_rows_q3_k(paired, tile, g, panel); break;
        case AK_QUANT_Q4_K: ak_neon_unpack_rows_q45_k(AK_QUANT_Q4_K, paired, tile, g, panel); break;
        case AK_QUANT_Q5_K: ak_neon_unpack_rows_q45_k(AK_QUANT_Q5_K, paired, tile, g, panel); break;
        case AK_QUANT_Q6_K: ak_neon_unpack_rows_q6_k(paired, tile, g, panel); break;
        case AK_QUANT_V3: ak_neon_unpack_rows_v3(paired, tile, g, panel); break;
        case AK_QUANT_V4: ak_neon_unpack_rows_nibbles(AK_QUANT_V4, paired, tile, g, panel); break;
        default: ak_neon_unpack_rows_nibbles(AK_QUANT_IQ4_XS, paired, tile, g, panel); break;
        }
    }
}

#endif
