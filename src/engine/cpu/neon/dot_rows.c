/* Products of float rows, for types without a kernel of their own, in blocks of rows × tokens. A
 * block's sums stay in registers. */
#include <arm_neon.h>

#include "engine/cpu/setter.h"
#include "base/mem.h"
#include "engine/cpu/neon/floats.h"

/* Sums of 4 rows × 3 tokens × 8 of the 32 lanes stay in registers: four passes over a chunk of k
 * that fits the L1 cache. */
enum { ROWS = 4, TOKENS = 3, STRIP = 8, CHUNK = 512 };

/* Lanes 0 … 7 of the partial sums over a chunk. rows and tokens are constants after inlining. */
AK_KERNEL void add_strip(size_t rows, size_t tokens, const float *w, size_t w_stride,
                         const float *x, size_t x_stride, size_t k, float (*partial)[AK_LANES])
{
    float32x4_t sum[ROWS][TOKENS][2];
#pragma GCC unroll 4
    for (size_t r = 0; r < ROWS && r < rows; r++)
#pragma GCC unroll 3
        for (size_t t = 0; t < TOKENS && t < tokens; t++)
#pragma GCC unroll 2
            for (size_t j = 0; j < 2; j++)
                sum[r][t][j] = vld1q_f32(partial[r * TOKENS + t] + 4 * j);
    for (size_t i = 0; i < k; i += AK_LANES) {
#pragma GCC unroll 2
        for (size_t j = 0; j < 2; j++) {
            float32x4_t b[TOKENS];
#pragma GCC unroll 3
            for (size_t t = 0; t < TOKENS && t < tokens; t++)
                b[t] = vld1q_f32(x + t * x_stride + i + 4 * j);
#pragma GCC unroll 4
            for (size_t r = 0; r < ROWS && r < rows; r++) {
                float32x4_t a = vld1q_f32(w + r * w_stride + i + 4 * j);
#pragma GCC unroll 3
                for (size_t t = 0; t < TOKENS && t < tokens; t++)
                    sum[r][t][j] = vfmaq_f32(sum[r][t][j], a, b[t]);
            }
        }
    }
#pragma GCC unroll 4
    for (size_t r = 0; r < ROWS && r < rows; r++)
#pragma GCC unroll 3
        for (size_t t = 0; t < TOKENS && t < tokens; t++)
#pragma GCC unroll 2
            for (size_t j = 0; j < 2; j++)
                vst1q_f32(partial[r * TOKENS + t] + 4 * j, sum[r][t][j]);
}

static float horizontal_sum(const float partial[AK_LANES])
{
    float32x4_t sum[4];
#pragma GCC unroll 4
    for (size_t j = 0; j < 4; j++)
        sum[j] = vaddq_f32(vld1q_f32(partial + 4 * j), vld1q_f32(partial + 16 + 4 * j));
    return ak_neon_horizontal_sum4(vaddq_f32(vaddq_f32(sum[0], sum[2]), vaddq_f32(sum[1], sum[3])));
}

AK_KERNEL void dot_block(size_t rows, size_t tokens, const float *w, size_t w_stride,
                         const float *x, size_t x_stride, size_t k, float *y, size_t y_stride)
{
    float partial[ROWS * TOKENS][AK_LANES] = { { 0 } };
    for (size_t at = 0; at < k; at += CHUNK)
        for (size_t lane = 0; lane < AK_LANES; lane += STRIP)
            add_strip(rows, tokens, w + at + lane, w_stride, x + at + lane, x_stride,
                      ak_min_size(k - at, CHUNK), (float(*)[AK_LANES])(partial[0] + lane));
    for (size_t r = 0; r < rows; r++)
        for (size_t t = 0; t < tokens; t++)
            y[t * y_stride + r] = horizontal_sum(partial[r * TOKENS + t]);
}

/* All rows for one to three tokens. */
AK_KERNEL void dot_tokens(size_t tokens, const float *w, size_t w_stride, size_t n_rows,
                          const float *x, size_t x_stride, size_t k, float *y, size_t y_stride)
{
    size_t r = 0;
    for (; r + ROWS <= n_rows; r += ROWS)
        dot_block(ROWS, tokens, w + r * w_stride, w_stride, x, x_stride, k, y + r, y_stride);
    for (; r < n_rows; r++)
        dot_block(1, tokens, w + r * w_stride, w_stride, x, x_stride, k, y + r, y_stride);
}

static void dot_rows(const float *restrict w, size_t w_stride, size_t n_rows,
                     const float *restrict x, size_t x_stride, size_t n, size_t k,
                     float *restrict y, size_t y_stride)
{
    for (; n >= TOKENS; n -= TOKENS, x += TOKENS * x_stride, y += TOKENS * y_stride)
        dot_tokens(TOKENS, w, w_stride, n_rows, x, x_stride, k, y, y_stride);
    AK_CONSTANT(n, 2, N, dot_tokens(N, w, w_stride, n_rows, x, x_stride, k, y, y_stride));
}

AK_SETTER(dot_rows)
{
    k->dot_rows = dot_rows;
}
