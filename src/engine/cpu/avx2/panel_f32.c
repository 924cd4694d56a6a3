/* F32 GEMM, as engine/cpu/avx512/panel_f32.c: lanes are rows, and the 32 partial sums are computed
 * in bit-reversed order (engine/cpu/panel.h). 2 vectors of rows × 6 tokens fill the registers. A
 * panel is [block of 16 rows][bit-reversed sum][step][row], tokens are [group of 6][bit-reversed
 * sum][step][token]. */
#include "engine/cpu/setter.h"
#include "base/mem.h"
#include "engine/cpu/avx2/stored.h"
#include "engine/cpu/panel.h"

enum {
    LANES = 8,
    VECTORS = 2,
    ROWS = VECTORS * LANES,
    TOKENS = 6,
    TOKENS_LEFT = 4,
    GROUPS = 4,
    QUAD = 4
};

AK_KERNEL __m128i load_word(const void *p)
{
    int32_t word;
    memcpy(&word, p, sizeof word);
    return _mm_cvtsi32_si128(word);
}

/* Loads 4 elements from element i on of two rows. */
AK_KERNEL __m256 load_quads(enum ak_quant_type type, const uint8_t *a, const uint8_t *b, size_t i)
{
    const void *p = ak_cpu_stored_element(type, a, i), *q = ak_cpu_stored_element(type, b, i);
    if (type == AK_QUANT_F32)
        return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(p)), _mm_loadu_ps(q), 1);
    if (type == AK_QUANT_F8) {
        __m128i bytes = _mm_unpacklo_epi32(load_word(p), load_word(q));
        __m256i halves =
            halves_of_f8(_mm256_castsi128_si256(_mm_unpacklo_epi8(_mm_setzero_si128(), bytes)));
        __m256 scales = _mm256_blend_ps(load_scale(a, i), load_scale(b, i), 0xf0);
        return _mm256_mul_ps(_mm256_cvtph_ps(_mm256_castsi256_si128(halves)), scales);
    }
    __m128i halves = _mm_unpacklo_epi64(_mm_loadl_epi64(p), _mm_loadl_epi64(q));
    if (type == AK_QUANT_F16)
        return _mm256_cvtph_ps(halves);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
}

/* Lane i of v[r] becomes lane r of v[i], in each half. */
AK_KERNEL void transpose(__m256 v[QUAD])
{
    __m256d low[2], high[2];
    AK_UNROLLED_FOR (size_t i = 0; i < 2; i++) {
        low[i] = _mm256_castps_pd(_mm256_unpacklo_ps(v[2 * i], v[2 * i + 1]));
        high[i] = _mm256_castps_pd(_mm256_unpackhi_ps(v[2 * i], v[2 * i + 1]));
    }
    v[0] = _mm256_castpd_ps(_mm256_unpacklo_pd(low[0], low[1]));
    v[1] = _mm256_castpd_ps(_mm256_unpackhi_pd(low[0], low[1]));
    v[2] = _mm256_castpd_ps(_mm256_unpacklo_pd(high[0], high[1]));
    v[3] = _mm256_castpd_ps(_mm256_unpackhi_pd(high[0], high[1]));
}

/* Unpacks 32 k of 16 rows, from element i on, in bit-reversed order, sums `stride` apart. Writes
 * whole cache lines. */
AK_KERNEL void unpack_step(enum ak_quant_type type, const uint8_t *const rows[ROWS], size_t i,
                           float *to, size_t stride)
{
    for (size_t j = 0; j < AK_LANES; j += QUAD) {
        float *base = to + ak_panel_reverse_bits(j) * stride;
        AK_UNROLLED_FOR (size_t first = 0; first < ROWS; first += LANES) {
            __m256 v[QUAD];
            AK_UNROLLED_FOR (size_t r = 0; r < QUAD; r++)
                v[r] = load_quads(type, rows[first + r], rows[first + QUAD + r], i + j);
            transpose(v);
            AK_UNROLLED_FOR (size_t n = 0; n < QUAD; n++)
                _mm256_store_ps(base + ak_panel_reverse_bits(n) * stride + first, v[n]);
        }
    }
}

AK_KERNEL void unpack_panel_f32(enum ak_quant_type type, const uint8_t *rows, size_t row_bytes,
                                size_t n_rows, size_t cols, float *panel)
{
    size_t steps = (cols + AK_LANES - 1) / AK_LANES, rest = cols % AK_LANES, stride = steps * ROWS;
    for (size_t first = 0; first < n_rows; first += ROWS, panel += AK_LANES * stride) {
        const uint8_t *row[ROWS];
        for (size_t r = 0; r < ROWS; r++)
            row[r] = rows +
                     /* rows beyond the last repeat it; nobody reads them */
                     ak_min_size(first + r, n_rows - 1) * row_bytes;
        for (size_t i = 0; i < cols / AK_LANES; i++)
            unpack_step(type, row, i * AK_LANES, panel + i * ROWS, stride);
        if (rest > 0 && type != AK_QUANT_F8) {
            uint8_t tail[ROWS][AK_LANES * sizeof(float)] = { { 0 } };
            for (size_t r = 0; r < ROWS; r++) {
                memcpy(tail[r], ak_cpu_stored_element(type, row[r], cols - rest),
                       rest * ak_cpu_stored_element_bytes(type));
                row[r] = tail[r];
            }
            unpack_step(type, row, 0, panel + (steps - 1) * ROWS, stride);
        }
    }
}

/* Computes one partial sum of 16 rows × the first n tokens of a group, n a compile-time constant.
 * Adds the pending sums that it completes, then stores the result in `pending`. */
AK_KERNEL void compute_sum(size_t n, const float *w, const float *x, size_t steps, size_t rev,
                           __m256 (*pending)[TOKENS][VECTORS], struct ak_panel_prefetch *prefetch)
{
    const struct ak_panel_prefetch_lines prefetch_lines = ak_panel_prefetch_lines(prefetch, steps);
    __m256 acc[TOKENS][VECTORS];
    AK_UNROLLED_FOR (size_t t = 0; t < n; t++)
        AK_UNROLLED_FOR (size_t v = 0; v < VECTORS; v++)
            acc[t][v] = _mm256_setzero_ps();
    for (size_t i = 0; i < steps; i++, w += ROWS, x += TOKENS) {
        __m256 row[VECTORS];
        ak_panel_prefetch_line(&prefetch_lines, i);
        AK_UNROLLED_FOR (size_t v = 0; v < VECTORS; v++)
            row[v] = _mm256_load_ps(w + v * LANES);
        AK_UNROLLED_FOR (size_t t = 0; t < n; t++) {
            __m256 token = _mm256_set1_ps(x[t]);
            AK_UNROLLED_FOR (size_t v = 0; v < VECTORS; v++)
                acc[t][v] = _mm256_fmadd_ps(row[v], token, acc[t][v]);
        }
    }
    for (; rev & 1; rev >>= 1, pending++)
        AK_UNROLLED_FOR (size_t t = 0; t < n; t++)
            AK_UNROLLED_FOR (size_t v = 0; v < VECTORS; v++)
                acc[t][v] = _mm256_add_ps((*pending)[t][v], acc[t][v]);
    AK_UNROLLED_FOR (size_t t = 0; t < n; t++)
        AK_UNROLLED_FOR (size_t v = 0; v < VECTORS; v++)
            (*pending)[t][v] = acc[t][v];
}

static void compute_group_sum(size_t n, const float *w, const float *x, size_t steps, size_t rev,
                              __m256 (*pending)[TOKENS][VECTORS],
                              struct ak_panel_prefetch *prefetch)
{
    if (n > TOKENS_LEFT)
        compute_sum(TOKENS, w, x, steps, rev, pending, prefetch);
    else
        compute_sum(TOKENS_LEFT, w, x, steps, rev, pending, prefetch);
}

/* One block of rows times up to GROUPS groups of tokens. */
static void dot_groups(const float *block, size_t n_rows, const float *tokens, size_t n, size_t k,
                       float *y, size_t y_stride, struct ak_panel_prefetch *prefetch)
{
    __m256 pending[GROUPS][AK_PANEL_LEVELS + 1][TOKENS][VECTORS];
    size_t steps = k / AK_LANES;
    for (size_t rev = 0; rev < AK_LANES; rev++)
        for (size_t t = 0; t < n; t += TOKENS)
            compute_group_sum(n - t, block + rev * steps * ROWS,
                              tokens + t * k + rev * steps * TOKENS, steps, rev,
                              pending[t / TOKENS], prefetch);
    for (size_t t = 0; t < n; t++)
        memcpy(y + t * y_stride, pending[t / TOKENS][AK_PANEL_LEVELS][t % TOKENS],
               n_rows * sizeof *y);
}

static void dot_panel_f32(const float *restrict panel, size_t n_rows, const float *restrict tokens,
                          size_t n, size_t k, float *restrict y, size_t y_stride,
                          const uint8_t *next, size_t next_bytes)
{
    size_t blocks = (n_rows + ROWS - 1) / ROWS, groups = (n + TOKENS - 1) / TOKENS;
    struct ak_panel_prefetch prefetch =
        ak_panel_init_prefetch(next, next_bytes, blocks * groups * AK_LANES);
    for (size_t t = 0; t < n; t += GROUPS * TOKENS)
        for (size_t r = 0; r < n_rows; r += ROWS)
            dot_groups(panel + r * k, ak_min_size(n_rows - r, ROWS), tokens + t * k,
                       ak_min_size(n - t, GROUPS * TOKENS), k, y + t * y_stride + r, y_stride,
                       &prefetch);
}

#include "engine/cpu/panel_f32.h"

AK_SETTER(panel_f32)
{
    set_panel_f32(k);
}
