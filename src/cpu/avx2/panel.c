/* Rows of floats times many tokens.
 *
 * Both operands are opened alike, 4 rows or 3 tokens to a block: [block][chunk of
 * k][quarter][step][row] vectors of 8 lanes, where a quarter is 8 of the 32 partial
 * sums, which never meet before the end. So 4 rows × 3 tokens of one quarter fill the
 * registers, and both operands are read as streams. Two blocks of tokens are taken at
 * once: what they have in a quarter of a chunk stays in the nearest cache while all
 * rows of the panel pass by, and each block of rows comes from the next cache once
 * for both. */
#include "base/mem.h"
#include "cpu/avx2/avx2.h"
#include "cpu/avx2/lanes.h"

enum { ROWS = 4, TOKENS = 3, GROUPS = 2, QUARTERS = 4, LANES = 8, CHUNK = 1024 };

AK_KERNEL size_t chunk_at(size_t k, size_t at)
{
    return k - at < CHUNK ? k - at : CHUNK;
}

/* Puts number i in its place in blocks of `count`. */
AK_KERNEL void open_floats(const float *x, size_t k, size_t i, size_t count, float *out)
{
    float *to = out + i / count * count * k + i % count * LANES;
    for (size_t at = 0; at < k; at += CHUNK) {
        size_t n = chunk_at(k, at), quarter = n / QUARTERS * count;
        for (size_t j = 0; j < n; j += AK_LANES, to += count * LANES)
            for (size_t q = 0; q < QUARTERS; q++)
                _mm256_store_ps(to + q * quarter, _mm256_loadu_ps(x + at + j + q * LANES));
        to += (QUARTERS - 1) * quarter;
    }
}

void ak_avx2_open_row(const float *restrict x, size_t k, size_t i, float *restrict out)
{
    open_floats(x, k, i, ROWS, out);
}

void ak_avx2_open_token(const float *restrict x, size_t k, size_t i, float *restrict out)
{
    open_floats(x, k, i, TOKENS, out);
}

/* Adds one quarter's products of a chunk of `steps` steps to sums[row][token]. rows
 * and tokens are constants. */
AK_KERNEL void pass(size_t rows, size_t tokens, const float *w, const float *x, size_t steps, bool is_first, __m256 (*sums)[TOKENS])
{
    __m256 acc[ROWS][TOKENS];
#pragma GCC unroll 4
    for (size_t r = 0; r < ROWS; r++)
#pragma GCC unroll 3
        for (size_t t = 0; t < TOKENS; t++)
            if (r < rows && t < tokens)
                acc[r][t] = is_first ? _mm256_setzero_ps() : sums[r][t];
    for (size_t i = 0; i < steps; i++, w += ROWS * LANES, x += TOKENS * LANES) {
        __m256 u[TOKENS];
#pragma GCC unroll 3
        for (size_t t = 0; t < TOKENS; t++)
            if (t < tokens)
                u[t] = _mm256_load_ps(x + t * LANES);
#pragma GCC unroll 4
        for (size_t r = 0; r < ROWS; r++) {
            if (r >= rows)
                continue;
            __m256 v = _mm256_load_ps(w + r * LANES);
#pragma GCC unroll 3
            for (size_t t = 0; t < TOKENS; t++)
                if (t < tokens)
                    acc[r][t] = _mm256_fmadd_ps(v, u[t], acc[r][t]);
        }
    }
#pragma GCC unroll 4
    for (size_t r = 0; r < ROWS; r++)
#pragma GCC unroll 3
        for (size_t t = 0; t < TOKENS; t++)
            if (r < rows && t < tokens)
                sums[r][t] = acc[r][t];
}

/* One block of `rows` rows times a group of up to TOKENS tokens. */
static void block_group(size_t rows, size_t tokens, const float *w, const float *x, size_t steps, bool is_first, __m256 (*sums)[TOKENS])
{
    if (rows == ROWS && tokens == TOKENS) {
        pass(ROWS, TOKENS, w, x, steps, is_first, sums);
        return;
    }
    for (size_t r = 0; r < rows; r++)
        for (size_t t = 0; t < tokens; t++)
            pass(1, 1, w + r * LANES, x + t * LANES, steps, is_first, (__m256 (*)[TOKENS])&sums[r][t]);
}

/* All rows of a panel times a chunk of `tokens` tokens at x. */
static void chunk_products(size_t tokens, const float *panel, size_t n_rows, size_t k, size_t at, const float *x,
                           __m256 (*sums)[GROUPS][AK_PANEL_ROWS][TOKENS])
{
    size_t steps = chunk_at(k, at) / AK_LANES;
    for (size_t j = 0; j < QUARTERS; j++)
        for (size_t r = 0; r < n_rows; r += ROWS)
            for (size_t t = 0; t < tokens; t += TOKENS)
                block_group(ak_min_size(n_rows - r, ROWS), ak_min_size(tokens - t, TOKENS),
                            panel + r * k + at * ROWS + j * steps * ROWS * LANES, x + t * k + j * steps * TOKENS * LANES, steps, at == 0,
                            &sums[j][t / TOKENS][r]);
}

void ak_avx2_dot_panel(const float *restrict panel, size_t n_rows, const float *restrict tokens, size_t n, size_t k, float *restrict y,
                       size_t y_stride)
{
    __m256 sums[QUARTERS][GROUPS][AK_PANEL_ROWS][TOKENS];
    for (size_t first = 0, count; first < n; first += count, tokens += count * k) {
        count = ak_min_size(n - first, GROUPS * TOKENS);
        for (size_t at = 0; at < k; at += CHUNK)
            chunk_products(count, panel, n_rows, k, at, tokens + at * TOKENS, sums);
        for (size_t t = 0; t < count; t++)
            for (size_t r = 0; r < n_rows; r++) {
                size_t g = t / TOKENS, i = t % TOKENS;
                __m256 partial[QUARTERS] = { sums[0][g][r][i], sums[1][g][r][i], sums[2][g][r][i], sums[3][g][r][i] };
                y[(first + t) * y_stride + r] = fold_32(partial);
            }
    }
}
