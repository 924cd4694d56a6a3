/* Tiles of the types with blocks of 32: where things lie, and quants as int8. */
#ifndef AK_CPU_NEON_TILE32_H
#define AK_CPU_NEON_TILE32_H

#include "base/mem.h"
#include "cpu/neon/lanes.h"

struct ak_neon_tile32 {
    const uint8_t *scales, *mins, *high, *quants; /* mins: Q4_1 alone, high: Q5_0 alone */
};

AK_KERNEL struct ak_neon_tile32 ak_neon_tile32(enum ak_type type, const uint8_t *tile, size_t blocks)
{
    struct ak_neon_tile32 t = { .scales = tile, .mins = tile + 32 * blocks };
    t.high = tile + (type == AK_Q4_1 ? 64 * blocks : ak_round_up(32 * blocks, AK_LINE_BYTES));
    t.quants = t.high + (type == AK_Q5_0 ? 64 * blocks : 0);
    return t;
}

/* The nibbles of four lines, register g: k 0 … 15 and 16 … 31, unsigned. */
AK_KERNEL void ak_neon_nibbles(const uint8_t *lines, size_t g, uint8x16_t low[4], uint8x16_t high[4])
{
#pragma GCC unroll 4
    for (size_t i = 0; i < 4; i++) {
        uint8x16_t v = vld1q_u8(lines + i * AK_LINE_BYTES + g * 16);
        low[i] = vandq_u8(v, vdupq_n_u8(15));
        high[i] = vshrq_n_u8(v, 4);
    }
}

/* −16 more where the fifth bit is clear: the upper nibble then takes the mask's
 * ones, and the byte is the quant in two's complement. */
AK_KERNEL void ak_neon_quants_q5_0(const struct ak_neon_tile32 *t, size_t b, size_t g, int8x16_t w[8])
{
    static const uint8_t first_bytes[16] = { 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1 };
    static const uint8_t bits[16] = { 1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128 };
    const uint8_t *lines = t->quants + b * 256, *words = t->high + b * 64;
    uint8x16_t even = vaddq_u8(vld1q_u8(first_bytes), vdupq_n_u8((uint8_t)(2 * g)));
    uint8x16_t odd = vaddq_u8(even, vdupq_n_u8(8)), bit = vld1q_u8(bits), clear[8];
#pragma GCC unroll 4
    for (size_t i = 0; i < 4; i++) {
        uint8x16_t pair = vmvnq_u8(vld1q_u8(words + i * 16));
        clear[2 * i] = vtstq_u8(vqtbl1q_u8(pair, even), bit);
        clear[2 * i + 1] = vtstq_u8(vqtbl1q_u8(pair, odd), bit);
    }
#pragma GCC unroll 4
    for (size_t i = 0; i < 4; i++) {
        uint8x16_t v = vld1q_u8(lines + i * AK_LINE_BYTES + g * 16);
        w[4 + i] = vreinterpretq_s8_u8(vsliq_n_u8(vshrq_n_u8(v, 4), clear[4 + i], 4));
        w[i] = vreinterpretq_s8_u8(vsliq_n_u8(v, clear[i], 4));
    }
}

/* Register g of the block's 8 lines of 4 k, signed. The nibbles of Q4_0 and
 * Q4_1 as they are: whether an offset of 8 is taken off here or from the sum is
 * the caller's choice. */
AK_KERNEL void ak_neon_quants32(enum ak_type type, const struct ak_neon_tile32 *t, size_t b, size_t g, int8x16_t w[8])
{
    if (type == AK_Q5_0) {
        ak_neon_quants_q5_0(t, b, g, w);
    } else if (type == AK_Q8_0) {
#pragma GCC unroll 8
        for (size_t i = 0; i < 8; i++) {
            uint8x16_t v = vld1q_u8(t->quants + b * 512 + i * AK_LINE_BYTES + g * 16);
            w[i] = vreinterpretq_s8_u8(veorq_u8(v, vdupq_n_u8(0x80)));
        }
    } else {
        uint8x16_t low[4], high[4];
        ak_neon_nibbles(t->quants + b * 256, g, low, high);
#pragma GCC unroll 4
        for (size_t i = 0; i < 4; i++) {
            w[i] = vreinterpretq_s8_u8(low[i]);
            w[4 + i] = vreinterpretq_s8_u8(high[i]);
        }
    }
}

#endif
