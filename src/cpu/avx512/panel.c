/* Rows of floats times many tokens.
 *
 * Both operands are opened alike, 6 rows or 4 tokens to a block: [block][chunk of
 * k][half][step][row] lines of 16 lanes, where a half is lanes 0 … 15 or 16 … 31 of
 * the 32 partial sums, which never meet before the end. So 6 rows × 4 tokens of one
 * half fill the registers, and both operands are read as streams. Two blocks of tokens
 * are taken at once: what they have in half of a chunk stays in the nearest cache
 * while all rows of the panel pass by, and each block of rows comes from the next
 * cache once for both. */
#include "cpu/avx512/avx512.h"
#include "cpu/avx512/lanes.h"

enum { ROWS = 6, TOKENS = 4, GROUPS = 2, HALVES = 2, LANES = 16, CHUNK = 1024 };

AK_KERNEL size_t chunk_at(size_t k, size_t at)
{
    return k - at < CHUNK ? k - at : CHUNK;
}

/* Puts number i in its place in blocks of `count`. */
AK_KERNEL void open_floats(const float *x, size_t k, size_t i, size_t count, float *out)
{
    float *to = out + i / count * count * k + i % count * LANES;
    for (size_t at = 0; at < k; at += CHUNK) {
        size_t n = chunk_at(k, at), half = n / HALVES * count;
        for (size_t j = 0; j < n; j += AK_LANES, to += count * LANES) {
            _mm512_store_ps(to, _mm512_loadu_ps(x + at + j));
            _mm512_store_ps(to + half, _mm512_loadu_ps(x + at + j + LANES));
        }
        to += half;
    }
}

void ak_avx512_open_row(const float *restrict x, size_t k, size_t i, float *restrict out)
{
    open_floats(x, k, i, ROWS, out);
}

void ak_avx512_open_token(const float *restrict x, size_t k, size_t i, float *restrict out)
{
    open_floats(x, k, i, TOKENS, out);
}

/* Adds one half's products of a chunk of `steps` steps to sums[token][row]. rows and
 * tokens are constants. Brings a line a step from `ahead` on nearer. */
AK_KERNEL void pass(size_t rows, size_t tokens, const float *w, const float *x, size_t steps, const float *ahead, bool is_first,
                    __m512 (*sums)[AK_PANEL_ROWS])
{
    __m512 acc[ROWS][TOKENS];
    AK_UNROLL
    for (size_t r = 0; r < rows; r++)
        AK_UNROLL
        for (size_t t = 0; t < tokens; t++)
            acc[r][t] = is_first ? _mm512_setzero_ps() : sums[t][r];
    for (size_t i = 0; i < steps; i++, w += ROWS * LANES, x += TOKENS * LANES) {
        __m512 u[TOKENS];
        _mm_prefetch((const char *)(ahead + i * LANES), _MM_HINT_T1);
        AK_UNROLL
        for (size_t t = 0; t < tokens; t++)
            u[t] = _mm512_load_ps(x + t * LANES);
        AK_UNROLL
        for (size_t r = 0; r < rows; r++) {
            __m512 v = _mm512_load_ps(w + r * LANES);
            AK_UNROLL
            for (size_t t = 0; t < tokens; t++)
                acc[r][t] = _mm512_fmadd_ps(v, u[t], acc[r][t]);
        }
    }
    AK_UNROLL
    for (size_t r = 0; r < rows; r++)
        AK_UNROLL
        for (size_t t = 0; t < tokens; t++)
            sums[t][r] = acc[r][t];
}

/* All rows of a panel times a chunk of `groups` blocks of `tokens` tokens at x, blocks
 * k · TOKENS apart. The passes ask for the lines of the next chunk, which follow those
 * of this one: tokens come from a far cache. */
AK_KERNEL void chunk_products(size_t groups, size_t tokens, const float *panel, size_t n_rows, size_t k, size_t at, const float *x,
                              __m512 (*sums)[GROUPS][TOKENS][AK_PANEL_ROWS])
{
    size_t n = chunk_at(k, at), steps = n / AK_LANES;
    for (size_t half = 0; half < HALVES; half++)
        for (size_t r = 0; r < n_rows; r += ROWS)
            for (size_t g = 0; g < groups; g++) {
                const float *u = x + g * TOKENS * k + half * steps * TOKENS * LANES;
                const float *ahead = u + TOKENS * n + r / ROWS % TOKENS * steps * LANES;
                const float *w = panel + r * k + at * ROWS + half * steps * ROWS * LANES;
                __m512 (*to)[AK_PANEL_ROWS] = (__m512 (*)[AK_PANEL_ROWS])(&sums[half][g][0][r]);
                if (n_rows - r >= ROWS)
                    pass(ROWS, tokens, w, u, steps, ahead, at == 0, to);
                else
                    for (size_t i = 0; i < n_rows - r; i++)
                        pass(1, tokens, w + i * LANES, u, steps, ahead, at == 0, (__m512 (*)[AK_PANEL_ROWS])(&to[0][i]));
            }
}

/* Lane i: fold_lanes of v[i]. */
AK_KERNEL __m512 fold_16(const __m512 v[16])
{
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    __m512 eight[8], four[4], two[2];
    AK_UNROLL
    for (size_t i = 0; i < 8; i++)
        eight[i] = _mm512_add_ps(_mm512_shuffle_f32x4(v[2 * i], v[2 * i + 1], 0x44), _mm512_shuffle_f32x4(v[2 * i], v[2 * i + 1], 0xee));
    AK_UNROLL
    for (size_t i = 0; i < 4; i++)
        four[i] = _mm512_add_ps(_mm512_shuffle_f32x4(eight[2 * i], eight[2 * i + 1], 0x88),
                                _mm512_shuffle_f32x4(eight[2 * i], eight[2 * i + 1], 0xdd));
    AK_UNROLL
    for (size_t i = 0; i < 2; i++) {
        __m512d a = _mm512_castps_pd(four[2 * i]), b = _mm512_castps_pd(four[2 * i + 1]);
        two[i] = _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(a, b)), _mm512_castpd_ps(_mm512_unpackhi_pd(a, b)));
    }
    return _mm512_permutexvar_ps(order, _mm512_add_ps(_mm512_shuffle_ps(two[0], two[1], 0x88), _mm512_shuffle_ps(two[0], two[1], 0xdd)));
}

/* Rows beyond n_rows hold anything. */
AK_KERNEL void fold_rows(const __m512 low[AK_PANEL_ROWS], const __m512 high[AK_PANEL_ROWS], size_t n_rows, float *y)
{
    for (size_t r = 0; r < n_rows; r += 16) {
        __m512 v[16];
        AK_UNROLL
        for (size_t i = 0; i < 16; i++)
            v[i] = _mm512_add_ps(low[r + i], high[r + i]);
        _mm512_mask_storeu_ps(y + r, n_rows - r < 16 ? first_lanes(n_rows - r) : (__mmask16)0xffff, fold_16(v));
    }
}

AK_KERNEL void dot_tokens(size_t groups, size_t tokens, const float *panel, size_t n_rows, const float *x, size_t k, float *y,
                          size_t y_stride)
{
    __m512 sums[HALVES][GROUPS][TOKENS][AK_PANEL_ROWS];
    for (size_t half = 0; half < HALVES; half++)
        for (size_t t = 0; t < groups * TOKENS; t++)
            for (size_t r = n_rows; r % 16 != 0; r++)
                sums[half][t / TOKENS][t % TOKENS][r] = _mm512_setzero_ps();
    for (size_t at = 0; at < k; at += CHUNK)
        chunk_products(groups, tokens, panel, n_rows, k, at, x + at * TOKENS, sums);
    for (size_t g = 0; g < groups; g++)
        for (size_t t = 0; t < tokens; t++)
            fold_rows(sums[0][g][t], sums[1][g][t], n_rows, y + (g * TOKENS + t) * y_stride);
}

void ak_avx512_dot_panel(const float *restrict panel, size_t n_rows, const float *restrict tokens, size_t n, size_t k, float *restrict y,
                         size_t y_stride)
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
