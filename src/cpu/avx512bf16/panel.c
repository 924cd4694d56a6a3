/* Rows of BF16 times many tokens, which are rounded to BF16: pairs of products are
 * added to sums of floats by one instruction.
 *
 * A panel holds blocks of 6 rows: [block][step of 32 k][row] lines. 6 rows × 4 tokens
 * fill the registers, and what four tokens have in a chunk stays in the nearest cache
 * while all rows of the panel pass by. */
#include <immintrin.h>

#include "cpu/avx512bf16/avx512bf16.h"
#include "cpu/generic.h"

#ifdef __clang__
#define AK_UNROLL _Pragma("clang loop unroll(full)")
#else
#define AK_UNROLL _Pragma("GCC unroll 32")
#endif

enum { ROWS = 6, TOKENS = 4, LANES = 16, CHUNK = 2048 };

AK_KERNEL size_t chunk_at(size_t k, size_t at)
{
    return k - at < CHUNK ? k - at : CHUNK;
}

void ak_avx512bf16_open_row(const uint16_t *restrict w, size_t k, size_t row, uint16_t *restrict panel)
{
    uint16_t *to = panel + row / ROWS * ROWS * k + row % ROWS * AK_LANES;
    for (size_t i = 0; i < k; i += AK_LANES, to += ROWS * AK_LANES)
        _mm512_store_si512(to, _mm512_loadu_si512(w + i));
}

/* A chunk of `tokens` tokens as [step][token] lines. */
AK_KERNEL void open_tokens(const float *x, size_t x_stride, size_t tokens, size_t k, uint16_t *out)
{
    for (size_t t = 0; t < tokens; t++) {
        uint16_t *to = out + t * AK_LANES;
        for (size_t i = 0; i < k; i += AK_LANES, to += TOKENS * AK_LANES) {
            const float *from = x + t * x_stride + i;
            _mm512_store_si512(to, (__m512i)_mm512_cvtne2ps_pbh(_mm512_loadu_ps(from + LANES), _mm512_loadu_ps(from)));
        }
    }
}

/* Adds the products of a chunk of `steps` steps to sums[token][row]. rows and tokens
 * are constants. */
AK_KERNEL void pass(size_t rows, size_t tokens, const uint16_t *w, const uint16_t *x, size_t steps, bool is_first,
                    __m512 (*sums)[AK_PANEL_ROWS])
{
    __m512 acc[ROWS][TOKENS];
    AK_UNROLL
    for (size_t r = 0; r < rows; r++)
        AK_UNROLL
        for (size_t t = 0; t < tokens; t++)
            acc[r][t] = is_first ? _mm512_setzero_ps() : sums[t][r];
    for (size_t i = 0; i < steps; i++, w += ROWS * AK_LANES, x += TOKENS * AK_LANES) {
        __m512bh u[TOKENS];
        AK_UNROLL
        for (size_t t = 0; t < tokens; t++)
            u[t] = (__m512bh)_mm512_load_si512(x + t * AK_LANES);
        AK_UNROLL
        for (size_t r = 0; r < rows; r++) {
            __m512bh v = (__m512bh)_mm512_load_si512(w + r * AK_LANES);
            AK_UNROLL
            for (size_t t = 0; t < tokens; t++)
                acc[r][t] = _mm512_dpbf16_ps(acc[r][t], v, u[t]);
        }
    }
    AK_UNROLL
    for (size_t r = 0; r < rows; r++)
        AK_UNROLL
        for (size_t t = 0; t < tokens; t++)
            sums[t][r] = acc[r][t];
}

AK_KERNEL void dot_tokens(size_t tokens, const uint16_t *panel, size_t n_rows, const float *x, size_t x_stride, size_t k, float *y,
                          size_t y_stride)
{
    _Alignas(64) uint16_t opened[TOKENS * CHUNK];
    __m512 sums[TOKENS][AK_PANEL_ROWS];
    for (size_t at = 0; at < k; at += CHUNK) {
        size_t n = chunk_at(k, at), steps = n / AK_LANES;
        open_tokens(x + at, x_stride, tokens, n, opened);
        for (size_t r = 0; r < n_rows; r += ROWS) {
            const uint16_t *w = panel + r * k + at * ROWS;
            if (n_rows - r >= ROWS)
                pass(ROWS, tokens, w, opened, steps, at == 0, (__m512 (*)[AK_PANEL_ROWS])&sums[0][r]);
            else
                for (size_t i = 0; i < n_rows - r; i++)
                    pass(1, tokens, w + i * AK_LANES, opened, steps, at == 0, (__m512 (*)[AK_PANEL_ROWS])&sums[0][r + i]);
        }
    }
    for (size_t t = 0; t < tokens; t++)
        for (size_t r = 0; r < n_rows; r++)
            y[t * y_stride + r] = _mm512_reduce_add_ps(sums[t][r]);
}

void ak_avx512bf16_dot_panel(const uint16_t *restrict panel, size_t n_rows, const float *restrict x, size_t x_stride, size_t n, size_t k,
                             float *restrict y, size_t y_stride)
{
    for (; n >= TOKENS; n -= TOKENS, x += TOKENS * x_stride, y += TOKENS * y_stride)
        dot_tokens(TOKENS, panel, n_rows, x, x_stride, k, y, y_stride);
    for (; n > 0; n--, x += x_stride, y += y_stride)
        dot_tokens(1, panel, n_rows, x, x_stride, k, y, y_stride);
}
