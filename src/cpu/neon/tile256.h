/* Tiles of the K-types: where things lie, and quants and scales as int8. */
#ifndef AK_CPU_NEON_TILE256_H
#define AK_CPU_NEON_TILE256_H

#include "cpu/neon/lanes.h"

enum {
    AK_NEON_Q4_K_SCALES = 64,
    AK_NEON_Q4_K_QUANTS = 256,
    AK_NEON_Q4_K_TILE = 2304,
    AK_NEON_Q6_K_SCALES = 64,
    AK_NEON_Q6_K_HALVES = 320,
    AK_NEON_Q6_K_HALF = 1536,
    AK_NEON_Q6_K_LOW = 512,
    AK_NEON_Q6_K_TILE = 3392
};

/* Four rows' 6-bit scales and minimums of blocks 0 … 3 and 4 … 7, a byte each. */
AK_KERNEL void ak_neon_scales_q4_k(const uint8_t *tile, size_t g, uint8x16_t scales[2], int8x16_t mins[2])
{
    const uint8_t *lines = tile + AK_NEON_Q4_K_SCALES + g * 16;
    uint8x16_t a = vld1q_u8(lines), b = vld1q_u8(lines + AK_LINE_BYTES), c = vld1q_u8(lines + 2 * AK_LINE_BYTES);
    scales[0] = vandq_u8(a, vdupq_n_u8(63));
    mins[0] = vreinterpretq_s8_u8(vandq_u8(b, vdupq_n_u8(63)));
    mins[1] = vreinterpretq_s8_u8(vsliq_n_u8(vshrq_n_u8(c, 4), vshrq_n_u8(b, 6), 4));
    scales[1] = vsliq_n_u8(c, vshrq_n_u8(a, 6), 4);
}

/* Byte j of each word. */
AK_KERNEL int32x4_t ak_neon_byte_u8(uint8x16_t words, size_t j)
{
    static const uint8_t first[16] = { 0, 252, 252, 252, 4, 252, 252, 252, 8, 252, 252, 252, 12, 252, 252, 252 };
    uint8x16_t index = vaddq_u8(vld1q_u8(first), vdupq_n_u8((uint8_t)j)); /* 252 and above give zeros */
    return vreinterpretq_s32_u8(vqtbl1q_u8(words, index));
}

AK_KERNEL int32x4_t ak_neon_byte_s8(uint8x16_t words, size_t j)
{
    static const uint8_t first[16] = { 252, 252, 252, 0, 252, 252, 252, 4, 252, 252, 252, 8, 252, 252, 252, 12 };
    uint8x16_t index = vaddq_u8(vld1q_u8(first), vdupq_n_u8((uint8_t)j));
    return vshrq_n_s32(vreinterpretq_s32_u8(vqtbl1q_u8(words, index)), 24);
}

/* The super-scales of four rows; *min is that of the minimums. */
AK_KERNEL float32x4_t ak_neon_super_q4_k(const uint8_t *tile, size_t g, float32x4_t *min)
{
    uint16x8_t both = vreinterpretq_u16_u8(vld1q_u8(tile + g * 16));
    *min = vcvt_f32_f16(vreinterpret_f16_u16(vget_low_u16(vuzp2q_u16(both, both))));
    return vcvt_f32_f16(vreinterpret_f16_u16(vget_low_u16(vuzp1q_u16(both, both))));
}

/* Register g of four lines of Q6_K in half h, lines 4s … 4s+3 of each quarter:
 * w[q] are k = 128h + 32q + 16s …, as 4·(quant − 32). The two high bits go on
 * top, the low four below them, and flipping the sign bit takes 32 off. */
AK_KERNEL void ak_neon_quants_q6_k(const uint8_t *tile, size_t h, size_t s, size_t g, int8x16_t w[4][4])
{
    const uint8_t *high = tile + AK_NEON_Q6_K_HALVES + h * AK_NEON_Q6_K_HALF + s * 4 * AK_LINE_BYTES + g * 16;
    const uint8_t *low = high + AK_NEON_Q6_K_LOW;
    const uint8x16_t upper = vdupq_n_u8(0xf0);
#pragma GCC unroll 4
    for (size_t i = 0; i < 4; i++) {
        uint8x16_t a = vld1q_u8(low + i * AK_LINE_BYTES), b = vld1q_u8(low + (8 + i) * AK_LINE_BYTES);
        uint8x16_t top = veorq_u8(vld1q_u8(high + i * AK_LINE_BYTES), vdupq_n_u8(0xaa));
        w[0][i] = vreinterpretq_s8_u8(vsriq_n_u8(vshlq_n_u8(top, 6), vshlq_n_u8(a, 4), 2));
        w[1][i] = vreinterpretq_s8_u8(vsriq_n_u8(vshlq_n_u8(top, 4), vshlq_n_u8(b, 4), 2));
        w[2][i] = vreinterpretq_s8_u8(vsriq_n_u8(vshlq_n_u8(top, 2), vandq_u8(a, upper), 2));
        w[3][i] = vreinterpretq_s8_u8(vsriq_n_u8(top, vandq_u8(b, upper), 2));
    }
}

#endif
