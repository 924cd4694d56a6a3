/* Decodes tiles of types with blocks of 256 to int8 quants and scales. */
#ifndef AK_ENGINE_CPU_NEON_TILE256_H
#define AK_ENGINE_CPU_NEON_TILE256_H

#include "engine/cpu/neon/lanes.h"
#include "engine/cpu/tile256.h"

/* ---- Scales and minimums ------------------------------------------------ */
/* Byte j of each word, zero-extended. */
AK_KERNEL int32x4_t ak_neon_byte_u8(uint8x16_t words, size_t j)
{
    static const uint8_t first[16] = { 0, 252, 252, 252, 4,  252, 252, 252,
                                       8, 252, 252, 252, 12, 252, 252, 252 };
    /* indices of 252 and above give zeros */
    uint8x16_t index = vaddq_u8(vld1q_u8(first), vdupq_n_u8((uint8_t)j));
    return vreinterpretq_s32_u8(vqtbl1q_u8(words, index));
}

AK_KERNEL int32x4_t ak_neon_byte_s8(uint8x16_t words, size_t j)
{
    static const uint8_t first[16] = { 252, 252, 252, 0, 252, 252, 252, 4,
                                       252, 252, 252, 8, 252, 252, 252, 12 };
    uint8x16_t index = vaddq_u8(vld1q_u8(first), vdupq_n_u8((uint8_t)j));
    return vshrq_n_s32(vreinterpretq_s32_u8(vqtbl1q_u8(words, index)), 24);
}

/* Byte j of each word, in all four of its bytes. */
AK_KERNEL uint8x16_t ak_neon_broadcast_byte(uint8x16_t words, size_t j)
{
    static const uint8_t first[16] = { 0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12 };
    return vqtbl1q_u8(words, vaddq_u8(vld1q_u8(first), vdupq_n_u8((uint8_t)j)));
}

/* Super-scales of four rows of Q2_K, Q4_K and Q5_K; *min is the super-scale of the minimums. */
AK_KERNEL float32x4_t ak_neon_load_super_scales(const uint8_t *tile, size_t g, float32x4_t *min)
{
    uint16x8_t both = vreinterpretq_u16_u8(vld1q_u8(tile + g * 16));
    *min = vcvt_f32_f16(vreinterpret_f16_u16(vget_low_u16(vuzp2q_u16(both, both))));
    return vcvt_f32_f16(vreinterpret_f16_u16(vget_low_u16(vuzp1q_u16(both, both))));
}

/* Q2_K, four rows: one byte per 16 k, in words of four. */
AK_KERNEL void ak_neon_scales_q2_k(const uint8_t *tile, size_t g, uint8x16_t scales[4],
                                   int8x16_t mins[4])
{
#pragma GCC unroll 4
    for (size_t i = 0; i < 4; i++) {
        uint8x16_t both = vld1q_u8(tile + AK_K_SCALES_AT + i * AK_LINE_BYTES + g * 16);
        scales[i] = vandq_u8(both, vdupq_n_u8(15));
        mins[i] = vreinterpretq_s8_u8(vshrq_n_u8(both, 4));
    }
}

/* Q3_K, four rows: one byte per 16 k, −32 … 31. */
AK_KERNEL void ak_neon_scales_q3_k(const uint8_t *tile, size_t g, int8x16_t scales[4])
{
    const uint8x16_t four = vdupq_n_u8(15), top = vdupq_n_u8(0x30);
    const uint8_t *lines = tile + AK_K_SCALES_AT + g * 16;
    uint8x16_t a = vld1q_u8(lines), b = vld1q_u8(lines + AK_LINE_BYTES),
               high = vld1q_u8(lines + 2 * AK_LINE_BYTES), u[4];
    u[0] = vbslq_u8(top, vshlq_n_u8(high, 4), vandq_u8(a, four));
    u[1] = vbslq_u8(top, vshlq_n_u8(high, 2), vandq_u8(b, four));
    u[2] = vbslq_u8(top, high, vshrq_n_u8(a, 4));
    u[3] = vbslq_u8(top, vshrq_n_u8(high, 2), vshrq_n_u8(b, 4));
#pragma GCC unroll 4
    for (size_t i = 0; i < 4; i++)
        scales[i] = vreinterpretq_s8_u8(vsubq_u8(u[i], vdupq_n_u8(32)));
}

/* Q4_K and Q5_K, four rows: 6-bit scales and minimums of blocks 0 … 3 and 4 … 7, one byte each. */
AK_KERNEL void ak_neon_scales_q45_k(const uint8_t *tile, size_t g, uint8x16_t scales[2],
                                    int8x16_t mins[2])
{
    const uint8_t *lines = tile + AK_K_SCALES_AT + g * 16;
    uint8x16_t a = vld1q_u8(lines), b = vld1q_u8(lines + AK_LINE_BYTES),
               c = vld1q_u8(lines + 2 * AK_LINE_BYTES);
    scales[0] = vandq_u8(a, vdupq_n_u8(63));
    mins[0] = vreinterpretq_s8_u8(vandq_u8(b, vdupq_n_u8(63)));
    mins[1] = vreinterpretq_s8_u8(vsliq_n_u8(vshrq_n_u8(c, 4), vshrq_n_u8(b, 6), 4));
    scales[1] = vsliq_n_u8(c, vshrq_n_u8(a, 6), 4);
}

/* IQ4_XS, four rows: −32 … 31; scales[0] of blocks 0, 2, 4, 6, scales[1] of the others. *d:
 * super-scale. */
AK_KERNEL void ak_neon_scales_iq4_xs(const uint8_t *tile, size_t g, float32x4_t *d,
                                     uint8x16_t scales[2])
{
    /* positions of the high bits */
    static const uint8_t bytes[16] = { 2, 2, 3, 3, 6, 6, 7, 7, 10, 10, 11, 11, 14, 14, 15, 15 };
    static const int8_t right[16] = { 0, -4, 0, -4, 0, -4, 0, -4, 0, -4, 0, -4, 0, -4, 0, -4 };
    uint8x16_t first = vld1q_u8(tile + g * 16), low = vld1q_u8(tile + AK_K_SCALES_AT + g * 16);
    /* two bits, the next two above them */
    uint8x16_t high = vshlq_u8(vqtbl1q_u8(first, vld1q_u8(bytes)), vld1q_s8(right));
    uint16x8_t halves = vreinterpretq_u16_u8(first);
    *d = vcvt_f32_f16(vreinterpret_f16_u16(vget_low_u16(vuzp1q_u16(halves, halves))));
    uint8x16_t even = vsliq_n_u8(low, vandq_u8(high, vdupq_n_u8(3)), 4);
    uint8x16_t odd =
        vsliq_n_u8(vshrq_n_u8(low, 4), vandq_u8(vshrq_n_u8(high, 2), vdupq_n_u8(3)), 4);
    scales[0] = vsubq_u8(even, vdupq_n_u8(32));
    scales[1] = vsubq_u8(odd, vdupq_n_u8(32));
}

/* V3, V4, four rows: factors 2 · scale + 1 of a line of eight scales, in words of four. */
AK_KERNEL void ak_neon_odd_scales(const uint8_t *line, uint8x16_t scales[2])
{
    uint8x16_t both = vld1q_u8(line), one = vdupq_n_u8(1);
    scales[0] = vorrq_u8(vshlq_n_u8(vandq_u8(both, vdupq_n_u8(15)), 1), one);
    scales[1] = vorrq_u8(vshlq_n_u8(vshrq_n_u8(both, 4), 1), one);
}

AK_KERNEL void ak_neon_scales_v3(const uint8_t *tile, size_t g, uint8x16_t scales[4])
{
    ak_neon_odd_scales(tile + AK_K_SCALES_AT + g * 16, scales);
    ak_neon_odd_scales(tile + AK_K_SCALES_AT + AK_LINE_BYTES + g * 16, scales + 2);
}

/* V3, V4: super-scales of four rows, times the factor of the table. */
AK_KERNEL float32x4_t ak_neon_table_scales(const uint8_t *tile, size_t g)
{
    return vmulq_f32(ak_neon_load_f16(tile + g * 8), vdupq_n_f32(ak_cpu_table_factor(tile)));
}

/* IQ4_XS, V4: the scales of blocks 0, 2, 4, 6 in scales[0], of the others in scales[1]; or, in V4,
 * those of blocks 0 … 3 and of 4 … 7. */
AK_KERNEL void ak_neon_scales_nibbles(enum ak_quant_type type, const uint8_t *tile, size_t g,
                                      float32x4_t *d, uint8x16_t scales[2])
{
    if (type == AK_QUANT_IQ4_XS) {
        ak_neon_scales_iq4_xs(tile, g, d, scales);
        return;
    }
    ak_neon_odd_scales(tile + AK_K_SCALES_AT + g * 16, scales);
    *d = ak_neon_table_scales(tile, g);
}

/* Scale of block j from ak_neon_scales_nibbles. */
AK_KERNEL int32x4_t ak_neon_nibbles_scale(enum ak_quant_type type, const uint8x16_t scales[2],
                                          size_t j)
{
    return type == AK_QUANT_IQ4_XS ? ak_neon_byte_s8(scales[j % 2], j / 2) :
                                     ak_neon_byte_u8(scales[j / 4], j % 4);
}

/* ---- Quants ------------------------------------------------------------- */
/* Register g of four lines of Q2_K in half h, lines 4s … 4s+3 of each quarter: w[q] is k = 128h +
 * 32q + 16s …, left at their position in the bytes: 4 times the quant for q = 1, 16 times for q =
 * 2. */
AK_KERNEL void ak_neon_quants_q2_k(const uint8_t *tile, size_t h, size_t s, size_t g,
                                   int8x16_t w[4][4])
{
    const uint8_t *lines = tile + AK_Q2_K_QUANTS_AT + (h * 8 + s * 4) * AK_LINE_BYTES + g * 16;
#pragma GCC unroll 4
    for (size_t i = 0; i < 4; i++) {
        uint8x16_t v = vld1q_u8(lines + i * AK_LINE_BYTES);
        w[0][i] = vreinterpretq_s8_u8(vandq_u8(v, vdupq_n_u8(3)));
        w[1][i] = vreinterpretq_s8_u8(vandq_u8(v, vdupq_n_u8(12)));
        w[2][i] = vreinterpretq_s8_u8(vandq_u8(v, vdupq_n_u8(48)));
        w[3][i] = vreinterpretq_s8_u8(vshrq_n_u8(v, 6));
    }
}

/* Register g of lines i of the three-bit numbers at `quants`: w[j] is k = 32j + 4i …, 0 … 7; eight
 * times that for j = 1, 3, 5. */
AK_KERNEL void ak_neon_three_bits(const uint8_t *quants, size_t i, size_t g, int8x16_t w[8])
{
    const uint8_t *lines = quants + i * 3 * AK_LINE_BYTES + g * 16;
    const uint8x16_t low = vdupq_n_u8(7), high = vdupq_n_u8(0x38);
    uint8x16_t a = vld1q_u8(lines), b = vld1q_u8(lines + AK_LINE_BYTES),
               c = vld1q_u8(lines + 2 * AK_LINE_BYTES);
    w[0] = vreinterpretq_s8_u8(vandq_u8(a, low));
    w[1] = vreinterpretq_s8_u8(vandq_u8(a, high));
    w[2] = vreinterpretq_s8_u8(vandq_u8(b, low));
    w[3] = vreinterpretq_s8_u8(vandq_u8(b, high));
    w[4] = vreinterpretq_s8_u8(vandq_u8(c, low));
    w[5] = vreinterpretq_s8_u8(vandq_u8(c, high));
    /* the two upper bits, then that of c below them, all shifted down */
    w[6] = vreinterpretq_s8_u8(vshrq_n_u8(vsriq_n_u8(a, vshlq_n_u8(c, 1), 2), 5));
    w[7] = vreinterpretq_s8_u8(vshrq_n_u8(vsriq_n_u8(b, c, 2), 5));
}

/* Register g of the eight lines of blocks 2c and 2c+1 of Q4_K, or of Q5_K minus 16: −16 is added if
 * the fifth bit is clear, as in Q5_0. */
AK_KERNEL void ak_neon_quants_q45_k(enum ak_quant_type type, const uint8_t *tile, size_t c,
                                    size_t g, int8x16_t low[8], int8x16_t high[8])
{
    const uint8_t *lines = tile + (type == AK_QUANT_Q5_K ? AK_Q5_K_QUANTS_AT : AK_Q4_K_QUANTS_AT) +
                           c * 8 * AK_LINE_BYTES + g * 16;
    const uint8x16_t first = vdupq_n_u8((uint8_t)(1u << 2 * c)),
                     second = vdupq_n_u8((uint8_t)(2u << 2 * c));
#pragma GCC unroll 8
    for (size_t i = 0; i < 8; i++) {
        uint8x16_t v = vld1q_u8(lines + i * AK_LINE_BYTES);
        if (type == AK_QUANT_Q5_K) {
            uint8x16_t clear = ak_neon_keep(
                vmvnq_u8(vld1q_u8(tile + AK_Q5_K_HIGH_AT + i * AK_LINE_BYTES + g * 16)));
            low[i] = vreinterpretq_s8_u8(vbslq_u8(vdupq_n_u8(15), v, vtstq_u8(clear, first)));
            high[i] = vreinterpretq_s8_u8(vsriq_n_u8(vtstq_u8(clear, second), v, 4));
        } else {
            low[i] = vreinterpretq_s8_u8(vandq_u8(v, vdupq_n_u8(15)));
            high[i] = vreinterpretq_s8_u8(vshrq_n_u8(v, 4));
        }
    }
}

/* Register g of four lines of Q6_K in half h, lines 4s … 4s+3 of each quarter: w[q] is k = 128h +
 * 32q + 16s …, 0 … 63. */
AK_KERNEL void ak_neon_quants_q6_k(const uint8_t *tile, size_t h, size_t s, size_t g,
                                   int8x16_t w[4][4])
{
    const uint8_t *high =
        tile + AK_Q6_K_HALVES_AT + h * AK_Q6_K_HALF_BYTES + s * 4 * AK_LINE_BYTES + g * 16;
    const uint8_t *low = high + AK_Q6_K_LOW_AT;
    const uint8x16_t bits = vdupq_n_u8(0x30);
#pragma GCC unroll 4
    for (size_t i = 0; i < 4; i++) {
        uint8x16_t a = vld1q_u8(low + i * AK_LINE_BYTES),
                   b = vld1q_u8(low + (8 + i) * AK_LINE_BYTES);
        uint8x16_t top = vld1q_u8(high + i * AK_LINE_BYTES);
        uint8x16_t third = vsriq_n_u8(vandq_u8(top, bits), a, 4);
        ak_neon_make_first(third, &a);
        w[2][i] = vreinterpretq_s8_u8(third);
        w[0][i] = vreinterpretq_s8_u8(vsliq_n_u8(a, vandq_u8(top, vdupq_n_u8(3)), 4));
        w[1][i] =
            vreinterpretq_s8_u8(vbslq_u8(vdupq_n_u8(15), b, vandq_u8(vshlq_n_u8(top, 2), bits)));
        w[3][i] = vreinterpretq_s8_u8(vsriq_n_u8(vandq_u8(vshrq_n_u8(top, 2), bits), b, 4));
    }
}

/* Register g of lines i of V3: w[j] is k = 32j + 4i …, the table's values. */
AK_KERNEL void ak_neon_quants_v3(const uint8_t *tile, size_t i, size_t g, int8x16_t w[8])
{
    int8x16_t values = vld1q_s8((const int8_t *)tile + AK_TABLE_AT);
    ak_neon_three_bits(tile + AK_V3_QUANTS_AT, i, g, w);
#pragma GCC unroll 8
    for (size_t j = 0; j < 8; j++) {
        uint8x16_t index = vreinterpretq_u8_s8(w[j]);
        w[j] = vqtbl1q_s8(values, j == 1 || j == 3 || j == 5 ? vshrq_n_u8(index, 3) : index);
    }
}

/* Register g of the eight lines of block j of IQ4_XS or V4. */
AK_KERNEL void ak_neon_quants_nibbles(enum ak_quant_type type, const uint8_t *tile, size_t j,
                                      size_t g, int8x16_t w[8])
{
    const uint8_t *lines = tile + AK_IQ4_XS_QUANTS_AT + j * 4 * AK_LINE_BYTES + g * 16;
    int8x16_t values =
        vld1q_s8(type == AK_QUANT_V4 ? (const int8_t *)tile + AK_TABLE_AT : ak_quant_iq4_values);
#pragma GCC unroll 4
    for (size_t i = 0; i < 4; i++) {
        uint8x16_t v = vld1q_u8(lines + i * AK_LINE_BYTES);
        w[i] = vqtbl1q_s8(values, vandq_u8(v, vdupq_n_u8(15)));
        w[4 + i] = vqtbl1q_s8(values, vshrq_n_u8(v, 4));
    }
}

#endif
