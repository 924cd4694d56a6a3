/* Attention over one KV page. Lanes are tokens for q·k and elements of the head for p·v; every lane
 * adds in the order of the scalar kernel. Rows are processed in blocks, so that K and V are read
 * once for several of them. */
#include "engine/cpu/setter.h"
#include "base/mem.h"
#include "engine/cpu/avx512/stored.h"
#include "files/quant/block.h"

enum {
    ROWS = 6, /* rows per block, in q·k and in p·v */
    GROUPS = AK_KV_PAGE_TOKENS / AK_KV_GROUP_TOKENS,
    COLUMNS = 4 /* 16-lane vectors of `out` accumulated at once */
};

/* weights[i][t] = q_i · k_t for n_rows rows and the tokens of n_groups groups, from group `group`
 * on; both counts are compile-time constants. */
AK_KERNEL void compute_scores(enum ak_quant_type type, size_t n_rows, size_t n_groups,
                              const float *q, size_t q_stride, size_t head_dim, const void *k,
                              size_t group, float *weights)
{
    __m512 s[ROWS][GROUPS];
    AK_UNROLLED_FOR (size_t r = 0; r < n_rows; r++)
        AK_UNROLLED_FOR (size_t g = 0; g < n_groups; g++)
            s[r][g] = _mm512_setzero_ps();
    size_t at = group * head_dim * AK_KV_GROUP_TOKENS, step = head_dim * AK_KV_GROUP_TOKENS;
    for (size_t d = 0; d < head_dim; d++, at += AK_KV_GROUP_TOKENS) {
        __m512 key[GROUPS];
        AK_UNROLLED_FOR (size_t g = 0; g < n_groups; g++)
            key[g] = load_stored(type, k, at + g * step);
        AK_UNROLLED_FOR (size_t r = 0; r < n_rows; r++) {
            __m512 x = _mm512_set1_ps(q[r * q_stride + d]);
            AK_UNROLLED_FOR (size_t g = 0; g < n_groups; g++)
                s[r][g] = _mm512_fmadd_ps(x, key[g], s[r][g]);
        }
    }
    AK_UNROLLED_FOR (size_t r = 0; r < n_rows; r++)
        AK_UNROLLED_FOR (size_t g = 0; g < n_groups; g++)
            _mm512_storeu_ps(weights + r * AK_KV_PAGE_TOKENS + (group + g) * AK_KV_GROUP_TOKENS,
                             s[r][g]);
}

/* Scores of the groups that contain tokens [first, end). */
AK_KERNEL void compute_row_scores(enum ak_quant_type type, size_t n_rows, const float *q,
                                  size_t q_stride, size_t head_dim, const void *k, size_t first,
                                  size_t end, float *weights)
{
    size_t group = first / AK_KV_GROUP_TOKENS,
           stop = (end + AK_KV_GROUP_TOKENS - 1) / AK_KV_GROUP_TOKENS;
    for (; stop - group >= 4; group += 4)
        compute_scores(type, n_rows, 4, q, q_stride, head_dim, k, group, weights);
    for (; stop - group >= 2; group += 2)
        compute_scores(type, n_rows, 2, q, q_stride, head_dim, k, group, weights);
    if (stop > group)
        compute_scores(type, n_rows, 1, q, q_stride, head_dim, k, group, weights);
}

/* Lanes of group g within [first, end). */
AK_KERNEL __mmask16 mask_range(size_t g, size_t first, size_t end)
{
    size_t low = ak_max_size(first, g * AK_KV_GROUP_TOKENS) - g * AK_KV_GROUP_TOKENS;
    size_t high = ak_min_size(end, (g + 1) * AK_KV_GROUP_TOKENS) - g * AK_KV_GROUP_TOKENS;
    return (__mmask16)((1u << high) - (1u << low));
}

/* Maximum of 16 lanes, in all of them. Any order gives the same bits except for the sign of a
 * zero. */
AK_KERNEL __m512 reduce_max(__m512 x)
{
    x = _mm512_max_ps(x, _mm512_shuffle_f32x4(x, x, 0x4e));
    x = _mm512_max_ps(x, _mm512_shuffle_f32x4(x, x, 0xb1));
    x = _mm512_max_ps(x, _mm512_permute_ps(x, 0x4e));
    return _mm512_max_ps(x, _mm512_permute_ps(x, 0xb1));
}

/* Maximum score of tokens [first, end), in all lanes. A NaN never wins; among zeros of
 * both signs, the first one's sign is kept. */
AK_KERNEL __m512 find_largest_score(const float *scores, size_t first, size_t end)
{
    __m512 largest = _mm512_set1_ps(-INFINITY);
    if (end - first == AK_KV_PAGE_TOKENS) {
        AK_UNROLLED_FOR (size_t g = 0; g < GROUPS; g++)
            largest = _mm512_max_ps(_mm512_loadu_ps(scores + g * AK_KV_GROUP_TOKENS), largest);
    } else {
        for (size_t g = first / AK_KV_GROUP_TOKENS; g * AK_KV_GROUP_TOKENS < end; g++)
            largest = _mm512_mask_max_ps(largest, mask_range(g, first, end),
                                         _mm512_loadu_ps(scores + g * AK_KV_GROUP_TOKENS), largest);
    }
    largest = reduce_max(largest);
    if (_mm512_cvtss_f32(largest) == 0.0f)
        for (size_t t = first; t < end; t++)
            if (scores[t] == 0.0f)
                return _mm512_set1_ps(scores[t]);
    return largest;
}

/* Replaces the scores of tokens [first, end) by their weights, e^(score − largest); returns 16
 * partial sums of the weights. */
AK_KERNEL __m512 apply_softmax(float *weights, size_t first, size_t end, __m512 largest)
{
    __m512 total = _mm512_setzero_ps();
    if (end - first == AK_KV_PAGE_TOKENS) {
        AK_UNROLLED_FOR (size_t g = 0; g < GROUPS; g++) {
            float *w = weights + g * AK_KV_GROUP_TOKENS;
            __m512 e = exp_lanes(_mm512_sub_ps(_mm512_loadu_ps(w), largest));
            total = _mm512_add_ps(total, e);
            _mm512_storeu_ps(w, e);
        }
        return total;
    }
    for (size_t g = first / AK_KV_GROUP_TOKENS; g * AK_KV_GROUP_TOKENS < end; g++) {
        float *w = weights + g * AK_KV_GROUP_TOKENS;
        __m512 e = exp_lanes(_mm512_sub_ps(_mm512_loadu_ps(w), largest));
        e = _mm512_maskz_mov_ps(mask_range(g, first, end), e);
        total = _mm512_add_ps(total, e);
        _mm512_storeu_ps(w, e);
    }
    return total;
}

/* Loads 16 elements of Q8_0 from element i on: half a block. */
AK_KERNEL __m512 load_q8_0(const void *blocks, size_t i)
{
    const struct ak_quant_block_q8_0 *block =
        (const struct ak_quant_block_q8_0 *)blocks + i / AK_BLOCK_K;
    int16_t scale;
    memcpy(&scale, block->d, sizeof scale);
    __m512i quants = _mm512_cvtepi8_epi32(
        _mm_loadu_si128((const __m128i *)(const void *)(block->q + i % AK_BLOCK_K)));
    return _mm512_mul_ps(_mm512_cvtph_ps(_mm256_set1_epi16(scale)), _mm512_cvtepi32_ps(quants));
}

/* Loads elements d … d + 15 of token t's values. F16 and F32 load only `lanes` if `is_masked`. */
AK_KERNEL __m512 load_value(enum ak_quant_type type, const void *v, size_t head_dim, size_t t,
                            size_t d, bool is_masked, __mmask16 lanes)
{
    if (type == AK_QUANT_Q8_0)
        return load_q8_0(v, t * head_dim + d);
    return is_masked ? load_some_stored(type, v, t * head_dim + d, lanes) :
                       load_stored(type, v, t * head_dim + d);
}

/* Adds weights · values of tokens [first, end) to out[i][d], or sets it if `begins`, for n_rows
 * rows and n columns of 16 elements from element d on. `lanes` masks each column; n = 1 unless it
 * is full. */
AK_KERNEL void add_values(enum ak_quant_type type, bool begins, size_t n_rows, size_t n,
                          __mmask16 lanes, const float *weights, size_t first, size_t end,
                          const void *v, size_t head_dim, size_t d, float *out, size_t out_stride)
{
    __m512 acc[ROWS][COLUMNS];
    AK_UNROLLED_FOR (size_t r = 0; r < n_rows; r++)
        AK_UNROLLED_FOR (size_t c = 0; c < n; c++)
            acc[r][c] = begins ? _mm512_setzero_ps() :
                                 _mm512_maskz_loadu_ps(lanes, out + r * out_stride + c * 16);
    for (size_t t = first; t < end; t++) {
        __m512 value[COLUMNS];
        AK_UNROLLED_FOR (size_t c = 0; c < n; c++)
            value[c] = load_value(type, v, head_dim, t, d + c * 16, n == 1, lanes);
        AK_UNROLLED_FOR (size_t r = 0; r < n_rows; r++) {
            __m512 w = _mm512_set1_ps(weights[r * AK_KV_PAGE_TOKENS + t]);
            AK_UNROLLED_FOR (size_t c = 0; c < n; c++)
                acc[r][c] = _mm512_fmadd_ps(w, value[c], acc[r][c]);
        }
    }
    AK_UNROLLED_FOR (size_t r = 0; r < n_rows; r++)
        AK_UNROLLED_FOR (size_t c = 0; c < n; c++)
            _mm512_mask_storeu_ps(out + r * out_stride + c * 16, lanes, acc[r][c]);
}

/* add_values for all columns. */
AK_KERNEL void add_rows(enum ak_quant_type type, bool begins, size_t n_rows, const float *weights,
                        size_t first, size_t end, const void *v, size_t head_dim, float *out,
                        size_t out_stride)
{
    size_t d = 0;
    for (; head_dim - d >= COLUMNS * 16; d += COLUMNS * 16)
        add_values(type, begins, n_rows, COLUMNS, 0xffff, weights, first, end, v, head_dim, d,
                   out + d, out_stride);
    for (; d < head_dim; d += 16) {
        __mmask16 lanes = head_dim - d < 16 ? first_lanes(head_dim - d) : (__mmask16)0xffff;
        add_values(type, begins, n_rows, 1, lanes, weights, first, end, v, head_dim, d, out + d,
                   out_stride);
    }
}

/* Adds the tokens that every row sees for all rows at once, and the others row by row. */
AK_KERNEL void add_row_values(enum ak_quant_type type, size_t n_rows, float *weights,
                              size_t head_dim, const void *v, const uint16_t *first,
                              const uint16_t *end, float *max, float *sum, float *out,
                              size_t out_stride)
{
    size_t low = AK_KV_PAGE_TOKENS, low_all = 0, high_all = AK_KV_PAGE_TOKENS, high = 0;
    __m512 largest[ROWS], total[ROWS];
    for (size_t r = 0; r < n_rows; r++) {
        low = ak_min_size(low, first[r]);
        low_all = ak_max_size(low_all, first[r]);
        high_all = ak_min_size(high_all, end[r]);
        high = ak_max_size(high, end[r]);
    }
    AK_UNROLLED_FOR (size_t r = 0; r < n_rows; r++)
        largest[r] = find_largest_score(weights + r * AK_KV_PAGE_TOKENS, first[r], end[r]);
    AK_UNROLLED_FOR (size_t r = 0; r < n_rows; r++)
        total[r] = apply_softmax(weights + r * AK_KV_PAGE_TOKENS, first[r], end[r], largest[r]);
    AK_UNROLLED_FOR (size_t r = 0; r < n_rows; r++) {
        max[r] = _mm512_cvtss_f32(largest[r]);
        sum[r] = horizontal_sum(total[r]);
    }
    bool has_shared = low_all < high_all, starts_shared = low == low_all;
    for (size_t r = 0; r < n_rows && !(has_shared && starts_shared); r++)
        add_rows(type, true, 1, weights + r * AK_KV_PAGE_TOKENS, first[r],
                 has_shared ? low_all : end[r], v, head_dim, out + r * out_stride, 0);
    if (!has_shared)
        return;
    if (starts_shared)
        add_rows(type, true, n_rows, weights, low_all, high_all, v, head_dim, out, out_stride);
    else
        add_rows(type, false, n_rows, weights, low_all, high_all, v, head_dim, out, out_stride);
    for (size_t r = 0; r < n_rows && high > high_all; r++)
        add_rows(type, false, 1, weights + r * AK_KV_PAGE_TOKENS, high_all, end[r], v, head_dim,
                 out + r * out_stride, 0);
}

/* Rows of the next block: full blocks, then two of similar size. */
AK_KERNEL size_t get_block_rows(size_t left)
{
    return left >= 2 * ROWS || left == ROWS ? ROWS : left > ROWS ? (left + 1) / 2 : left;
}

AK_KERNEL void attn_qk(enum ak_quant_type type, const float *q, size_t q_stride, size_t n_rows,
                       size_t head_dim, const void *k, size_t first, size_t end, float *weights)
{
    for (size_t n; n_rows > 0; n_rows -= n, q += n * q_stride, weights += n * AK_KV_PAGE_TOKENS) {
        n = get_block_rows(n_rows);
        AK_CONSTANT(n, 6, N,
                    compute_row_scores(type, N, q, q_stride, head_dim, k, first, end, weights));
    }
}

AK_KERNEL void attn_pv(enum ak_quant_type type, float *weights, size_t n_rows, size_t head_dim,
                       const void *v, const uint16_t *first, const uint16_t *end, float *max,
                       float *sum, float *out, size_t out_stride)
{
    for (size_t n; n_rows > 0; n_rows -= n) {
        n = get_block_rows(n_rows);
        AK_CONSTANT(
            n, 6, N,
            add_row_values(type, N, weights, head_dim, v, first, end, max, sum, out, out_stride));
        weights += n * AK_KV_PAGE_TOKENS, out += n * out_stride;
        first += n, end += n, max += n, sum += n;
    }
}

static AK_ATTN_QK(attn_qk_f16, AK_QUANT_F16);
static AK_ATTN_QK(attn_qk_f32, AK_QUANT_F32);
static AK_ATTN_PV(attn_pv_f16, AK_QUANT_F16);
static AK_ATTN_PV(attn_pv_f32, AK_QUANT_F32);
static AK_ATTN_PV(attn_pv_q8_0, AK_QUANT_Q8_0);

AK_SETTER(attn)
{
    k->attn_qk_f16 = attn_qk_f16;
    k->attn_qk_f32 = attn_qk_f32;
    k->attn_pv_f16 = attn_pv_f16;
    k->attn_pv_f32 = attn_pv_f32;
    k->attn_pv_q8_0 = attn_pv_q8_0;
}
