/* Rows of floats times many tokens, as cpu/avx512/panel.c: lanes are rows, and the 32
 * partial sums come in the order in which they are added up (cpu/panel.h). 2 vectors of
 * rows × 6 tokens fill the registers. A panel is [block of 16 rows][turn][step][row],
 * tokens are [group of 6][turn][step][token]. */
#include "base/mem.h"
#include "cpu/avx2/avx2.h"
#include "cpu/avx2/stored.h"
#include "cpu/panel.h"

enum { LANES = 8, VECTORS = 2, ROWS = VECTORS * LANES, TOKENS = 6, GROUPS = 4 };

/* Lane r of v[i] and lane i of v[r] change places. */
AK_KERNEL void transpose(__m256 v[LANES])
{
    __m256 pairs[LANES], fours[LANES];
    AK_UNROLL
    for (size_t i = 0; i < LANES; i += 2) {
        pairs[i] = _mm256_unpacklo_ps(v[i], v[i + 1]);
        pairs[i + 1] = _mm256_unpackhi_ps(v[i], v[i + 1]);
    }
    AK_UNROLL
    for (size_t i = 0; i < LANES; i += 4)
        AK_UNROLL
        for (size_t j = 0; j < 2; j++) {
            __m256d a = _mm256_castps_pd(pairs[i + j]), b = _mm256_castps_pd(pairs[i + j + 2]);
            fours[i + 2 * j] = _mm256_castpd_ps(_mm256_unpacklo_pd(a, b));
            fours[i + 2 * j + 1] = _mm256_castpd_ps(_mm256_unpackhi_pd(a, b));
        }
    AK_UNROLL
    for (size_t j = 0; j < 4; j++) {
        v[j] = _mm256_permute2f128_ps(fours[j], fours[4 + j], 0x20);
        v[4 + j] = _mm256_permute2f128_ps(fours[j], fours[4 + j], 0x31);
    }
}

/* n ≤ LANES elements from number i on, then zeros. */
AK_KERNEL __m256 load_some_stored(enum ak_type type, const uint8_t *row, size_t i, size_t n)
{
    uint8_t some[LANES * sizeof(float)] = { 0 };
    if (n == LANES)
        return load_stored(type, row + i * element_bytes(type));
    memcpy(some, row + i * element_bytes(type), n * element_bytes(type));
    return load_stored(type, some);
}

AK_KERNEL void open_panel(enum ak_type type, const uint8_t *rows, size_t row_bytes, size_t n_rows, size_t cols, float *panel)
{
    size_t steps = (cols + AK_LANES - 1) / AK_LANES;
    for (size_t first = 0; first < ak_round_up(n_rows, ROWS); first += LANES) {
        float *block = panel + first / ROWS * ROWS * steps * AK_LANES + first % ROWS;
        for (size_t i = 0; i < steps * AK_LANES; i += LANES) {
            __m256 v[LANES];
            size_t n = i < cols ? ak_min_size(cols - i, LANES) : 0;
            AK_UNROLL
            for (size_t r = 0; r < LANES; r++)
                v[r] = first + r < n_rows && n ? load_some_stored(type, rows + (first + r) * row_bytes, i, n) : _mm256_setzero_ps();
            transpose(v);
            AK_UNROLL
            for (size_t j = 0; j < LANES; j++)
                _mm256_store_ps(block + (ak_panel_turn(i % AK_LANES + j) * steps + i / AK_LANES) * ROWS, v[j]);
        }
    }
}

AK_OPEN_PANEL(ak_avx2_open_f32, AK_F32)
AK_OPEN_PANEL(ak_avx2_open_f16, AK_F16)
AK_OPEN_PANEL(ak_avx2_open_bf16, AK_BF16)

void ak_avx2_open_token(const float *restrict x, size_t k, size_t token, float *restrict tokens)
{
    ak_panel_open_token(x, k, token, TOKENS, tokens);
}

/* One partial sum of 16 rows × 6 tokens, added to those before it that wait in
 * `waiting`, and left with them. */
static void pass(const float *w, const float *x, size_t steps, size_t turn, __m256 (*waiting)[TOKENS][VECTORS])
{
    __m256 acc[TOKENS][VECTORS];
    AK_UNROLL
    for (size_t t = 0; t < TOKENS; t++)
        AK_UNROLL
        for (size_t v = 0; v < VECTORS; v++)
            acc[t][v] = _mm256_setzero_ps();
    for (size_t i = 0; i < steps; i++, w += ROWS, x += TOKENS) {
        __m256 row[VECTORS];
        AK_UNROLL
        for (size_t v = 0; v < VECTORS; v++)
            row[v] = _mm256_load_ps(w + v * LANES);
        AK_UNROLL
        for (size_t t = 0; t < TOKENS; t++) {
            __m256 token = _mm256_set1_ps(x[t]);
            AK_UNROLL
            for (size_t v = 0; v < VECTORS; v++)
                acc[t][v] = _mm256_fmadd_ps(row[v], token, acc[t][v]);
        }
    }
    for (; turn & 1; turn >>= 1, waiting++)
        AK_UNROLL
        for (size_t t = 0; t < TOKENS; t++)
            AK_UNROLL
            for (size_t v = 0; v < VECTORS; v++)
                acc[t][v] = _mm256_add_ps((*waiting)[t][v], acc[t][v]);
    AK_UNROLL
    for (size_t t = 0; t < TOKENS; t++)
        AK_UNROLL
        for (size_t v = 0; v < VECTORS; v++)
            (*waiting)[t][v] = acc[t][v];
}

/* A block of rows and up to GROUPS groups of tokens. */
static void dot_groups(const float *block, size_t n_rows, const float *tokens, size_t n, size_t k, float *y, size_t y_stride)
{
    __m256 waiting[GROUPS][AK_PANEL_LEVELS + 1][TOKENS][VECTORS];
    size_t steps = k / AK_LANES;
    for (size_t turn = 0; turn < AK_LANES; turn++)
        for (size_t g = 0; g * TOKENS < n; g++)
            pass(block + turn * steps * ROWS, tokens + g * TOKENS * k + turn * steps * TOKENS, steps, turn, waiting[g]);
    for (size_t t = 0; t < n; t++)
        memcpy(y + t * y_stride, waiting[t / TOKENS][AK_PANEL_LEVELS][t % TOKENS], n_rows * sizeof *y);
}

void ak_avx2_dot_panel(const float *restrict panel, size_t n_rows, const float *restrict tokens, size_t n, size_t k, float *restrict y,
                       size_t y_stride)
{
    for (size_t t = 0; t < n; t += GROUPS * TOKENS)
        for (size_t r = 0; r < n_rows; r += ROWS)
            dot_groups(panel + r * k, ak_min_size(n_rows - r, ROWS), tokens + t * k, ak_min_size(n - t, GROUPS * TOKENS), k,
                       y + t * y_stride + r, y_stride);
}
