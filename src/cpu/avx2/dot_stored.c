/* Stored rows of F32, F16 and BF16 times few tokens, widened in registers: a row at
 * a time, so that memory is read in the order of addresses. */
#include "cpu/avx2/avx2.h"
#include "cpu/avx2/stored.h"

enum { TOKENS = 3, VECTORS = AK_LANES / 8 };

/* Adds 32 k of one row × tokens; `w` and `x` point to the first of them. */
AK_KERNEL void step(enum ak_type type, size_t tokens, const uint8_t *w, const float *x, size_t x_stride, __m256 sums[TOKENS][VECTORS])
{
#pragma GCC unroll 4
    for (size_t v = 0; v < VECTORS; v++) {
        __m256 a = load_stored(type, w + v * 8 * element_bytes(type));
#pragma GCC unroll 3
        for (size_t t = 0; t < TOKENS; t++)
            if (t < tokens)
                sums[t][v] = _mm256_fmadd_ps(a, _mm256_loadu_ps(x + t * x_stride + v * 8), sums[t][v]);
    }
}

/* tokens is a constant. */
AK_KERNEL void row_products(enum ak_type type, size_t tokens, const uint8_t *w, size_t cols, const float *x, size_t x_stride, float *y,
                            size_t y_stride)
{
    const size_t element = element_bytes(type), whole = cols / AK_LANES * AK_LANES;
    __m256 sums[TOKENS][VECTORS];
#pragma GCC unroll 3
    for (size_t t = 0; t < TOKENS; t++)
#pragma GCC unroll 4
        for (size_t v = 0; v < VECTORS; v++)
            sums[t][v] = _mm256_setzero_ps();
    for (size_t i = 0; i < whole; i += AK_LANES)
        step(type, tokens, w + i * element, x + i, x_stride, sums);
    if (whole < cols) {
        uint8_t tail[AK_LANES * sizeof(float)] = { 0 };
        memcpy(tail, w + whole * element, (cols - whole) * element);
        step(type, tokens, tail, x + whole, x_stride, sums);
    }
#pragma GCC unroll 3
    for (size_t t = 0; t < TOKENS; t++)
        if (t < tokens)
            y[t * y_stride] = fold_32(sums[t]);
}

AK_KERNEL void dot_stored(enum ak_type type, const uint8_t *w, size_t row_bytes, size_t n_rows, size_t cols, const float *x,
                          size_t x_stride, size_t n, float *y, size_t y_stride)
{
    for (size_t r = 0; r < n_rows; r++, w += row_bytes, y++) {
        size_t t = 0;
        for (; t + TOKENS <= n; t += TOKENS)
            row_products(type, TOKENS, w, cols, x + t * x_stride, x_stride, y + t * y_stride, y_stride);
        if (n - t == 2)
            row_products(type, 2, w, cols, x + t * x_stride, x_stride, y + t * y_stride, y_stride);
        else if (n - t == 1)
            row_products(type, 1, w, cols, x + t * x_stride, x_stride, y + t * y_stride, y_stride);
    }
}

AK_DOT_STORED(ak_avx2_dot_f32, AK_F32)
AK_DOT_STORED(ak_avx2_dot_f16, AK_F16)
AK_DOT_STORED(ak_avx2_dot_bf16, AK_BF16)
