/* Products of float rows, for types without a kernel of their own.
 *
 * The 32 partial sums of a row and token are four vectors that are only added at the end, so
 * add_products may compute some of them for several rows and tokens at once: R rows × T tokens × V
 * vectors fill the registers, and R + T loads feed R·T multiplications. A chunk of k stays in the
 * L1 cache. */
#include "engine/cpu/setter.h"
#include "base/mem.h"
#include "engine/cpu/avx2/lanes.h"

enum { ROWS = 4, TOKENS = 3, VECTORS = AK_LANES / 8, CHUNK_K = 512 };

/* Adds a chunk's products to vectors first … first + n_vectors − 1 of the sums. */
AK_KERNEL void add_products(size_t rows, size_t tokens, size_t first, size_t n_vectors,
                            const float *w, size_t w_stride, const float *x, size_t x_stride,
                            size_t k, __m256 sums[VECTORS][ROWS][TOKENS])
{
    __m256 acc[VECTORS][ROWS][TOKENS];
#pragma GCC unroll 4
    for (size_t v = 0; v < VECTORS; v++)
#pragma GCC unroll 4
        for (size_t r = 0; r < ROWS; r++)
#pragma GCC unroll 4
            for (size_t t = 0; t < TOKENS; t++)
                if (v < n_vectors && r < rows && t < tokens)
                    acc[v][r][t] = sums[first + v][r][t];
    for (size_t i = first * 8; i < k; i += AK_LANES)
#pragma GCC unroll 4
        for (size_t v = 0; v < VECTORS; v++) {
            if (v >= n_vectors)
                continue;
            __m256 xs[TOKENS];
#pragma GCC unroll 4
            for (size_t t = 0; t < TOKENS; t++)
                if (t < tokens)
                    xs[t] = _mm256_loadu_ps(x + t * x_stride + i + v * 8);
#pragma GCC unroll 4
            for (size_t r = 0; r < ROWS; r++) {
                if (r >= rows)
                    continue;
                __m256 ws = _mm256_loadu_ps(w + r * w_stride + i + v * 8);
#pragma GCC unroll 4
                for (size_t t = 0; t < TOKENS; t++)
                    if (t < tokens)
                        acc[v][r][t] = _mm256_fmadd_ps(ws, xs[t], acc[v][r][t]);
            }
        }
#pragma GCC unroll 4
    for (size_t v = 0; v < VECTORS; v++)
#pragma GCC unroll 4
        for (size_t r = 0; r < ROWS; r++)
#pragma GCC unroll 4
            for (size_t t = 0; t < TOKENS; t++)
                if (v < n_vectors && r < rows && t < tokens)
                    sums[first + v][r][t] = acc[v][r][t];
}

/* `rows` rows times `tokens` tokens, with as many vectors at once as fit the registers. */
AK_KERNEL void block(size_t rows, size_t tokens, const float *w, size_t w_stride, const float *x,
                     size_t x_stride, size_t k, float *y, size_t y_stride)
{
    const size_t n_vectors = rows * tokens <= TOKENS ? 4 : rows * tokens <= 6 ? 2 : 1;
    __m256 sums[VECTORS][ROWS][TOKENS];
    for (size_t v = 0; v < VECTORS; v++)
        for (size_t r = 0; r < rows; r++)
            for (size_t t = 0; t < tokens; t++)
                sums[v][r][t] = _mm256_setzero_ps();
    for (size_t at = 0; at < k; at += CHUNK_K)
        for (size_t first = 0; first < VECTORS; first += n_vectors)
            add_products(rows, tokens, first, n_vectors, w + at, w_stride, x + at, x_stride,
                         ak_min_size(k - at, CHUNK_K), sums);
    for (size_t r = 0; r < rows; r++)
        for (size_t t = 0; t < tokens; t++) {
            __m256 partial[VECTORS] = { sums[0][r][t], sums[1][r][t], sums[2][r][t],
                                        sums[3][r][t] };
            y[t * y_stride + r] = horizontal_sum32(partial);
        }
}

/* All rows times `tokens` tokens. */
AK_KERNEL void column(size_t tokens, const float *w, size_t w_stride, size_t n_rows, const float *x,
                      size_t x_stride, size_t k, float *y, size_t y_stride)
{
    size_t r = 0;
    for (; r + ROWS <= n_rows; r += ROWS)
        block(ROWS, tokens, w + r * w_stride, w_stride, x, x_stride, k, y + r, y_stride);
    for (; r < n_rows; r++)
        block(1, tokens, w + r * w_stride, w_stride, x, x_stride, k, y + r, y_stride);
}

static void dot_rows(const float *restrict w, size_t w_stride, size_t n_rows,
                     const float *restrict x, size_t x_stride, size_t n, size_t k,
                     float *restrict y, size_t y_stride)
{
    size_t t = 0;
    for (; t + TOKENS <= n; t += TOKENS)
        column(TOKENS, w, w_stride, n_rows, x + t * x_stride, x_stride, k, y + t * y_stride,
               y_stride);
    AK_CONSTANT(
        n - t, 2, N,
        column(N, w, w_stride, n_rows, x + t * x_stride, x_stride, k, y + t * y_stride, y_stride));
}

AK_SETTER(dot_rows)
{
    k->dot_rows = dot_rows;
}
