/* Decodes tiles of types with blocks of 32 to int8 quants, scales and minimums. */
#ifndef AK_ENGINE_CPU_NEON_TILE32_H
#define AK_ENGINE_CPU_NEON_TILE32_H

#include "base/mem.h"
#include "engine/cpu/neon/lanes.h"

AK_KERNEL bool ak_neon_has_minimum(enum ak_quant_type type)
{
    return type == AK_QUANT_Q4_1 || type == AK_QUANT_Q5_1 || type == AK_QUANT_A4 ||
           type == AK_QUANT_A5 || type == AK_QUANT_A8;
}

AK_KERNEL bool ak_neon_has_fifth_bits(enum ak_quant_type type)
{
    return type == AK_QUANT_Q5_0 || type == AK_QUANT_Q5_1 || type == AK_QUANT_A5;
}

AK_KERNEL bool ak_neon_has_values(enum ak_quant_type type)
{
    return type == AK_QUANT_IQ4_NL || type == AK_QUANT_MXFP4;
}

/* Bytes of a block's scales, and of its minimums. */
AK_KERNEL size_t ak_neon_factor_bytes(enum ak_quant_type type)
{
    return type == AK_QUANT_MXFP4 ? 16 : type == AK_QUANT_A8 ? 64 : 32;
}

struct ak_neon_tile32 {
    const uint8_t *scales, *mins, *high, *quants; /* mins, high: only in types that have them */
};

AK_KERNEL struct ak_neon_tile32 ak_neon_tile32(enum ak_quant_type type, const uint8_t *tile,
                                               size_t blocks)
{
    struct ak_neon_tile32 t = { .scales = tile,
                                .mins = tile + ak_neon_factor_bytes(type) * blocks };
    size_t scales = blocks * ak_neon_factor_bytes(type) * (ak_neon_has_minimum(type) ? 2 : 1);
    t.high = tile + ak_round_up(scales, AK_LINE_BYTES);
    t.quants = t.high + (ak_neon_has_fifth_bits(type) ? 64 * blocks : 0);
    return t;
}

/* ak_e8m0_half of 16 exponents. Its upper 16 bits are (e − 1) << 7; below 2 it is subnormal and
 * comes from a table. */
AK_KERNEL void ak_neon_load_exponents(const uint8_t *p, float32x4_t d[AK_NEON_GROUPS])
{
    static const uint8_t subnormal[16] = { 0x20, 0x40, 0x80, 0, 0x80, 0, 0x80, 0,
                                           0x80, 0,    0x80, 0, 0x80, 0, 0x80, 0 };
    uint8x16_t e = vld1q_u8(p), below = vqsubq_u8(e, vdupq_n_u8(1));
    uint8x16_t low = vqtbx1q_u8(vshlq_n_u8(below, 7), vld1q_u8(subnormal), e),
               high = vshrq_n_u8(below, 1);
    uint16x8_t first = vreinterpretq_u16_u8(vzip1q_u8(low, high)),
               last = vreinterpretq_u16_u8(vzip2q_u8(low, high));
    d[0] = vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(first), 16));
    d[1] = vreinterpretq_f32_u32(vshll_n_u16(vget_high_u16(first), 16));
    d[2] = vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(last), 16));
    d[3] = vreinterpretq_f32_u32(vshll_n_u16(vget_high_u16(last), 16));
}

/* Scales or minimums of a block, register g; not for MXFP4. */
AK_KERNEL float32x4_t ak_neon_load_factors(enum ak_quant_type type, const uint8_t *factors,
                                           size_t g)
{
    switch (type) {
    case AK_QUANT_A4:
    case AK_QUANT_A5: return ak_neon_load_bf16(factors + g * 8);
    case AK_QUANT_A8: return vreinterpretq_f32_u8(vld1q_u8(factors + g * 16));
    default: return ak_neon_load_f16(factors + g * 8);
    }
}

/* Minimums of block b, register g. */
AK_KERNEL float32x4_t ak_neon_mins32(enum ak_quant_type type, const struct ak_neon_tile32 *t,
                                     size_t b, size_t g)
{
    return ak_neon_load_factors(type, t->mins + b * ak_neon_factor_bytes(type), g);
}

/* Scales of block b, all 16 rows. */
AK_KERNEL void ak_neon_scales32(enum ak_quant_type type, const struct ak_neon_tile32 *t, size_t b,
                                float32x4_t d[AK_NEON_GROUPS])
{
    if (type == AK_QUANT_MXFP4) {
        ak_neon_load_exponents(t->scales + b * 16, d);
        return;
    }
#pragma GCC unroll 4
    for (size_t g = 0; g < AK_NEON_GROUPS; g++)
        d[g] = ak_neon_load_factors(type, t->scales + b * ak_neon_factor_bytes(type), g);
}

/* Nibbles of four lines, register g: k 0 … 15 and 16 … 31, unsigned. */
AK_KERNEL void ak_neon_nibbles(const uint8_t *lines, size_t g, uint8x16_t low[4],
                               uint8x16_t high[4])
{
#pragma GCC unroll 4
    for (size_t i = 0; i < 4; i++) {
        uint8x16_t v = vld1q_u8(lines + i * AK_LINE_BYTES + g * 16);
        low[i] = vandq_u8(v, vdupq_n_u8(15));
        high[i] = vshrq_n_u8(v, 4);
    }
}

/* Fifth bits of a block, inverted; two lines per register. */
AK_KERNEL void ak_neon_clear_bits(enum ak_quant_type type, const struct ak_neon_tile32 *t, size_t b,
                                  uint8x16_t clear[4])
{
#pragma GCC unroll 4
    for (size_t i = 0; i < 4; i++)
        clear[i] = ak_neon_has_fifth_bits(type) ?
                       ak_neon_keep(vmvnq_u8(vld1q_u8(t->high + b * 64 + i * 16))) :
                       vdupq_n_u8(0);
}

/* Sets the upper nibble to ones if the fifth bit is clear, else to zeros. The byte is then Q5_0's
 * quant in two's complement. */
AK_KERNEL void ak_neon_quants_q5(const uint8_t *lines, const uint8x16_t clear_bits[4], size_t g,
                                 int8x16_t w[8])
{
    static const uint8_t first_bytes[16] = { 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1 };
    static const uint8_t bits[16] = { 1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128 };
    uint8x16_t even = vaddq_u8(ak_neon_keep(vld1q_u8(first_bytes)), vdupq_n_u8((uint8_t)(2 * g)));
    uint8x16_t odd = vaddq_u8(even, vdupq_n_u8(8)), bit = vld1q_u8(bits), clear[8];
#pragma GCC unroll 4
    for (size_t i = 0; i < 4; i++) {
        clear[2 * i] = vtstq_u8(vqtbl1q_u8(clear_bits[i], even), bit);
        clear[2 * i + 1] = vtstq_u8(vqtbl1q_u8(clear_bits[i], odd), bit);
    }
#pragma GCC unroll 4
    for (size_t i = 0; i < 4; i++) {
        uint8x16_t v = vld1q_u8(lines + i * AK_LINE_BYTES + g * 16);
        w[i] = vreinterpretq_s8_u8(vbslq_u8(vdupq_n_u8(15), v, clear[i]));
        w[4 + i] = vreinterpretq_s8_u8(vsriq_n_u8(clear[4 + i], v, 4));
    }
}

/* Offset still to be subtracted from the quants of ak_neon_quants32; the caller subtracts it from
 * the quants or from the sum. */
AK_KERNEL int8_t ak_neon_offset32(enum ak_quant_type type)
{
    return type == AK_QUANT_Q4_0 ? 8 : type == AK_QUANT_Q5_1 || type == AK_QUANT_A5 ? -16 : 0;
}

/* Register g of the block's 8 lines of 4 k, signed, still with ak_neon_offset32. */
AK_KERNEL void ak_neon_quants32(enum ak_quant_type type, const struct ak_neon_tile32 *t, size_t b,
                                const uint8x16_t clear_bits[4], size_t g, int8x16_t w[8])
{
    if (ak_neon_has_fifth_bits(type)) {
        ak_neon_quants_q5(t->quants + b * 256, clear_bits, g, w);
    } else if (type == AK_QUANT_Q8_0 || type == AK_QUANT_A8) {
#pragma GCC unroll 8
        for (size_t i = 0; i < 8; i++) {
            uint8x16_t v = vld1q_u8(t->quants + b * 512 + i * AK_LINE_BYTES + g * 16);
            w[i] = vreinterpretq_s8_u8(veorq_u8(v, vdupq_n_u8(0x80)));
        }
    } else if (type == AK_QUANT_V2) {
        const uint8_t *lines = t->quants + b * 128 + g * 16;
        uint8x16_t v[2] = { vld1q_u8(lines), vld1q_u8(lines + AK_LINE_BYTES) };
#pragma GCC unroll 8
        for (size_t i = 0; i < 8; i++) {
            uint8x16_t bits = vshlq_u8(v[i % 2], vdupq_n_s8((int8_t) - (int8_t)(i / 2 * 2)));
            w[i] = vsubq_s8(vreinterpretq_s8_u8(vandq_u8(bits, vdupq_n_u8(3))), vdupq_n_s8(1));
        }
    } else {
        int8x16_t values =
            vld1q_s8(type == AK_QUANT_MXFP4 ? ak_quant_mxfp4_values : ak_quant_iq4_values);
        uint8x16_t low[4], high[4];
        ak_neon_nibbles(t->quants + b * 256, g, low, high);
#pragma GCC unroll 4
        for (size_t i = 0; i < 4; i++) {
            w[i] =
                ak_neon_has_values(type) ? vqtbl1q_s8(values, low[i]) : vreinterpretq_s8_u8(low[i]);
            w[4 + i] = ak_neon_has_values(type) ? vqtbl1q_s8(values, high[i]) :
                                                  vreinterpretq_s8_u8(high[i]);
        }
    }
}

#endif
