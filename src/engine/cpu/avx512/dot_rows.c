/* Products of float rows, in blocks of rows × tokens with two vectors of partial sums each, which
 * stay in registers. */
#include "engine/cpu/setter.h"
#include "engine/cpu/avx512/lanes.h"

enum { ROWS = 3, TOKENS = 4 };

/* n_rows ≤ ROWS times n ≤ TOKENS; both are constants. */
AK_KERNEL void dot_block(const float *w, size_t w_stride, size_t n_rows, const float *x,
                         size_t x_stride, size_t n, size_t k, float *y, size_t y_stride)
{
    __m512 low[ROWS][TOKENS], high[ROWS][TOKENS];
    AK_UNROLLED_FOR (size_t r = 0; r < n_rows; r++)
        AK_UNROLLED_FOR (size_t t = 0; t < n; t++)
            low[r][t] = high[r][t] = _mm512_setzero_ps();
    for (size_t i = 0; i < k; i += AK_LANES) {
        __m512 v[ROWS];
        AK_UNROLLED_FOR (size_t r = 0; r < n_rows; r++)
            v[r] = _mm512_loadu_ps(w + r * w_stride + i);
        AK_UNROLLED_FOR (size_t t = 0; t < n; t++) {
            __m512 u = _mm512_loadu_ps(x + t * x_stride + i);
            AK_UNROLLED_FOR (size_t r = 0; r < n_rows; r++)
                low[r][t] = _mm512_fmadd_ps(v[r], u, low[r][t]);
        }
        AK_UNROLLED_FOR (size_t r = 0; r < n_rows; r++)
            v[r] = _mm512_loadu_ps(w + r * w_stride + i + 16);
        AK_UNROLLED_FOR (size_t t = 0; t < n; t++) {
            __m512 u = _mm512_loadu_ps(x + t * x_stride + i + 16);
            AK_UNROLLED_FOR (size_t r = 0; r < n_rows; r++)
                high[r][t] = _mm512_fmadd_ps(v[r], u, high[r][t]);
        }
    }
    AK_UNROLLED_FOR (size_t t = 0; t < n; t++)
        AK_UNROLLED_FOR (size_t r = 0; r < n_rows; r++)
            y[t * y_stride + r] = horizontal_sum(_mm512_add_ps(low[r][t], high[r][t]));
}

AK_KERNEL void dot_tokens(const float *w, size_t w_stride, size_t n_rows, const float *x,
                          size_t x_stride, size_t n, size_t k, float *y, size_t y_stride)
{
    for (; n >= TOKENS; n -= TOKENS, x += TOKENS * x_stride, y += TOKENS * y_stride)
        dot_block(w, w_stride, n_rows, x, x_stride, TOKENS, k, y, y_stride);
    for (; n > 0; n--, x += x_stride, y += y_stride)
        dot_block(w, w_stride, n_rows, x, x_stride, 1, k, y, y_stride);
}

static void dot_rows(const float *restrict w, size_t w_stride, size_t n_rows,
                     const float *restrict x, size_t x_stride, size_t n, size_t k,
                     float *restrict y, size_t y_stride)
{
    for (; n_rows >= ROWS; n_rows -= ROWS, w += ROWS * w_stride, y += ROWS)
        dot_tokens(w, w_stride, ROWS, x, x_stride, n, k, y, y_stride);
    for (; n_rows > 0; n_rows--, w += w_stride, y++)
        dot_tokens(w, w_stride, 1, x, x_stride, n, k, y, y_stride);
}

AK_SETTER(dot_rows)
{
    k->dot_rows = dot_rows;
}
