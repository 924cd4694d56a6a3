/* Skinny GEMM over stored rows of F32, F16, BF16 and F8, dequantized in registers. Memory is
 * fastest in the order of addresses, row by row. But every row needs the tokens again: if they do
 * not stay in the L1 cache beside the weight stream, several rows share each load of a
 * token. */
#include "engine/cpu/setter.h"
#include "engine/cpu/avx2/stored.h"

enum {
    VECTORS = AK_LANES / 8,
    SUMS = 3,         /* maximum of rows × tokens per block */
    STAYS = 12 * 1024 /* bytes of a token that stay in the L1 cache */
};

/* Adds 32 k of rows × tokens: weights from element i of the rows on, tokens from `x` on. */
AK_KERNEL void step(enum ak_quant_type type, size_t rows, size_t tokens, const uint8_t *w,
                    size_t row_bytes, size_t i, const float *x, size_t x_stride,
                    __m256 sums[SUMS][VECTORS])
{
    AK_UNROLLED_FOR (size_t v = 0; v < VECTORS; v++)
        AK_UNROLLED_FOR (size_t r = 0; r < rows; r++) {
            __m256 a = load_stored(type, ak_cpu_stored_element(type, w + r * row_bytes, i + v * 8));
            AK_UNROLLED_FOR (size_t t = 0; t < tokens; t++) {
                __m256 *sum = &sums[r * tokens + t][v];
                *sum = _mm256_fmadd_ps(a, _mm256_loadu_ps(x + t * x_stride + v * 8), *sum);
            }
        }
}

/* The same for rows of F8; `w` points to the beginning of a block of 128. */
AK_KERNEL void step_f8(size_t rows, size_t tokens, const uint8_t *w, size_t row_bytes, size_t i,
                       const float *x, size_t x_stride, __m256 sums[SUMS][VECTORS])
{
    AK_UNROLLED_FOR (size_t r = 0; r < rows; r++) {
        __m256 a[VECTORS];
        load_f8(w + r * row_bytes, i, a);
        AK_UNROLLED_FOR (size_t v = 0; v < VECTORS; v++)
            AK_UNROLLED_FOR (size_t t = 0; t < tokens; t++) {
                __m256 *sum = &sums[r * tokens + t][v];
                *sum = _mm256_fmadd_ps(a[v], _mm256_loadu_ps(x + t * x_stride + v * 8), *sum);
            }
    }
}

/* One block of rows × tokens over all of k; both counts are constants. */
AK_KERNEL void block(enum ak_quant_type type, size_t rows, size_t tokens, const uint8_t *w,
                     size_t row_bytes, size_t cols, const float *x, size_t x_stride, float *y,
                     size_t y_stride, size_t distance)
{
    const size_t element = ak_cpu_stored_element_bytes(type), whole = cols / AK_LANES * AK_LANES;
    __m256 sums[SUMS][VECTORS];
    AK_UNROLLED_FOR (size_t i = 0; i < rows * tokens; i++)
        AK_UNROLLED_FOR (size_t v = 0; v < VECTORS; v++)
            sums[i][v] = _mm256_setzero_ps();
    for (size_t i = 0; type == AK_QUANT_F8 && i < cols; i += AK_F8_K) {
        ak_cpu_prefetch_stored(type, rows, w, row_bytes, i, AK_F8_K, distance);
        AK_UNROLLED_FOR (size_t j = 0; j < AK_F8_K; j += AK_LANES)
            step_f8(rows, tokens, ak_cpu_stored_scale(w, i), row_bytes, j, x + i + j, x_stride,
                    sums);
    }
    for (size_t i = 0; type != AK_QUANT_F8 && i < whole; i += AK_LANES) {
        ak_cpu_prefetch_stored(type, rows, w, row_bytes, i, AK_LANES, distance);
        step(type, rows, tokens, w, row_bytes, i, x + i, x_stride, sums);
    }
    if (whole < cols && type != AK_QUANT_F8) {
        uint8_t tail[SUMS][AK_LANES * sizeof(float)] = { { 0 } };
        for (size_t r = 0; r < rows; r++)
            memcpy(tail[r], w + r * row_bytes + whole * element, (cols - whole) * element);
        step(type, rows, tokens, tail[0], sizeof tail[0], 0, x + whole, x_stride, sums);
    }
    AK_UNROLLED_FOR (size_t t = 0; t < tokens; t++)
        AK_UNROLLED_FOR (size_t r = 0; r < rows; r++)
            y[t * y_stride + r] = horizontal_sum32(sums[r * tokens + t]);
}

AK_KERNEL void dot_stored(enum ak_quant_type type, const uint8_t *w, size_t row_bytes,
                          size_t n_rows, size_t cols, const float *x, size_t x_stride, size_t n,
                          float *y, size_t y_stride, size_t distance)
{
    for (; n == 1 && n_rows >= 3 && cols * sizeof *x > STAYS;
         n_rows -= 3, w += 3 * row_bytes, y += 3)
        block(type, 3, 1, w, row_bytes, cols, x, x_stride, y, y_stride, distance);
    for (; n_rows > 0; n_rows--, w += row_bytes, y++) {
        size_t t = 0;
        for (; t + 3 <= n; t += 3)
            block(type, 1, 3, w, row_bytes, cols, x + t * x_stride, x_stride, y + t * y_stride,
                  y_stride, distance);
        AK_CONSTANT(n - t, 2, N,
                    block(type, 1, N, w, row_bytes, cols, x + t * x_stride, x_stride,
                          y + t * y_stride, y_stride, distance));
    }
}

static AK_DOT_STORED(dot_f32, AK_QUANT_F32);
static AK_DOT_STORED(dot_f16, AK_QUANT_F16);
static AK_DOT_STORED(dot_bf16, AK_QUANT_BF16);
static AK_DOT_STORED(dot_f8, AK_QUANT_F8);

static void dequantize_f8(const void *restrict blocks, float *restrict out, size_t n)
{
    const uint8_t *row = blocks;
    for (size_t i = 0; i < n; i += AK_LANES) {
        __m256 v[AK_LANES / 8];
        load_f8(row, i, v);
        for (size_t j = 0; j < AK_LANES / 8; j++)
            _mm256_storeu_ps(out + i + 8 * j, v[j]);
    }
}

AK_SETTER(dot_stored)
{
    k->dequantize[AK_QUANT_F8] = dequantize_f8;
    k->dot_stored[AK_QUANT_F32] = dot_f32;
    k->dot_stored[AK_QUANT_F16] = dot_f16;
    k->dot_stored[AK_QUANT_BF16] = dot_bf16;
    k->dot_stored[AK_QUANT_F8] = dot_f8;
}
