/* F32 GEMM.
 *
 * Lanes are rows, so no sum crosses lanes. The 32 partial sums of a product are computed
 * one after another, each over all of its k: 3 vectors of rows × 8 tokens fill the registers. Sums
 * are computed in bit-reversed order (engine/cpu/panel.h), and both operands are stored in that
 * order, [partial sum][step], where step s of partial sum j is k = 32s + j: a panel is [..][row],
 * tokens are [group of 8][..][token]. Four groups of tokens use a partial sum's part of the panel
 * in turn, while it is in the L1 and L2 caches. */
#include "engine/cpu/setter.h"
#include "engine/cpu/avx512/stored.h"
#include "engine/cpu/panel.h"

enum { LANES = 16, VECTORS = AK_PANEL_ROWS_MAX / LANES, TOKENS = 8, GROUPS = 4 };

AK_KERNEL void unpack_panel_f32(enum ak_quant_type type, const uint8_t *rows, size_t row_bytes,
                                size_t n_rows, size_t cols, float *panel)
{
    size_t steps = (cols + AK_LANES - 1) / AK_LANES, width = ak_round_up(n_rows, LANES);
    for (size_t first = 0; first < n_rows; first += LANES) {
        for (size_t i = 0; i < steps * AK_LANES; i += LANES) {
            __m512 v[LANES];
            __mmask16 lanes = i + LANES <= cols ? (__mmask16)0xffff :
                              i < cols          ? first_lanes(cols - i) :
                                                  (__mmask16)0;
            AK_UNROLLED_FOR (size_t r = 0; r < LANES; r++)
                v[r] = first + r < n_rows ?
                           load_some_stored(type, rows + (first + r) * row_bytes, i, lanes) :
                           _mm512_setzero_ps();
            transpose_lanes(v);
            AK_UNROLLED_FOR (size_t j = 0; j < LANES; j++)
                _mm512_store_ps(
                    panel +
                        (ak_panel_reverse_bits(i % AK_LANES + j) * steps + i / AK_LANES) * width +
                        first,
                    v[j]);
        }
    }
}

/* Computes one partial sum of `vectors` vectors of rows × the first n tokens of a group, both
 * compile-time constants. Adds the sums in `pending` that it completes. The last sum goes to y: of
 * the last vector only `lanes`, of the tokens only the first `tokens`. */
AK_KERNEL void compute_sum(size_t vectors, size_t n, const float *w, const float *x, size_t steps,
                           size_t rev, __m512 (*pending)[TOKENS][VECTORS], size_t tokens,
                           __mmask16 lanes, float *y, size_t y_stride,
                           struct ak_panel_prefetch *prefetch)
{
    const struct ak_panel_prefetch_lines prefetch_lines = ak_panel_prefetch_lines(prefetch, steps);
    __m512 acc[TOKENS][VECTORS];
    AK_UNROLLED_FOR (size_t t = 0; t < n; t++)
        AK_UNROLLED_FOR (size_t v = 0; v < vectors; v++)
            acc[t][v] = _mm512_setzero_ps();
    for (size_t i = 0; i < steps; i++, w += vectors * LANES, x += TOKENS) {
        __m512 row[VECTORS];
        ak_panel_prefetch_line(&prefetch_lines, i);
        AK_UNROLLED_FOR (size_t v = 0; v < vectors; v++)
            row[v] = _mm512_load_ps(w + v * LANES);
        AK_UNROLLED_FOR (size_t t = 0; t < n; t++) {
            __m512 token = _mm512_set1_ps(x[t]);
            AK_UNROLLED_FOR (size_t v = 0; v < vectors; v++)
                acc[t][v] = _mm512_fmadd_ps(row[v], token, acc[t][v]);
        }
    }
    for (; rev & 1; rev >>= 1, pending++)
        AK_UNROLLED_FOR (size_t t = 0; t < n; t++)
            AK_UNROLLED_FOR (size_t v = 0; v < vectors; v++)
                acc[t][v] = _mm512_add_ps((*pending)[t][v], acc[t][v]);
    if (y) {
        AK_UNROLLED_FOR (size_t t = 0; t < n; t++)
            AK_UNROLLED_FOR (size_t v = 0; v < vectors; v++)
                if (t < tokens)
                    _mm512_mask_storeu_ps(y + t * y_stride + v * LANES,
                                          v + 1 < vectors ? (__mmask16)0xffff : lanes, acc[t][v]);
        return;
    }
    AK_UNROLLED_FOR (size_t t = 0; t < n; t++)
        AK_UNROLLED_FOR (size_t v = 0; v < vectors; v++)
            (*pending)[t][v] = acc[t][v];
}

/* compute_sum for up to TOKENS tokens, in steps of two: padding would cost as much as tokens. */
AK_KERNEL void compute_group_sum(size_t vectors, const float *w, const float *x, size_t steps,
                                 size_t rev, __m512 (*pending)[TOKENS][VECTORS], size_t tokens,
                                 __mmask16 lanes, float *y, size_t y_stride,
                                 struct ak_panel_prefetch *prefetch)
{
    AK_CONSTANT((tokens + 1) / 2, 4, PAIRS,
                compute_sum(vectors, 2 * PAIRS, w, x, steps, rev, pending, tokens, lanes, y,
                            y_stride, prefetch));
}

AK_KERNEL void dot_vectors(size_t vectors, const float *panel, __mmask16 lanes, const float *tokens,
                           size_t n, size_t k, float *y, size_t y_stride,
                           struct ak_panel_prefetch *prefetch)
{
    __m512 pending[GROUPS][AK_PANEL_LEVELS][TOKENS][VECTORS];
    size_t steps = k / AK_LANES;
    for (size_t first = 0; first < n; first += GROUPS * TOKENS)
        for (size_t rev = 0; rev < AK_LANES; rev++)
            for (size_t g = 0, t = first; g < GROUPS && t < n; g++, t += TOKENS)
                compute_group_sum(vectors, panel + rev * steps * vectors * LANES,
                                  tokens + t * k + rev * steps * TOKENS, steps, rev, pending[g],
                                  ak_min_size(n - t, TOKENS), lanes,
                                  rev + 1 < AK_LANES ? NULL : y + t * y_stride, y_stride, prefetch);
}

static void dot_panel_f32(const float *restrict panel, size_t n_rows, const float *restrict tokens,
                          size_t n, size_t k, float *restrict y, size_t y_stride,
                          const uint8_t *next, size_t next_bytes)
{
    struct ak_panel_prefetch prefetch =
        ak_panel_init_prefetch(next, next_bytes, (n + TOKENS - 1) / TOKENS * AK_LANES);
    __mmask16 lanes = n_rows % LANES ? first_lanes(n_rows % LANES) : (__mmask16)0xffff;
    AK_CONSTANT((n_rows + LANES - 1) / LANES, 3, N,
                dot_vectors(N, panel, lanes, tokens, n, k, y, y_stride, &prefetch));
}

#include "engine/cpu/panel_f32.h"

AK_SETTER(panel_f32)
{
    set_panel_f32(k);
}
