/* Attention page by page.
 *
 * A row is one query head of one token. Each page gives a row a partial result of
 * its own; partial results are merged in page order, so a row's bits depend on
 * nothing but its own tokens, and the pages of a row may be shared out among
 * threads. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "cpu/cpu.h"

enum { FEW_PAGES = 4 }; /* fewer are not worth a barrier */

/* One work item: some query heads, which share a KV head, of a block's tokens. */
struct item {
    struct ak_token_block block;
    uint32_t kv_head, first_head, n_heads;
};

/* What the rows of an item have of one page: n of them from `begin` on. */
struct partial {
    uint32_t begin, n;
    float max[AK_ATTEND_ROWS], sum[AK_ATTEND_ROWS];
};

static uint32_t token_of(const struct item *item, uint32_t row)
{
    return item->block.first + row / item->n_heads;
}

static uint32_t head_of(const struct item *item, uint32_t row)
{
    return item->first_head + row % item->n_heads;
}

static const float *query(const struct ak_cpu_prepared *p, const struct ak_command *c,
                          uint32_t token, uint32_t head)
{
    return ak_cpu_slot(p, c->in) + token * ak_cpu_stride(p, c->in) + c->params.attention.q_at +
           head * c->params.attention.q_step;
}

static void load_queries(const struct ak_cpu_prepared *p, const struct ak_command *c,
                         const struct item *item, struct ak_thread_scratch *own)
{
    const struct ak_op_attention_params *a = &c->params.attention;
    bool tiled = ak_type_is_tiled(ak_kv_stored(p->kv_shape.k_type));
    for (uint32_t r = 0; r < item->block.n * item->n_heads; r++) {
        const float *q = query(p, c, token_of(item, r), head_of(item, r));
        float *scaled = own->q + r * a->head_dim;
        for (uint32_t d = 0; d < a->head_dim; d++)
            scaled[d] = q[d] * a->scale;
        if (!tiled)
            continue;
        float times = 1.0f / (float)ak_cpu_spread(scaled, a->head_dim);
        for (uint32_t d = 0; d < a->head_dim; d++)
            own->row[d] = scaled[d] *= times;
        ak_quantise_planes(&p->cpu->kernels, AK_ACT_32, own->row, a->head_dim, AK_PLANES_MAX,
                           own->q_acts + r * p->query_bytes);
    }
}

/* Tokens [*first, *end) of its sequence that a row at `position` sees. */
static void visible(const struct ak_op_attention_params *a, const struct ak_token_block *block,
                    uint32_t position, uint32_t *first, uint32_t *end)
{
    uint32_t before = a->bidirectional ? a->window / 2 : a->window - 1;
    *first = a->window && position > before ? position - before : 0;
    *end = position + 1;
    if (a->bidirectional)
        *end = a->window && block->end - position > before ? position + before + 1 : block->end;
}

/* The part of these in a page, from its first token on. */
static uint16_t in_page(uint32_t token, uint32_t page)
{
    uint32_t begin = page * AK_PAGE_TOKENS;
    return (uint16_t)(token <= begin                 ? 0 :
                      token - begin < AK_PAGE_TOKENS ? token - begin :
                                                       AK_PAGE_TOKENS);
}

/* Pages [*first, *end) that any token of a block sees. */
static void visible_pages(const struct ak_cpu_prepared *p, const struct ak_op_attention_params *a,
                          const struct ak_token_block *block, uint32_t *first, uint32_t *end)
{
    uint32_t from, to;
    visible(a, block, p->batch->positions[block->first], &from, &to);
    *first = from / AK_PAGE_TOKENS;
    visible(a, block, p->batch->positions[block->first + block->n - 1], &from, &to);
    *end = (to - 1) / AK_PAGE_TOKENS + 1;
}

/* Scores of `n` rows of queries from `begin` on for `groups` groups of quantized keys
 * from `group` on: those of the differences and, once, that of the page's first key. */
static void quantized_scores(const struct ak_cpu_prepared *p, struct ak_thread_scratch *own,
                             uint32_t begin, uint32_t n, const uint8_t *keys, size_t group,
                             size_t groups)
{
    const struct ak_kernels *k = &p->cpu->kernels;
    size_t head_dim = p->kv_shape.head_dim, width = groups * AK_PAGE_GROUP, rows;
    float of_first[AK_ATTEND_ROWS];
    k->dot_rows(ak_cpu_first_key(p, keys), head_dim, 1, own->q + begin * head_dim, head_dim, n,
                head_dim, of_first, 1);
    for (size_t i = 0; i < n; i += rows) {
        rows = ak_min_size(n - i, AK_SMALL_N / AK_PLANES_MAX);
        k->tile[ak_kv_stored(p->kv_shape.k_type)].dot_tiles(
            keys + group * p->key_group_bytes, groups, head_dim,
            own->q_acts + (begin + i) * p->query_bytes, p->query_bytes / AK_PLANES_MAX,
            rows * AK_PLANES_MAX, own->planes, width);
        ak_add_planes(own->planes, rows, width,
                      own->weights + i * AK_PAGE_TOKENS + group * AK_PAGE_GROUP, AK_PAGE_TOKENS);
    }
    for (size_t i = 0; i < n; i++)
        for (float *s = own->weights + i * AK_PAGE_TOKENS + group * AK_PAGE_GROUP,
                   *stop = s + width;
             s < stop; s++)
            *s += of_first[i];
}

/* Scores of `n` rows from `begin` on for tokens [first, end) of a page. */
static void scores(const struct ak_cpu_prepared *p, struct ak_thread_scratch *own, uint32_t begin,
                   uint32_t n, const uint8_t *keys, size_t first, size_t end)
{
    const struct ak_kernels *k = &p->cpu->kernels;
    const struct ak_kv_shape *s = &p->kv_shape;
    const float *q = own->q + begin * s->head_dim;
    size_t group = first / AK_PAGE_GROUP,
           groups = (end + AK_PAGE_GROUP - 1) / AK_PAGE_GROUP - group;
    switch (s->k_type) {
    case AK_KV_F16:
        k->attend_scores_f16(q, s->head_dim, n, s->head_dim, keys, first, end, own->weights);
        return;
    case AK_KV_F32:
        k->attend_scores_f32(q, s->head_dim, n, s->head_dim, keys, first, end, own->weights);
        return;
    case AK_KV_BF16: {
        size_t at = group * AK_PAGE_GROUP * s->head_dim;
        k->widen[AK_QUANT_BF16](keys + at * sizeof(uint16_t), own->page_wide + at,
                                groups * AK_PAGE_GROUP * s->head_dim);
        k->attend_scores_f32(q, s->head_dim, n, s->head_dim, own->page_wide, first, end,
                             own->weights);
        return;
    }
    default: quantized_scores(p, own, begin, n, keys, group, groups);
    }
}

static void cap_scores(const struct ak_cpu_prepared *p, struct ak_thread_scratch *own, uint32_t n,
                       float cap, size_t first, size_t end)
{
    for (uint32_t i = 0; cap > 0.0f && i < n; i++)
        p->cpu->kernels.softcap(own->weights + (size_t)i * AK_PAGE_TOKENS + first, cap,
                                end - first);
}

/* Weighs the scores of the rows of `part` and mixes the values of tokens [first,
 * end), which are all that any of them sees, into own->page_out. */
static void values(const struct ak_cpu_prepared *p, struct ak_thread_scratch *own,
                   struct partial *part, const uint8_t *v, const uint16_t *firsts,
                   const uint16_t *ends, size_t first, size_t end)
{
    const struct ak_kernels *k = &p->cpu->kernels;
    const struct ak_kv_shape *s = &p->kv_shape;
    size_t n = s->head_dim;
    ak_attend_values_fn *as_stored = s->v_type == AK_KV_F16  ? k->attend_values_f16 :
                                     s->v_type == AK_KV_Q8_0 ? k->attend_values_q8_0 :
                                                               NULL;
    if (as_stored) {
        as_stored(own->weights, part->n, n, v, firsts, ends, part->max, part->sum, own->page_out,
                  n);
        return;
    }
    const void *wide = v;
    if (s->v_type != AK_KV_F32) {
        k->widen[ak_kv_stored(s->v_type)](v + first * p->value_bytes, own->page_wide + first * n,
                                          (end - first) * n);
        wide = own->page_wide;
    }
    k->attend_values_f32(own->weights, part->n, n, wide, firsts, ends, part->max, part->sum,
                         own->page_out, n);
}

/* Takes their distances, times the slopes of their heads, from the scores of the rows
 * of `part` for tokens [first, end) of a page. */
static void subtract_distances(const struct ak_cpu_prepared *p, const struct item *item,
                               const struct partial *part, struct ak_thread_scratch *own,
                               uint32_t page, size_t first, size_t end)
{
    for (uint32_t i = 0; i < part->n; i++) {
        uint32_t row = part->begin + i, position = p->batch->positions[token_of(item, row)];
        const float *distances =
            p->distances + (p->context - 1 - position) + page * AK_PAGE_TOKENS + first;
        p->cpu->kernels.add_scaled(own->weights + (size_t)i * AK_PAGE_TOKENS + first, distances,
                                   -p->slopes[head_of(item, row)], end - first);
    }
}

/* The rows that see anything of a page stand together: positions ascend. Their
 * results are in own->page_out. */
static void attend_page(const struct ak_cpu_prepared *p, const struct ak_command *c,
                        const struct item *item, struct ak_thread_scratch *own, uint32_t page,
                        struct partial *part)
{
    const struct ak_batch *batch = p->batch;
    size_t low = AK_PAGE_TOKENS, high = 0;
    uint16_t first[AK_ATTEND_ROWS], end[AK_ATTEND_ROWS];
    part->begin = part->n = 0;
    for (uint32_t r = 0; r < item->block.n * item->n_heads; r++) {
        uint32_t seen, seen_end;
        visible(&c->params.attention, &item->block, batch->positions[token_of(item, r)], &seen,
                &seen_end);
        uint16_t from = in_page(seen, page), to = in_page(seen_end, page);
        if (from >= to)
            continue;
        if (part->n == 0)
            part->begin = r;
        low = ak_min_size(low, from);
        high = ak_max_size(high, to);
        first[part->n] = from;
        end[part->n++] = to;
    }
    if (part->n == 0)
        return;
    const uint8_t *keys = ak_cpu_kv_head(p, batch->pages[batch->sequences[item->block.first]][page],
                                         c->params.attention.kv_layer, item->kv_head);
    scores(p, own, part->begin, part->n, keys, low, high);
    if (c->params.attention.alibi)
        subtract_distances(p, item, part, own, page, low, high);
    cap_scores(p, own, part->n, c->params.attention.cap, low, high);
    values(p, own, part, keys + p->keys_bytes, first, end, low, high);
}

/* Divides a row's sum of values, lets its gate have it and hands it on. */
static void finish_row(const struct ak_cpu_prepared *p, const struct ak_command *c, uint32_t token,
                       uint32_t head, float *row, float sum)
{
    uint32_t head_dim = c->params.attention.head_dim;
    p->cpu->kernels.divide(row, sum, head_dim);
    if (c->params.attention.gated)
        p->cpu->kernels.sigmoid_mul(row, query(p, c, token, head) + head_dim, head_dim);
    memcpy(ak_cpu_slot(p, c->out) + token * ak_cpu_stride(p, c->out) + head * head_dim, row,
           head_dim * sizeof *row);
}

/* What a row's sum of weights begins with: nothing, or the sink of its head, a score
 * that has no value. */
static void begin_row(const struct ak_cpu_prepared *p, const struct ak_command *c, uint32_t head,
                      float *max, float *sum)
{
    *max = c->vector == AK_OP_NONE ? -INFINITY : p->weights->vectors[c->vector].data[head];
    *sum = c->vector == AK_OP_NONE ? 0.0f : 1.0f;
}

/* All pages of an item, by one thread. */
static void attend(const struct ak_cpu_prepared *p, const struct ak_command *c,
                   const struct item *item, struct ak_thread_scratch *own)
{
    const struct ak_op_attention_params *a = &c->params.attention;
    uint32_t rows = item->block.n * item->n_heads, page, end;
    float max[AK_ATTEND_ROWS], sum[AK_ATTEND_ROWS];
    struct partial part;
    load_queries(p, c, item, own);
    for (uint32_t r = 0; r < rows; r++)
        begin_row(p, c, head_of(item, r), &max[r], &sum[r]);
    memset(own->out, 0, (size_t)rows * a->head_dim * sizeof(float));
    visible_pages(p, a, &item->block, &page, &end);
    for (; page < end; page++) {
        attend_page(p, c, item, own, page, &part);
        for (uint32_t i = 0; i < part.n; i++) {
            uint32_t r = part.begin + i;
            p->cpu->kernels.attend_merge(&max[r], &sum[r], own->out + r * a->head_dim, part.max[i],
                                         part.sum[i], own->page_out + i * a->head_dim, a->head_dim);
        }
    }
    for (uint32_t r = 0; r < rows; r++)
        finish_row(p, c, token_of(item, r), head_of(item, r), own->out + r * a->head_dim, sum[r]);
}

/* ---- The pages of one token shared out --------------------------------------
 * Partial results go to p->partials, [heads][pages] of the head's elements, the
 * largest score and the sum. */

static float *partial_of(const struct ak_cpu_prepared *p, uint32_t head, uint32_t page)
{
    return p->partials + ((size_t)head * p->kv_shape.n_pages + page) * p->partial_stride;
}

static void attend_own_pages(const struct ak_cpu_prepared *p, const struct ak_command *c,
                             unsigned thread, uint32_t first, uint32_t n_pages)
{
    const struct ak_op_attention_params *a = &c->params.attention;
    struct ak_thread_scratch *own = &p->scratch[thread];
    uint32_t group = a->n_heads / a->n_kv_heads, loaded = UINT32_MAX;
    size_t begin, end;
    ak_chunk_range((size_t)n_pages * a->n_kv_heads, p->n_threads, thread, &begin, &end);
    for (size_t i = begin; i < end; i++) {
        uint32_t kv_head = (uint32_t)(i / n_pages), page = first + (uint32_t)(i % n_pages);
        struct item item = { .block = p->blocks[0],
                             .kv_head = kv_head,
                             .first_head = kv_head * group,
                             .n_heads = group };
        struct partial part;
        if (loaded != kv_head)
            load_queries(p, c, &item, own);
        loaded = kv_head;
        attend_page(p, c, &item, own, page, &part);
        for (uint32_t r = 0; r < part.n; r++) {
            float *to = partial_of(p, head_of(&item, part.begin + r), page);
            memcpy(to, own->page_out + r * a->head_dim, a->head_dim * sizeof *to);
            to[a->head_dim] = part.max[r];
            to[a->head_dim + 1] = part.sum[r];
        }
    }
}

static void merge_own_heads(const struct ak_cpu_prepared *p, const struct ak_command *c,
                            unsigned thread, uint32_t first, uint32_t n_pages)
{
    const struct ak_op_attention_params *a = &c->params.attention;
    float *row = p->scratch[thread].out;
    size_t begin, end;
    ak_chunk_range(a->n_heads, p->n_threads, thread, &begin, &end);
    for (size_t head = begin; head < end; head++) {
        float max, sum;
        begin_row(p, c, (uint32_t)head, &max, &sum);
        memset(row, 0, a->head_dim * sizeof *row);
        for (uint32_t page = first; page < first + n_pages; page++) {
            const float *part = partial_of(p, (uint32_t)head, page);
            p->cpu->kernels.attend_merge(&max, &sum, row, part[a->head_dim], part[a->head_dim + 1],
                                         part, a->head_dim);
        }
        finish_row(p, c, p->blocks[0].first, (uint32_t)head, row, sum);
    }
}

/* Items go round the threads, so that late tokens, which see more, are spread. A
 * group of heads stays together, and reads K and V once, where that leaves no thread
 * idle; where it would, one token's pages are shared out. */
void ak_step_attention(const struct ak_cpu_step *step, struct ak_cpu_prepared *p, unsigned thread)
{
    const struct ak_command *c = step->command;
    const struct ak_op_attention_params *a = &c->params.attention;
    uint32_t group = a->n_heads / a->n_kv_heads, groups = p->n_blocks * a->n_kv_heads;
    bool whole =
        group <= AK_ATTEND_ROWS && (groups % p->n_threads == 0 || groups >= 4 * p->n_threads);
    if (!whole && group <= AK_ATTEND_ROWS && p->batch->n == 1) {
        uint32_t first, n_pages;
        visible_pages(p, a, &p->blocks[0], &first, &n_pages);
        n_pages -= first;
        if (n_pages >= FEW_PAGES) {
            attend_own_pages(p, c, thread, first, n_pages);
            ak_pool_barrier(p->pool, thread);
            merge_own_heads(p, c, thread, first, n_pages);
            return;
        }
    }
    uint32_t per_item = whole ? group : 1, pieces = group / per_item;
    for (uint32_t i = thread; i < groups * pieces; i += p->n_threads) {
        uint32_t kv_head = i / pieces % a->n_kv_heads;
        struct item item = { .block = p->blocks[i / (pieces * a->n_kv_heads)],
                             .kv_head = kv_head,
                             .first_head = kv_head * group + i % pieces * per_item,
                             .n_heads = per_item };
        attend(p, c, &item, &p->scratch[thread]);
    }
}
