/* Stored rows of F32, F16 and BF16 times few tokens, widened in registers. One or two
 * tokens are bound by memory, which wants to be read in the order of addresses, row
 * by row; more of them want several rows for each load of theirs. */
#include "cpu/avx512/avx512.h"
#include "cpu/avx512/stored.h"

enum { ROWS = 3, TOKENS = 4 };

/* Adds 32 k of rows × tokens; `w` and `x` point to the first of them. */
AK_KERNEL void step(enum ak_type type, size_t rows, size_t tokens, const uint8_t *w, size_t row_bytes, const float *x, size_t x_stride,
                    __m512 low[ROWS][TOKENS], __m512 high[ROWS][TOKENS])
{
    AK_UNROLL
    for (size_t r = 0; r < rows; r++) {
        __m512 a = load_stored(type, w + r * row_bytes, 0), b = load_stored(type, w + r * row_bytes, 16);
        AK_UNROLL
        for (size_t t = 0; t < tokens; t++) {
            low[r][t] = _mm512_fmadd_ps(a, _mm512_loadu_ps(x + t * x_stride), low[r][t]);
            high[r][t] = _mm512_fmadd_ps(b, _mm512_loadu_ps(x + t * x_stride + 16), high[r][t]);
        }
    }
}

/* rows and tokens are constants. */
AK_KERNEL void block(enum ak_type type, size_t rows, size_t tokens, const uint8_t *w, size_t row_bytes, size_t cols, const float *x,
                     size_t x_stride, float *y, size_t y_stride)
{
    const size_t element = element_bytes(type), whole = cols / AK_LANES * AK_LANES;
    __m512 low[ROWS][TOKENS], high[ROWS][TOKENS];
    AK_UNROLL
    for (size_t r = 0; r < rows; r++)
        AK_UNROLL
        for (size_t t = 0; t < tokens; t++)
            low[r][t] = high[r][t] = _mm512_setzero_ps();
    for (size_t i = 0; i < whole; i += AK_LANES)
        step(type, rows, tokens, w + i * element, row_bytes, x + i, x_stride, low, high);
    if (whole < cols) {
        uint8_t tail[ROWS][AK_LANES * sizeof(float)] = { { 0 } };
        for (size_t r = 0; r < rows; r++)
            memcpy(tail[r], w + r * row_bytes + whole * element, (cols - whole) * element);
        step(type, rows, tokens, tail[0], sizeof tail[0], x + whole, x_stride, low, high);
    }
    AK_UNROLL
    for (size_t t = 0; t < tokens; t++)
        AK_UNROLL
        for (size_t r = 0; r < rows; r++)
            y[t * y_stride + r] = fold_lanes(_mm512_add_ps(low[r][t], high[r][t]));
}

/* `rows` rows and all tokens. */
AK_KERNEL void all_tokens(enum ak_type type, size_t rows, const uint8_t *w, size_t row_bytes, size_t cols, const float *x, size_t x_stride,
                          size_t n, float *y, size_t y_stride)
{
    for (; n >= TOKENS; n -= TOKENS, x += TOKENS * x_stride, y += TOKENS * y_stride)
        block(type, rows, TOKENS, w, row_bytes, cols, x, x_stride, y, y_stride);
    if (n == 3)
        block(type, rows, 3, w, row_bytes, cols, x, x_stride, y, y_stride);
    else if (n == 2)
        block(type, rows, 2, w, row_bytes, cols, x, x_stride, y, y_stride);
    else if (n == 1)
        block(type, rows, 1, w, row_bytes, cols, x, x_stride, y, y_stride);
}

AK_KERNEL void dot_stored(enum ak_type type, const uint8_t *w, size_t row_bytes, size_t n_rows, size_t cols, const float *x,
                          size_t x_stride, size_t n, float *y, size_t y_stride)
{
    for (; n > 2 && n_rows >= ROWS; n_rows -= ROWS, w += ROWS * row_bytes, y += ROWS)
        all_tokens(type, ROWS, w, row_bytes, cols, x, x_stride, n, y, y_stride);
    for (; n_rows > 0; n_rows--, w += row_bytes, y++)
        all_tokens(type, 1, w, row_bytes, cols, x, x_stride, n, y, y_stride);
}

AK_DOT_STORED(ak_avx512_dot_f32, AK_F32)
AK_DOT_STORED(ak_avx512_dot_f16, AK_F16)
AK_DOT_STORED(ak_avx512_dot_bf16, AK_BF16)
