/* Building blocks of the NEON kernels: compiler barriers, int8 dot products, loads, and sums of
 * activations. An interleaved line of 16 rows is four registers: register g has rows 4g … 4g+3,
 * four k each. */
#ifndef AK_ENGINE_CPU_NEON_LANES_H
#define AK_ENGINE_CPU_NEON_LANES_H

#include <arm_neon.h>
#include <stddef.h>

#include "engine/cpu/generic.h"

enum { AK_NEON_GROUPS = 4 }; /* registers of an interleaved line */

/* Compiler barrier for loads and stores: gcc would keep more in flight than there are registers. */
AK_KERNEL void ak_neon_fence(void)
{
    __asm__ volatile("" ::: "memory");
}

/* Returns x in its register: gcc would copy a sum between registers before each addition. */
AK_KERNEL int32x4_t ak_neon_hold(int32x4_t x)
{
    __asm__("" : "+w"(x));
    return x;
}

/* Returns x, opaque to the compiler: values derived from it are computed, not loaded as
 * constants. */
AK_KERNEL uint8x16_t ak_neon_keep(uint8x16_t x)
{
    __asm__("" : "+w"(x));
    return x;
}

/* Forces y to be computed before x is used: an instruction that overwrites x then needs no copy. */
AK_KERNEL void ak_neon_make_first(uint8x16_t y, uint8x16_t *x)
{
    __asm__("" : "+w"(*x) : "w"(y));
}

/* Four rows times 16 k: word i of `a` is multiplied with line i. */
AK_KERNEL int32x4_t ak_neon_dot16(int32x4_t sum, const int8x16_t w[4], int8x16_t a)
{
    sum = vdotq_laneq_s32(sum, w[0], a, 0);
    sum = vdotq_laneq_s32(sum, w[1], a, 1);
    sum = vdotq_laneq_s32(sum, w[2], a, 2);
    return vdotq_laneq_s32(sum, w[3], a, 3);
}

/* Four F16 numbers from any address, as floats. */
AK_KERNEL float32x4_t ak_neon_load_f16(const uint8_t *p)
{
    return vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(p)));
}

AK_KERNEL float32x4_t ak_neon_load_bf16(const uint8_t *p)
{
    return vreinterpretq_f32_u32(vshll_n_u16(vreinterpret_u16_u8(vld1_u8(p)), 16));
}

/* 4 bytes from any address, in the lower half of 8. */
AK_KERNEL int8x8_t ak_neon_load_word(const uint8_t *p)
{
    uint32_t word;
    memcpy(&word, p, sizeof word);
    return vreinterpret_s8_u32(vdup_n_u32(word));
}

AK_KERNEL float32x4_t ak_neon_broadcast_float(const uint8_t *p)
{
    float x;
    memcpy(&x, p, sizeof x);
    return vdupq_n_f32(x);
}

/* Converts E4M3 numbers of F8 to halves. E4M3 becomes a short F16 after inserting a fifth exponent
 * bit, 0; the copy of the sign that sign extension leaves in its place is cleared. */
AK_KERNEL float16x8_t ak_neon_e4m3(int8x8_t x)
{
    return vreinterpretq_f16_s16(vandq_s16(vshll_n_s8(x, 7), vdupq_n_s16((int16_t)0xbfff)));
}

/* Scale, minus8_sum and scaled_sum of a block in lanes 0, 1, 2. */
AK_KERNEL uint8x16_t ak_neon_act32_terms(const struct ak_cpu_act32 *a)
{
    _Static_assert(
        offsetof(struct ak_cpu_act32, minus8_sum) == offsetof(struct ak_cpu_act32, scale) + 4 &&
            offsetof(struct ak_cpu_act32, scaled_sum) == offsetof(struct ak_cpu_act32, scale) + 8 &&
            sizeof(struct ak_cpu_act32) == offsetof(struct ak_cpu_act32, scale) + 16,
        "one register holds a block's terms");
    return vld1q_u8((const uint8_t *)a + offsetof(struct ak_cpu_act32, scale));
}

AK_KERNEL const struct ak_cpu_act32 *ak_neon_act32(const uint8_t *activations, size_t block)
{
    return (const struct ak_cpu_act32 *)(const void *)activations + block;
}

AK_KERNEL const struct ak_cpu_act256 *ak_neon_act256(const uint8_t *activations, size_t block)
{
    return (const struct ak_cpu_act256 *)(const void *)activations + block;
}

/* Splits sums into 64·h + l with 0 ≤ l < 64, so that both parts are operands of sdot (|sum| ≤
 * 32·127 < 64·64). The eight sums of 32: l of blocks 0 … 3, l of 4 … 7, then h likewise, one word
 * each. */
AK_KERNEL int8x16_t ak_neon_split_sums(const struct ak_cpu_act256 *a)
{
    static const uint8_t natural[16] = { 0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15 };
    int16x8_t sums = vld1q_s16(a->pair_sum32);
    int8x8_t low = vand_s8(vmovn_s16(sums), vdup_n_s8(63)), high = vshrn_n_s16(sums, 6);
    return vqtbl1q_s8(vcombine_s8(low, high), vld1q_u8(natural));
}

/* The sixteen sums of 16: l in split[0], h in split[1]. */
AK_KERNEL void ak_neon_split_sums16(const struct ak_cpu_act256 *a, int8x16_t split[2])
{
    static const uint8_t natural[16] = { 0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15 };
    int16x8_t first = vld1q_s16(a->pair_sum16), last = vld1q_s16(a->pair_sum16 + 8);
    int8x16_t low = vandq_s8(vcombine_s8(vmovn_s16(first), vmovn_s16(last)), vdupq_n_s8(63));
    int8x16_t high = vcombine_s8(vshrn_n_s16(first, 6), vshrn_n_s16(last, 6));
    split[0] = vqtbl1q_s8(low, vld1q_u8(natural));
    split[1] = vqtbl1q_s8(high, vld1q_u8(natural));
}

/* Σ min·sum of four rows; `mins` has those of blocks 0 … 3 and of 4 … 7. */
AK_KERNEL int32x4_t ak_neon_dot_mins(const int8x16_t mins[2], int8x16_t split)
{
    int32x4_t sum = vdotq_laneq_s32(vdupq_n_s32(0), mins[0], split, 2);
    sum = vshlq_n_s32(vdotq_laneq_s32(sum, mins[1], split, 3), 6);
    return vdotq_laneq_s32(vdotq_laneq_s32(sum, mins[0], split, 0), mins[1], split, 1);
}

/* The same for one minimum per 16 k, four per word. */
AK_KERNEL int32x4_t ak_neon_dot_mins16(const int8x16_t mins[4], const int8x16_t split[2])
{
    int32x4_t sum = vshlq_n_s32(ak_neon_dot16(vdupq_n_s32(0), mins, split[1]), 6);
    return ak_neon_dot16(sum, mins, split[0]);
}

#endif
