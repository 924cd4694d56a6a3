/* BF16 GEMM under --relaxed: stored BF16 rows, or F16 rows rounded to BF16, times tokens rounded to
 * BF16. One instruction adds pairs of products to float sums.
 *
 * Lanes are rows, so no sum crosses lanes. 3 vectors of rows × 8 tokens fill the registers; a pair
 * of a token's k is one broadcast word. A panel is [pair of k][row], interleaved tokens are [group
 * of 8][pair of k][token]. Four groups of tokens are multiplied with a chunk of the panel while it
 * is in the L1 cache; their sums are stored until the next chunk. */
#include <immintrin.h>
#include <string.h>

#include "engine/cpu/setter.h"
#include "base/mem.h"
#include "engine/cpu/avx512/lanes.h"
#include "engine/cpu/avx512bf16/round.h"

enum {
    LANES = 16,
    VECTORS = AK_PANEL_ROWS_MAX / LANES,
    TOKENS = 8,  /* per group */
    GROUPS = 4,  /* groups per chunk of the panel */
    CHUNK = 256, /* k per chunk of the panel */
    PAIR = 2     /* BF16 numbers per lane */
};

AK_KERNEL void unpack_panel_bf16(enum ak_quant_type type, const uint8_t *restrict rows,
                                 size_t row_bytes, size_t n_rows, size_t k,
                                 uint16_t *restrict panel)
{
    size_t width = ak_round_up(n_rows, LANES) * PAIR;
    for (size_t first = 0; first < n_rows; first += LANES, rows += LANES * row_bytes) {
        uint16_t *to = panel + first * PAIR;
        for (size_t i = 0; i < k; i += AK_LANES) {
            __m512 v[LANES];
            AK_UNROLLED_FOR (size_t r = 0; r < LANES; r++)
                v[r] = first + r < n_rows ? _mm512_castsi512_ps(load_rounded(
                                                type, rows + r * row_bytes + i * sizeof *panel)) :
                                            _mm512_setzero_ps();
            transpose_lanes(v);
            AK_UNROLLED_FOR (size_t pair = 0; pair < LANES; pair++, to += width)
                _mm512_store_ps(to, v[pair]);
        }
    }
}

static AK_UNPACK_PANEL_BF16(unpack_bf16, AK_QUANT_BF16);
static AK_UNPACK_PANEL_BF16(unpack_f16, AK_QUANT_F16);

static void interleave_token_bf16(const float *restrict x, size_t k, size_t token,
                                  uint16_t *restrict tokens)
{
    uint16_t *to = tokens + token / TOKENS * TOKENS * k + token % TOKENS * PAIR;
    for (size_t i = 0; i < k; i += AK_LANES) {
        uint16_t rounded[AK_LANES];
        store_line(rounded,
                   round_floats(_mm512_loadu_ps(x + i), _mm512_loadu_ps(x + i + AK_LANES / 2)));
        for (size_t j = 0; j < AK_LANES; j += PAIR, to += TOKENS * PAIR)
            memcpy(to, rounded + j, PAIR * sizeof *to);
    }
}

/* Adds the products of `pairs` pairs to the sums; is_first: starts them from zero. `vectors` and n
 * are compile-time constants. Prefetches the next chunk of the same tokens. */
AK_KERNEL void add_products(size_t vectors, size_t n, const uint16_t *w, const uint16_t *x,
                            size_t pairs, bool is_first, __m512 (*sums)[VECTORS])
{
    __m512 acc[TOKENS][VECTORS];
    AK_UNROLLED_FOR (size_t t = 0; t < n; t++)
        AK_UNROLLED_FOR (size_t v = 0; v < vectors; v++)
            acc[t][v] = is_first ? _mm512_setzero_ps() : sums[t][v];
    for (size_t i = 0; i < pairs; i++, w += vectors * LANES * PAIR, x += TOKENS * PAIR) {
        __m512bh row[VECTORS];
        _mm_prefetch((const char *)(x + pairs * TOKENS * PAIR), _MM_HINT_T0);
        AK_UNROLLED_FOR (size_t v = 0; v < vectors; v++)
            row[v] = (__m512bh)load_line(w + v * LANES * PAIR);
        AK_UNROLLED_FOR (size_t t = 0; t < n; t++) {
            __m512bh token = (__m512bh)broadcast_word(x + t * PAIR);
            AK_UNROLLED_FOR (size_t v = 0; v < vectors; v++)
                acc[t][v] = _mm512_dpbf16_ps(acc[t][v], row[v], token);
        }
    }
    AK_UNROLLED_FOR (size_t t = 0; t < n; t++)
        AK_UNROLLED_FOR (size_t v = 0; v < vectors; v++)
            sums[t][v] = acc[t][v];
}

/* add_products for up to TOKENS tokens, in steps of two: padding would cost as much as tokens. */
AK_KERNEL void add_group_products(size_t vectors, size_t tokens, const uint16_t *w,
                                  const uint16_t *x, size_t pairs, bool is_first,
                                  __m512 (*sums)[VECTORS])
{
    AK_CONSTANT((tokens + 1) / 2, 4, PAIRS,
                add_products(vectors, 2 * PAIRS, w, x, pairs, is_first, sums));
}

AK_KERNEL void dot_vectors(size_t vectors, const uint16_t *panel, __mmask16 lanes,
                           const uint16_t *tokens, size_t n, size_t k, float *y, size_t y_stride)
{
    __m512 sums[GROUPS * TOKENS][VECTORS];
    for (size_t first = 0, n_tokens; first < n;
         first += n_tokens, tokens += n_tokens * k, y += n_tokens * y_stride) {
        n_tokens = ak_min_size(n - first, GROUPS * TOKENS);
        for (size_t at = 0; at < k; at += CHUNK) {
            size_t pairs = ak_min_size(k - at, CHUNK) / PAIR;
            for (size_t t = 0; t < n_tokens; t += TOKENS) {
                const uint16_t *x = tokens + t * k + at * TOKENS;
                add_group_products(vectors, ak_min_size(n_tokens - t, TOKENS),
                                   panel + at * vectors * LANES, x, pairs, at == 0, sums + t);
            }
        }
        for (size_t t = 0; t < n_tokens; t++)
            AK_UNROLLED_FOR (size_t v = 0; v < vectors; v++)
                _mm512_mask_storeu_ps(y + t * y_stride + v * LANES,
                                      v + 1 < vectors ? (__mmask16)0xffff : lanes, sums[t][v]);
    }
}

static void dot_panel_bf16(const uint16_t *restrict panel, size_t n_rows,
                           const uint16_t *restrict tokens, size_t n, size_t k, float *restrict y,
                           size_t y_stride)
{
    __mmask16 lanes = n_rows % LANES ? first_lanes(n_rows % LANES) : (__mmask16)0xffff;
    AK_CONSTANT((n_rows + LANES - 1) / LANES, 3, N,
                dot_vectors(N, panel, lanes, tokens, n, k, y, y_stride));
}

/* Roofline probe: twelve chains of products. */
static uint64_t probe_bf16(size_t rounds, uint64_t *sink)
{
    enum { CHAINS = 12 };
    __m512 sum[CHAINS];
    for (int j = 0; j < CHAINS; j++)
        sum[j] = _mm512_set1_ps((float)j);
    const __m512bh w = (__m512bh)_mm512_set1_epi16((short)(0x3f80 + (rounds & 7))),
                   x = (__m512bh)_mm512_set1_epi16(0x3f00);
    for (size_t i = 0; i < rounds; i++) {
#pragma GCC unroll 12
        for (int j = 0; j < CHAINS; j++)
            sum[j] = _mm512_dpbf16_ps(sum[j], w, x);
    }
    __m512 all = sum[0];
    for (int j = 1; j < CHAINS; j++)
        all = _mm512_xor_ps(all, sum[j]);
    *sink = (uint64_t)_mm512_reduce_max_epi64(_mm512_castps_si512(all));
    return (uint64_t)rounds * CHAINS * 32 * 2;
}

AK_SETTER(panel_bf16)
{
    k->unpack_panel_bf16[AK_QUANT_BF16] = unpack_bf16;
    k->unpack_panel_bf16[AK_QUANT_F16] = unpack_f16;
    k->interleave_token_bf16 = interleave_token_bf16;
    k->dot_panel_bf16 = dot_panel_bf16;
    k->probe_bf16 = probe_bf16;
}
