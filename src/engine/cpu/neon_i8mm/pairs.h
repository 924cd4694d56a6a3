/* Building blocks of int8 GEMM with smmla, which multiplies two rows × 8 k with two tokens × 8 k.
 * They pair tokens, add products and store sums. The panel has rows already paired
 * (neon/micropanel.h). A register of sums holds rows r, r+1 and tokens t, t+1 in the order (r, t),
 * (r, t+1), (r+1, t), (r+1, t+1). */
#ifndef AK_ENGINE_CPU_NEON_I8MM_PAIRS_H
#define AK_ENGINE_CPU_NEON_I8MM_PAIRS_H

#include "base/mem.h"
#include "engine/cpu/neon/micropanel.h"

enum {
    AK_I8MM_PAIRS = 8, /* pairs of tokens at a time: 16 tokens */
    AK_I8MM_GROUP = 2, /* pairs in registers */
    AK_I8MM_ROW_PAIRS = AK_NEON_MICROPANEL_ROWS / 2,
    AK_I8MM_MICROPANELS = AK_PANEL_I8_TILES_MAX * 2
};

/* Sums of a micropanel's rows for one pair of tokens. */
struct ak_i8mm_sums {
    float32x4_t rows[AK_I8MM_ROW_PAIRS];
};

/* Interleaves 16 quants of two tokens. */
AK_KERNEL void ak_i8mm_pair_quants(const int8_t *a, const int8_t *b, int8_t out[32])
{
    int64x2_t x = vreinterpretq_s64_s8(vld1q_s8(a)), y = vreinterpretq_s64_s8(vld1q_s8(b));
    vst1q_s8(out, vreinterpretq_s8_s64(vzip1q_s64(x, y)));
    vst1q_s8(out + 16, vreinterpretq_s8_s64(vzip2q_s64(x, y)));
}

/* One number per row of a micropanel, in the order of the sums. `twice`: already stored in that
 * order. */
AK_KERNEL void ak_i8mm_pair_rows(bool twice, const float *x, float32x4_t out[AK_I8MM_ROW_PAIRS])
{
    float32x4_t low = vld1q_f32(x), high = vld1q_f32(x + 4);
    if (twice) {
        out[0] = low;
        out[1] = high;
        out[2] = vld1q_f32(x + 8);
        out[3] = vld1q_f32(x + 12);
        return;
    }
    out[0] = vzip1q_f32(low, low);
    out[1] = vzip2q_f32(low, low);
    out[2] = vzip1q_f32(high, high);
    out[3] = vzip2q_f32(high, high);
}

AK_KERNEL void ak_i8mm_pair_rows_s32(bool twice, const int32_t *x, int32x4_t out[AK_I8MM_ROW_PAIRS])
{
    int32x4_t low = vld1q_s32(x), high = vld1q_s32(x + 4);
    if (twice) {
        out[0] = low;
        out[1] = high;
        out[2] = vld1q_s32(x + 8);
        out[3] = vld1q_s32(x + 12);
        return;
    }
    out[0] = vzip1q_s32(low, low);
    out[1] = vzip2q_s32(low, low);
    out[2] = vzip1q_s32(high, high);
    out[3] = vzip2q_s32(high, high);
}

/* Adds 8 k of a micropanel times 8 k of `pairs` pairs, which are `step` bytes apart. */
AK_KERNEL void ak_i8mm_add8(const int8_t *w, const int8_t *a, size_t step, size_t pairs,
                            int32x4_t sums[AK_I8MM_GROUP][AK_I8MM_ROW_PAIRS])
{
    int8x16_t q[AK_I8MM_GROUP];
#pragma GCC unroll 2
    for (size_t p = 0; p < AK_I8MM_GROUP && p < pairs; p++)
        q[p] = vld1q_s8(a + p * step);
#pragma GCC unroll 4
    for (size_t r = 0; r < AK_I8MM_ROW_PAIRS; r++) {
        int8x16_t rows = vld1q_s8(w + r * 16);
#pragma GCC unroll 2
        for (size_t p = 0; p < AK_I8MM_GROUP && p < pairs; p++)
            sums[p][r] = ak_neon_hold(vmmlaq_s32(sums[p][r], rows, q[p]));
    }
    ak_neon_fence();
}

AK_KERNEL void ak_i8mm_zero(size_t pairs, int32x4_t sums[AK_I8MM_GROUP][AK_I8MM_ROW_PAIRS])
{
#pragma GCC unroll 2
    for (size_t p = 0; p < AK_I8MM_GROUP && p < pairs; p++)
#pragma GCC unroll 4
        for (size_t r = 0; r < AK_I8MM_ROW_PAIRS; r++)
            sums[p][r] = vdupq_n_s32(0);
}

/* Writes the sums of n tokens for a micropanel's rows. */
static inline void ak_i8mm_store(const struct ak_i8mm_sums *sums, size_t n, float *y,
                                 size_t y_stride)
{
    for (size_t t = 0; t < n; t++, y += y_stride) {
        const float32x4_t *rows = sums[t / 2].rows;
        vst1q_f32(y, t % 2 ? vuzp2q_f32(rows[0], rows[1]) : vuzp1q_f32(rows[0], rows[1]));
        vst1q_f32(y + 4, t % 2 ? vuzp2q_f32(rows[2], rows[3]) : vuzp1q_f32(rows[2], rows[3]));
    }
}

#endif
