/* Rows of BF16, or of F16 rounded to it, times many tokens, which are rounded to BF16: pairs of products are
 * added to sums of floats by one instruction.
 *
 * Both operands are opened alike, 6 rows or 4 tokens to a block: [block][step of 32
 * k][row] lines. 6 rows × 4 tokens fill the registers. Two blocks of tokens are taken
 * at once: what they have in a chunk stays in the nearest cache while all rows of the
 * panel pass by, and each block of rows comes from the next cache once for both. */
#include <immintrin.h>

#include "cpu/avx512bf16/avx512bf16.h"
#include "cpu/avx512bf16/round.h"
#include "cpu/generic.h"

enum { ROWS = 6, TOKENS = 4, GROUPS = 2, CHUNK = 1024 };

AK_KERNEL size_t chunk_at(size_t k, size_t at)
{
    return k - at < CHUNK ? k - at : CHUNK;
}

AK_KERNEL void open_panel(enum ak_type type, const uint8_t *restrict rows, size_t row_bytes, size_t n_rows, size_t k,
                          uint16_t *restrict panel)
{
    for (size_t row = 0; row < n_rows; row++, rows += row_bytes) {
        uint16_t *to = panel + row / ROWS * ROWS * k + row % ROWS * AK_LANES;
        for (size_t i = 0; i < k; i += AK_LANES, to += ROWS * AK_LANES)
            _mm512_store_si512(to, load_rounded(type, rows + i * sizeof *panel));
    }
}

void ak_avx512bf16_open_bf16(const uint8_t *restrict rows, size_t row_bytes, size_t n_rows, size_t k, uint16_t *restrict panel)
{
    open_panel(AK_BF16, rows, row_bytes, n_rows, k, panel);
}

void ak_avx512bf16_open_f16(const uint8_t *restrict rows, size_t row_bytes, size_t n_rows, size_t k, uint16_t *restrict panel)
{
    open_panel(AK_F16, rows, row_bytes, n_rows, k, panel);
}

void ak_avx512bf16_open_token(const float *restrict x, size_t k, size_t token, uint16_t *restrict tokens)
{
    uint16_t *to = tokens + token / TOKENS * TOKENS * k + token % TOKENS * AK_LANES;
    for (size_t i = 0; i < k; i += AK_LANES, to += TOKENS * AK_LANES)
        _mm512_store_si512(to, round_floats(_mm512_loadu_ps(x + i), _mm512_loadu_ps(x + i + AK_LANES / 2)));
}

/* Adds the products of a chunk of `steps` steps to sums[token][row]. rows and tokens
 * are constants. Brings a line a step from `ahead` on nearer. */
AK_KERNEL void pass(size_t rows, size_t tokens, const uint16_t *w, const uint16_t *x, size_t steps, const uint16_t *ahead, bool is_first,
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
        _mm_prefetch((const char *)(ahead + i * AK_LANES), _MM_HINT_T1);
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

/* `groups` blocks of `tokens` tokens, k · TOKENS apart. The passes ask for the lines of
 * the next chunk, which follow those of this one: tokens come from a far cache. */
AK_KERNEL void dot_tokens(size_t groups, size_t tokens, const uint16_t *panel, size_t n_rows, const uint16_t *x, size_t k, float *y,
                          size_t y_stride)
{
    __m512 sums[GROUPS][TOKENS][AK_PANEL_ROWS];
    for (size_t at = 0; at < k; at += CHUNK) {
        size_t n = chunk_at(k, at), steps = n / AK_LANES;
        for (size_t r = 0; r < n_rows; r += ROWS) {
            const uint16_t *w = panel + r * k + at * ROWS;
            for (size_t g = 0; g < groups; g++) {
                const uint16_t *u = x + (g * k + at) * TOKENS, *ahead = u + (TOKENS + r / ROWS % TOKENS) * n;
                if (n_rows - r >= ROWS)
                    pass(ROWS, tokens, w, u, steps, ahead, at == 0, (__m512 (*)[AK_PANEL_ROWS])&sums[g][0][r]);
                else
                    for (size_t i = 0; i < n_rows - r; i++)
                        pass(1, tokens, w + i * AK_LANES, u, steps, ahead, at == 0, (__m512 (*)[AK_PANEL_ROWS])&sums[g][0][r + i]);
            }
        }
    }
    for (size_t g = 0; g < groups; g++)
        for (size_t t = 0; t < tokens; t++)
            for (size_t r = 0; r < n_rows; r++)
                y[(g * TOKENS + t) * y_stride + r] = _mm512_reduce_add_ps(sums[g][t][r]);
}

void ak_avx512bf16_dot_panel(const uint16_t *restrict panel, size_t n_rows, const uint16_t *restrict tokens, size_t n, size_t k,
                             float *restrict y, size_t y_stride)
{
    for (; n >= GROUPS * TOKENS; n -= GROUPS * TOKENS, tokens += GROUPS * TOKENS * k, y += GROUPS * TOKENS * y_stride)
        dot_tokens(GROUPS, TOKENS, panel, n_rows, tokens, k, y, y_stride);
    for (size_t most; n > 0; n -= most, tokens += most * k, y += most * y_stride) {
        most = n < TOKENS ? n : TOKENS;
        switch (most) {
        case 1: dot_tokens(1, 1, panel, n_rows, tokens, k, y, y_stride); break;
        case 2: dot_tokens(1, 2, panel, n_rows, tokens, k, y, y_stride); break;
        case 3: dot_tokens(1, 3, panel, n_rows, tokens, k, y, y_stride); break;
        default: dot_tokens(1, TOKENS, panel, n_rows, tokens, k, y, y_stride); break;
        }
    }
}
