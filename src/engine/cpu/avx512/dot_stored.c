/* Skinny GEMM over stored rows of F32, F16, BF16 and F8, dequantized in registers. Memory is
 * fastest in the order of addresses, row by row. But every row needs the tokens again: if they do
 * not stay in the L1 cache beside the weight stream, several rows share each load of a
 * token. */
#include "engine/cpu/setter.h"
#include "engine/cpu/avx512/stored.h"

enum {
    TOKENS = 4,       /* maximum tokens per block */
    SUMS = 2 * 12,    /* registers of partial sums */
    STAYS = 12 * 1024 /* bytes of a token that stay in the L1 cache */
};

/* Adds 32 k of rows × tokens: weights from element i of the rows on, tokens from `x` on. Each row
 * and token has two registers of sums. */
AK_KERNEL void step(enum ak_quant_type type, size_t rows, size_t tokens, const uint8_t *w,
                    size_t row_bytes, size_t i, const float *x, size_t x_stride, __m512 sums[SUMS])
{
    AK_UNROLLED_FOR (size_t r = 0; r < rows; r++) {
        __m512 a = load_stored(type, w + r * row_bytes, i),
               b = load_stored(type, w + r * row_bytes, i + 16);
        AK_UNROLLED_FOR (size_t t = 0; t < tokens; t++) {
            __m512 *sum = &sums[2 * (r * tokens + t)];
            sum[0] = _mm512_fmadd_ps(a, _mm512_loadu_ps(x + t * x_stride), sum[0]);
            sum[1] = _mm512_fmadd_ps(b, _mm512_loadu_ps(x + t * x_stride + 16), sum[1]);
        }
    }
}

/* One block of rows × tokens over all of k; both counts are constants. */
AK_KERNEL void block(enum ak_quant_type type, size_t rows, size_t tokens, const uint8_t *w,
                     size_t row_bytes, size_t cols, const float *x, size_t x_stride, float *y,
                     size_t y_stride, size_t distance)
{
    const size_t element = ak_cpu_stored_element_bytes(type), whole = cols / AK_LANES * AK_LANES;
    __m512 sums[SUMS];
    AK_UNROLLED_FOR (size_t i = 0; i < 2 * rows * tokens; i++)
        sums[i] = _mm512_setzero_ps();
    for (size_t i = 0; i < whole; i += AK_LANES) {
        ak_cpu_prefetch_stored(type, rows, w, row_bytes, i, AK_LANES, distance);
        step(type, rows, tokens, w, row_bytes, i, x + i, x_stride, sums);
    }
    if (whole < cols && type != AK_QUANT_F8) {
        uint8_t tail[SUMS / 2][AK_LANES * sizeof(float)] = { { 0 } };
        for (size_t r = 0; r < rows; r++)
            memcpy(tail[r], w + r * row_bytes + whole * element, (cols - whole) * element);
        step(type, rows, tokens, tail[0], sizeof tail[0], 0, x + whole, x_stride, sums);
    }
    AK_UNROLLED_FOR (size_t t = 0; t < tokens; t++)
        AK_UNROLLED_FOR (size_t r = 0; r < rows; r++)
            y[t * y_stride + r] = horizontal_sum(
                _mm512_add_ps(sums[2 * (r * tokens + t)], sums[2 * (r * tokens + t) + 1]));
}

/* All rows times `tokens` tokens, `shared` rows at a time; both are constants. */
AK_KERNEL void all_rows(enum ak_quant_type type, size_t shared, size_t tokens, const uint8_t *w,
                        size_t row_bytes, size_t n_rows, size_t cols, const float *x,
                        size_t x_stride, float *y, size_t y_stride, size_t distance)
{
    for (; n_rows >= shared; n_rows -= shared, w += shared * row_bytes, y += shared)
        block(type, shared, tokens, w, row_bytes, cols, x, x_stride, y, y_stride, distance);
    for (; n_rows > 0; n_rows--, w += row_bytes, y++)
        block(type, 1, tokens, w, row_bytes, cols, x, x_stride, y, y_stride, distance);
}

/* `rows` rows times all tokens. */
AK_KERNEL void all_tokens(enum ak_quant_type type, size_t rows, const uint8_t *w, size_t row_bytes,
                          size_t cols, const float *x, size_t x_stride, size_t n, float *y,
                          size_t y_stride, size_t distance)
{
    for (; n >= TOKENS; n -= TOKENS, x += TOKENS * x_stride, y += TOKENS * y_stride)
        block(type, rows, TOKENS, w, row_bytes, cols, x, x_stride, y, y_stride, distance);
    AK_CONSTANT(n, 3, N,
                block(type, rows, N, w, row_bytes, cols, x, x_stride, y, y_stride, distance));
}

AK_KERNEL void dot_stored(enum ak_quant_type type, const uint8_t *w, size_t row_bytes,
                          size_t n_rows, size_t cols, const float *x, size_t x_stride, size_t n,
                          float *y, size_t y_stride, size_t distance)
{
    bool stays = cols * sizeof *x <= STAYS;
    if (n == 1 && stays)
        all_rows(type, 1, 1, w, row_bytes, n_rows, cols, x, x_stride, y, y_stride, distance);
    else if (n == 1)
        all_rows(type, 8, 1, w, row_bytes, n_rows, cols, x, x_stride, y, y_stride, distance);
    else if (n == 2 && stays)
        all_rows(type, 1, 2, w, row_bytes, n_rows, cols, x, x_stride, y, y_stride, distance);
    else if (n == 2)
        all_rows(type, 6, 2, w, row_bytes, n_rows, cols, x, x_stride, y, y_stride, distance);
    else {
        for (; n_rows >= 3; n_rows -= 3, w += 3 * row_bytes, y += 3)
            all_tokens(type, 3, w, row_bytes, cols, x, x_stride, n, y, y_stride, distance);
        for (; n_rows > 0; n_rows--, w += row_bytes, y++)
            all_tokens(type, 1, w, row_bytes, cols, x, x_stride, n, y, y_stride, distance);
    }
}

static AK_DOT_STORED(dot_f32, AK_QUANT_F32);
static AK_DOT_STORED(dot_f16, AK_QUANT_F16);
static AK_DOT_STORED(dot_bf16, AK_QUANT_BF16);
static AK_DOT_STORED(dot_f8, AK_QUANT_F8);

AK_SETTER(dot_stored)
{
    k->dot_stored[AK_QUANT_F32] = dot_f32;
    k->dot_stored[AK_QUANT_F16] = dot_f16;
    k->dot_stored[AK_QUANT_BF16] = dot_bf16;
    k->dot_stored[AK_QUANT_F8] = dot_f8;
}
