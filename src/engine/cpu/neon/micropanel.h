/* Int8 panels made of micropanels of 8 rows, so that the sums of 8 rows × 4 tokens stay in
 * registers. For each tile row, a panel has the micropanels of rows 0 … 7 over all k, then those of
 * rows 8 … 15.
 *
 * A line of a micropanel is 8 rows × 4 k, 32 bytes. Two of them are stored one after the other, or
 * `paired` for smmla (neon_i8mm/): four registers of two rows × 8 k. If a paired micropanel has
 * room for them, it stores each scale twice. */
#ifndef AK_ENGINE_CPU_NEON_MICROPANEL_H
#define AK_ENGINE_CPU_NEON_MICROPANEL_H

#include <string.h>

#include "engine/cpu/neon/lanes.h"

enum { AK_NEON_MICROPANEL_ROWS = 8 };

/* 32 k. Line i holds k = 4i … 4i+3 of each row. */
struct ak_neon_micropanel32 {
    int8_t q[8][32];
    float factors[16]; /* scales; from index 8 on minimums, if the type has them */
};

/* 256 k. Quants of Q2_K are multiplied by their scales, those of Q3_K by minus their scales (−124 …
 * 128 would not fit). Minimums are int8: one per 32 k, or per 16 k in Q2_K, four per line. */
struct ak_neon_micropanel256 {
    float scale[8], min[8]; /* min: negated, if the type has minimums */
    int8_t mins[4][32];
    struct {
        int8_t q[8][32]; /* first in the block: ak_neon_part_lines relies on it */
        /* of 32 k; Q6_K, V3: of k 0 … 15, from index 8 on of k 16 … 31; Q2_K, Q3_K: unused */
        int32_t scales[16];
    } block[8];
};

_Static_assert(2 * sizeof(struct ak_neon_micropanel32) <= AK_PANEL_I8_BLOCK_BYTES_MAX,
               "two micropanels are a tile's block");
_Static_assert(2 * sizeof(struct ak_neon_micropanel256) <= 8 * AK_PANEL_I8_BLOCK_BYTES_MAX,
               "two micropanels are a tile");

/* Scales per block of 32 k in a micropanel of 256 k. */
AK_KERNEL size_t ak_neon_block_scales(enum ak_quant_type type)
{
    return type == AK_QUANT_Q6_K || type == AK_QUANT_V3   ? 2 :
           type == AK_QUANT_Q2_K || type == AK_QUANT_Q3_K ? 0 :
                                                            1;
}

/* Minimums per row of a micropanel of 256 k, in words of four. */
AK_KERNEL size_t ak_neon_min_words(enum ak_quant_type type)
{
    return type == AK_QUANT_Q2_K ? 4 : type == AK_QUANT_Q4_K || type == AK_QUANT_Q5_K ? 2 : 0;
}

/* Converts an integer sum over a micropanel of 256 k to float; Q3_K's quants are negated. */
AK_KERNEL float32x4_t ak_neon_micropanel_sum(enum ak_quant_type type, int32x4_t sum)
{
    return vcvtq_f32_s32(type == AK_QUANT_Q3_K ? vnegq_s32(sum) : sum);
}

/* Stores an even line and the next one for four rows of the micropanel, from 4·(g mod 2) on. */
AK_KERNEL void ak_neon_store_lines(bool paired, int8_t *lines, size_t g, int8x16_t first,
                                   int8x16_t second)
{
    int32x4_t a = vreinterpretq_s32_s8(first), b = vreinterpretq_s32_s8(second);
    int8_t *to = lines + g % 2 * (paired ? 32 : 16);
    vst1q_s8(to, paired ? vreinterpretq_s8_s32(vzip1q_s32(a, b)) : first);
    vst1q_s8(to + (paired ? 16 : 32), paired ? vreinterpretq_s8_s32(vzip2q_s32(a, b)) : second);
}

/* Stores the factors of four rows, from 4·(g mod 2) on, each twice if `twice`. */
AK_KERNEL void ak_neon_store_factors(bool twice, float *factors, size_t g, float32x4_t x)
{
    float *to = factors + g % 2 * (twice ? 8 : 4);
    vst1q_f32(to, twice ? vzip1q_f32(x, x) : x);
    if (twice)
        vst1q_f32(to + 4, vzip2q_f32(x, x));
}

AK_KERNEL void ak_neon_store_scales(bool twice, int32_t *scales, size_t g, int32x4_t x)
{
    int32_t *to = scales + g % 2 * (twice ? 8 : 4);
    vst1q_s32(to, twice ? vzip1q_s32(x, x) : x);
    if (twice)
        vst1q_s32(to + 4, vzip2q_s32(x, x));
}

/* Unpacks a tile of `blocks` blocks of 32 k: rows 0 … 7 go to lower[b], rows 8 … 15 to upper[b].
 * Types with blocks of 256 use one micropanel each. */
void ak_neon_unpack_tile32(enum ak_quant_type type, const uint8_t *restrict tile, size_t blocks,
                           struct ak_neon_micropanel32 *restrict lower,
                           struct ak_neon_micropanel32 *restrict upper);
void ak_neon_unpack_tile256(enum ak_quant_type type, const uint8_t *restrict tile,
                            struct ak_neon_micropanel256 *restrict lower,
                            struct ak_neon_micropanel256 *restrict upper);

/* Zeros the outputs of a tile row for n tokens, before micropanels are added. */
static inline void ak_neon_clear(float *y, size_t y_stride, size_t n)
{
    for (size_t t = 0; t < n; t++)
        memset(y + t * y_stride, 0, AK_TILE_ROWS * sizeof *y);
}

/* y[t·y_stride + r] += n_panels micropanels of 8 rows times the activations of n tokens. */
void ak_neon_dot_micropanels32(enum ak_quant_type type,
                               const struct ak_neon_micropanel32 *restrict panels, size_t n_panels,
                               const uint8_t *restrict activations, size_t act_bytes, size_t n,
                               float *restrict y, size_t y_stride);
void ak_neon_dot_micropanels256(enum ak_quant_type type,
                                const struct ak_neon_micropanel256 *restrict panels,
                                size_t n_panels, const uint8_t *restrict activations,
                                size_t act_bytes, size_t n, float *restrict y, size_t y_stride);

#endif
