/* Attention of query rows over one KV page.
 *
 * Rows are processed in blocks of up to ROWS, so that a K or V value is loaded and converted once
 * for all of them. q·k: a lane is a token, and the sum over d stays in its lane; p·v: a lane is a
 * dimension. Tokens outside a row's range do not affect its result. */
#include "engine/cpu/setter.h"
#include "base/mem.h"
#include "engine/cpu/avx2/lanes.h"

enum {
    ROWS = 4,   /* rows per block */
    GROUPS = 4, /* token groups scored at once */
    WIDE = 8    /* vectors of a row summed at once */
};

/* One page and the rows of one block: operands of the scores. */
struct queries {
    const float *q;
    size_t q_stride, head_dim;
    const void *k;
    float *weights; /* [rows][AK_KV_PAGE_TOKENS] */
};

struct rows {
    float *weights;
    size_t head_dim;
    const void *v;
    const uint16_t *first, *end;
    float *max, *sum, *out;
    size_t out_stride;
};

AK_KERNEL __m256 load_wide(bool half, const void *base, size_t i)
{
    return half ? load_f16((const uint16_t *)base + i) : _mm256_loadu_ps((const float *)base + i);
}

AK_KERNEL float load_one(bool half, const void *base, size_t i)
{
    return half ? ak_f16_to_float(((const uint16_t *)base)[i]) : ((const float *)base)[i];
}

/* Scores of n rows for `n_groups` groups of tokens, from group `group` on. */
AK_KERNEL void score_groups(bool half, size_t n, size_t n_groups, const struct queries *b,
                            size_t group)
{
    size_t head_dim = b->head_dim, group_elems = head_dim * AK_KV_GROUP_TOKENS;
    __m256 acc[ROWS][GROUPS][2];
#pragma GCC unroll 4
    for (size_t i = 0; i < ROWS; i++)
#pragma GCC unroll 4
        for (size_t g = 0; g < GROUPS; g++)
            acc[i][g][0] = acc[i][g][1] = _mm256_setzero_ps();
    for (size_t d = 0; d < head_dim; d++)
#pragma GCC unroll 4
        for (size_t g = 0; g < GROUPS; g++) {
            if (g >= n_groups)
                continue;
            size_t at = (group + g) * group_elems + d * AK_KV_GROUP_TOKENS;
            __m256 low = load_wide(half, b->k, at), high = load_wide(half, b->k, at + 8);
#pragma GCC unroll 4
            for (size_t i = 0; i < ROWS; i++) {
                if (i >= n)
                    continue;
                __m256 x = _mm256_set1_ps(b->q[i * b->q_stride + d]);
                acc[i][g][0] = _mm256_fmadd_ps(x, low, acc[i][g][0]);
                acc[i][g][1] = _mm256_fmadd_ps(x, high, acc[i][g][1]);
            }
        }
#pragma GCC unroll 4
    for (size_t i = 0; i < ROWS; i++)
#pragma GCC unroll 4
        for (size_t g = 0; g < GROUPS; g++) {
            if (i >= n || g >= n_groups)
                continue;
            float *to = b->weights + i * AK_KV_PAGE_TOKENS + (group + g) * AK_KV_GROUP_TOKENS;
            _mm256_storeu_ps(to, acc[i][g][0]);
            _mm256_storeu_ps(to + 8, acc[i][g][1]);
        }
}

AK_KERNEL void score(bool half, size_t n, const struct queries *b, size_t begin, size_t end)
{
    const size_t together = n == 1 ? 4 : n == 2 ? 2 : 1;
    size_t group = begin / AK_KV_GROUP_TOKENS,
           last = (end + AK_KV_GROUP_TOKENS - 1) / AK_KV_GROUP_TOKENS;
    for (; group + together <= last; group += together)
        score_groups(half, n, together, b, group);
    for (; group < last; group++)
        score_groups(half, n, 1, b, group);
}

/* All ones in the lanes of tokens t … t + 7 that lie in [first, end). */
AK_KERNEL __m256 mask_range(size_t t, size_t first, size_t end)
{
    __m256i token =
        _mm256_add_epi32(_mm256_set1_epi32((int)t), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    __m256i before = _mm256_cmpgt_epi32(_mm256_set1_epi32((int)first), token);
    __m256i until = _mm256_cmpgt_epi32(_mm256_set1_epi32((int)end), token);
    return _mm256_castsi256_ps(_mm256_andnot_si256(before, until));
}

/* Maximum as by comparing in order: a NaN never wins, and the first of equal zeros is kept. */
AK_KERNEL float find_largest_score(const float *scores, size_t first, size_t end)
{
    const __m256 lowest = _mm256_set1_ps(-INFINITY);
    __m256 largest = lowest;
    for (size_t t = first / 8 * 8; t < end; t += 8) {
        __m256 s = _mm256_blendv_ps(lowest, _mm256_loadu_ps(scores + t), mask_range(t, first, end));
        largest = _mm256_max_ps(s, largest);
    }
    float lanes[8], max = -INFINITY;
    _mm256_storeu_ps(lanes, largest);
    for (size_t i = 0; i < 8; i++)
        max = lanes[i] > max ? lanes[i] : max;
    if (max != 0.0f)
        return max;
    while (scores[first] != 0.0f)
        first++;
    return scores[first];
}

/* Replaces a row's scores by weights, e^(score − max); sets max, and the sum of the weights. */
static void apply_softmax(float *weights, size_t first, size_t end, float *max, float *sum)
{
    float largest = find_largest_score(weights, first, end);
    const __m256 shift = _mm256_set1_ps(largest);
    __m256 partial[2] = { _mm256_setzero_ps(), _mm256_setzero_ps() };
    for (size_t t = first / AK_KV_GROUP_TOKENS * AK_KV_GROUP_TOKENS; t < end;
         t += AK_KV_GROUP_TOKENS)
#pragma GCC unroll 2
        for (size_t i = 0; i < 2; i++) {
            __m256 p = exp_lanes(_mm256_sub_ps(_mm256_loadu_ps(weights + t + i * 8), shift));
            p = _mm256_and_ps(p, mask_range(t + i * 8, first, end));
            partial[i] = _mm256_add_ps(partial[i], p);
            _mm256_storeu_ps(weights + t + i * 8, p);
        }
    *max = largest;
    *sum = horizontal_sum(_mm256_add_ps(partial[0], partial[1]));
}

/* Adds tokens [begin, end) to dimensions d … d + 8·wide − 1 of n rows. */
AK_KERNEL void mix_wide(bool half, size_t n, size_t wide, const struct rows *b, size_t d,
                        size_t begin, size_t end)
{
    __m256 acc[ROWS][WIDE];
#pragma GCC unroll 4
    for (size_t i = 0; i < ROWS; i++)
#pragma GCC unroll 8
        for (size_t j = 0; j < WIDE; j++)
            if (i < n && j < wide)
                acc[i][j] = _mm256_loadu_ps(b->out + i * b->out_stride + d + j * 8);
    for (size_t t = begin; t < end; t++) {
        __m256 p[ROWS];
#pragma GCC unroll 4
        for (size_t i = 0; i < ROWS; i++)
            if (i < n)
                p[i] = _mm256_set1_ps(b->weights[i * AK_KV_PAGE_TOKENS + t]);
#pragma GCC unroll 8
        for (size_t j = 0; j < WIDE; j++) {
            if (j >= wide)
                continue;
            __m256 v = load_wide(half, b->v, t * b->head_dim + d + j * 8);
#pragma GCC unroll 4
            for (size_t i = 0; i < ROWS; i++)
                if (i < n)
                    acc[i][j] = _mm256_fmadd_ps(p[i], v, acc[i][j]);
        }
    }
#pragma GCC unroll 4
    for (size_t i = 0; i < ROWS; i++)
#pragma GCC unroll 8
        for (size_t j = 0; j < WIDE; j++)
            if (i < n && j < wide)
                _mm256_storeu_ps(b->out + i * b->out_stride + d + j * 8, acc[i][j]);
}

/* Adds tokens [begin, end) to all dimensions of n rows. */
AK_KERNEL void mix(bool half, size_t n, const struct rows *b, size_t begin, size_t end)
{
    const size_t wide = n == 1 ? 8 : n == 2 ? 4 : 2;
    size_t d = 0;
    if (begin >= end)
        return;
    for (; d + wide * 8 <= b->head_dim; d += wide * 8)
        mix_wide(half, n, wide, b, d, begin, end);
    for (; d + 8 <= b->head_dim; d += 8)
        mix_wide(half, n, 1, b, d, begin, end);
    for (; d < b->head_dim; d++)
        for (size_t i = 0; i < n; i++) {
            float *out = b->out + i * b->out_stride + d;
            for (size_t t = begin; t < end; t++)
                *out = fmaf(b->weights[i * AK_KV_PAGE_TOKENS + t],
                            load_one(half, b->v, t * b->head_dim + d), *out);
        }
}

/* One row; not inline, because every block size calls it. */
static void mix_row(bool half, const struct rows *b, size_t begin, size_t end)
{
    if (half)
        mix(true, 1, b, begin, end);
    else
        mix(false, 1, b, begin, end);
}

/* Row i of a block as a block of one row. */
AK_KERNEL struct rows select_row(struct rows b, size_t i)
{
    b.first += i;
    b.end += i;
    b.weights += i * AK_KV_PAGE_TOKENS;
    b.out += i * b.out_stride;
    return b;
}

/* Processes n rows together. Tokens seen by all rows are added for all at once; tokens before and
 * after are added row by row. */
AK_KERNEL void mix_rows(bool half, size_t n, const struct rows *b)
{
    size_t common = b->first[0], common_end = b->end[0];
    for (size_t i = 1; i < n; i++) {
        common = ak_max_size(common, b->first[i]);
        common_end = ak_min_size(common_end, b->end[i]);
    }
    common_end = ak_max_size(common, common_end);
    for (size_t i = 0; i < n; i++) {
        struct rows row = select_row(*b, i);
        apply_softmax(row.weights, *row.first, *row.end, b->max + i, b->sum + i);
        memset(row.out, 0, b->head_dim * sizeof *row.out);
        mix_row(half, &row, *row.first, ak_min_size(common, *row.end));
    }
    mix(half, n, b, common, common_end);
    for (size_t i = 0; n > 1 && i < n; i++) {
        struct rows row = select_row(*b, i);
        mix_row(half, &row, ak_max_size(common_end, *row.first), *row.end);
    }
}

/* Rows of the next block; balances sizes: 3 + 3 rather than 4 + 2. */
AK_KERNEL size_t get_block_rows(size_t left)
{
    size_t blocks = (left + ROWS - 1) / ROWS;
    return (left + blocks - 1) / blocks;
}

AK_KERNEL void attn_qk(bool half, const float *q, size_t q_stride, size_t n_rows, size_t head_dim,
                       const void *k, size_t first, size_t end, float *weights)
{
    struct queries b = { q, q_stride, head_dim, k, weights };
    for (size_t n; n_rows > 0;
         n_rows -= n, b.q += n * b.q_stride, b.weights += n * AK_KV_PAGE_TOKENS) {
        n = get_block_rows(n_rows);
        AK_CONSTANT(n, 4, N, score(half, N, &b, first, end));
    }
}

AK_KERNEL void attn_pv(bool half, float *weights, size_t n_rows, size_t head_dim, const void *v,
                       const uint16_t *first, const uint16_t *end, float *max, float *sum,
                       float *out, size_t out_stride)
{
    struct rows b = { weights, head_dim, v, first, end, max, sum, out, out_stride };
    for (size_t n; n_rows > 0; n_rows -= n) {
        n = get_block_rows(n_rows);
        AK_CONSTANT(n, 4, N, mix_rows(half, N, &b));
        b = select_row(b, n);
        b.max += n;
        b.sum += n;
    }
}

static AK_ATTN_QK(attn_qk_f16, true);
static AK_ATTN_QK(attn_qk_f32, false);
static AK_ATTN_PV(attn_pv_f16, true);
static AK_ATTN_PV(attn_pv_f32, false);

AK_SETTER(attn)
{
    k->attn_qk_f16 = attn_qk_f16;
    k->attn_qk_f32 = attn_qk_f32;
    k->attn_pv_f16 = attn_pv_f16;
    k->attn_pv_f32 = attn_pv_f32;
}
