/* Attention, one KV page at a time.
 *
 * A row is one query head of one token. Online softmax: each page yields a partial softmax per row,
 * and these are merged in page order. A row's result depends only on its own tokens, so threads may
 * split a row's pages. */
#include <math.h>
#include <string.h>

#include "base/math.h"
#include "base/mem.h"
#include "engine/cpu/cpu.h"

enum { SPLIT_PAGES_MIN = 4 }; /* fewer pages do not repay a barrier */

/* One work item: query heads that share a KV head, for the tokens of one block. */
struct item {
    struct ak_cpu_token_block block;
    uint32_t kv_head, first_head, n_heads;
};

/* Partial softmax of one page for rows [begin, begin + n) of an item, which see its tokens [first,
 * end). */
struct partial {
    uint32_t begin, n;
    uint16_t first[AK_ATTN_ROWS_MAX], end[AK_ATTN_ROWS_MAX];
    float max[AK_ATTN_ROWS_MAX], sum[AK_ATTN_ROWS_MAX];
};

const struct ak_cpu_token_block *ak_cpu_blocks(const struct ak_cpu_prepared *p,
                                               const struct ak_op_attention_params *a, uint32_t *n)
{
    *n = a->cross ? p->pass.n_cross_blocks : p->pass.n_blocks;
    return a->cross ? p->pass.cross_blocks : p->pass.blocks;
}

static uint32_t token_of(const struct item *item, uint32_t row)
{
    return item->block.first + row / item->n_heads;
}

static uint32_t head_of(const struct item *item, uint32_t row)
{
    return item->first_head + row % item->n_heads;
}

static const float *query_row(const struct ak_cpu_prepared *p, const struct ak_command *c,
                              uint32_t token, uint32_t head)
{
    return ak_cpu_slot(p, c->in) + token * ak_cpu_stride(p, c->in) + c->params.attention.q_at +
           head * c->params.attention.q_step;
}

static void load_queries(const struct ak_cpu_prepared *p, const struct ak_command *c,
                         const struct item *item, struct ak_cpu_scratch *scratch)
{
    const struct ak_op_attention_params *a = &c->params.attention;
    bool tiled = ak_cpu_is_tiled(ak_kv_stored_type(p->kv.shape.k_type));
    for (uint32_t r = 0; r < item->block.n * item->n_heads; r++) {
        const float *q = query_row(p, c, token_of(item, r), head_of(item, r));
        float *scaled = scratch->q + r * a->head_dim;
        for (uint32_t d = 0; d < a->head_dim; d++)
            scaled[d] = q[d] * a->scale;
        if (!tiled)
            continue;
        float times = 1.0f / (float)ak_cpu_hadamard(scaled, a->head_dim);
        for (uint32_t d = 0; d < a->head_dim; d++)
            scratch->row[d] = scaled[d] *= times;
        ak_cpu_quantize_terms(&p->cpu->kernels, AK_CPU_ACT_Q8_32, scratch->row, a->head_dim,
                              AK_TERMS_MAX, scratch->q_terms + r * p->kv.query_bytes);
    }
}

/* Tokens [*first, *end) of its sequence, or its cross sequence, that a row at `position` sees. */
static void find_visible(const struct ak_op_attention_params *a,
                         const struct ak_cpu_token_block *block, uint32_t position, uint32_t *first,
                         uint32_t *end)
{
    if (a->cross) {
        *first = 0;
        *end = block->end;
        return;
    }
    uint32_t before = a->bidirectional ? a->window / 2 : a->window - 1;
    *first = a->window && position > before ? position - before : 0;
    *end = position + 1;
    if (a->bidirectional)
        *end = a->window && block->end - position > before ? position + before + 1 : block->end;
}

/* Clamps a token of the sequence to the page: its index in the page, 0 … AK_KV_PAGE_TOKENS. */
static uint16_t clamp_to_page(uint32_t token, uint32_t page)
{
    uint32_t begin = page * AK_KV_PAGE_TOKENS;
    return (uint16_t)(token <= begin                    ? 0 :
                      token - begin < AK_KV_PAGE_TOKENS ? token - begin :
                                                          AK_KV_PAGE_TOKENS);
}

/* Pages [*first, *end) that contain tokens visible to any token of a block. */
static void find_visible_pages(const struct ak_cpu_prepared *p,
                               const struct ak_op_attention_params *a,
                               const struct ak_cpu_token_block *block, uint32_t *first,
                               uint32_t *end)
{
    uint32_t from, to;
    find_visible(a, block, p->pass.batch->positions[block->first], &from, &to);
    *first = from / AK_KV_PAGE_TOKENS;
    find_visible(a, block, p->pass.batch->positions[block->first + block->n - 1], &from, &to);
    *end = (to - 1) / AK_KV_PAGE_TOKENS + 1;
}

/* Scores of query rows [begin, begin + n) for `groups` groups of quantized keys, starting at group
 * `group`: products with the stored differences, plus the product with the page's first key, which
 * is computed once per row. */
static void compute_quantized_scores(const struct ak_cpu_prepared *p,
                                     struct ak_cpu_scratch *scratch, uint32_t begin, uint32_t n,
                                     const uint8_t *keys, size_t group, size_t groups)
{
    const struct ak_cpu_kernels *k = &p->cpu->kernels;
    size_t head_dim = p->kv.shape.head_dim, width = groups * AK_KV_GROUP_TOKENS, rows;
    float of_first[AK_ATTN_ROWS_MAX];
    k->dot_rows(ak_cpu_first_key(p, keys), head_dim, 1, scratch->q + begin * head_dim, head_dim, n,
                head_dim, of_first, 1);
    for (size_t i = 0; i < n; i += rows) {
        rows = ak_min_size(n - i, AK_SKINNY_MAX / AK_TERMS_MAX);
        k->tile[ak_kv_stored_type(p->kv.shape.k_type)].dot_tiles(
            keys + group * p->kv.key_group_bytes, groups, head_dim,
            scratch->q_terms + (begin + i) * p->kv.query_bytes, p->kv.query_bytes / AK_TERMS_MAX,
            rows * AK_TERMS_MAX, scratch->terms, width, 0);
        ak_cpu_add_terms(scratch->terms, rows, width,
                         scratch->weights + i * AK_KV_PAGE_TOKENS + group * AK_KV_GROUP_TOKENS,
                         AK_KV_PAGE_TOKENS);
    }
    for (size_t i = 0; i < n; i++)
        for (float *s = scratch->weights + i * AK_KV_PAGE_TOKENS + group * AK_KV_GROUP_TOKENS,
                   *stop = s + width;
             s < stop; s++)
            *s += of_first[i];
}

/* Scores of query rows [begin, begin + n) for tokens [first, end) of a page. */
static void compute_scores(const struct ak_cpu_prepared *p, struct ak_cpu_scratch *scratch,
                           uint32_t begin, uint32_t n, const uint8_t *keys, size_t first,
                           size_t end)
{
    const struct ak_cpu_kernels *k = &p->cpu->kernels;
    const struct ak_kv_shape *s = &p->kv.shape;
    const float *q = scratch->q + begin * s->head_dim;
    size_t group = first / AK_KV_GROUP_TOKENS,
           groups = (end + AK_KV_GROUP_TOKENS - 1) / AK_KV_GROUP_TOKENS - group;
    switch (s->k_type) {
    case AKUNU_KV_F16:
        k->attn_qk_f16(q, s->head_dim, n, s->head_dim, keys, first, end, scratch->weights);
        return;
    case AKUNU_KV_F32:
        k->attn_qk_f32(q, s->head_dim, n, s->head_dim, keys, first, end, scratch->weights);
        return;
    case AKUNU_KV_BF16: {
        size_t at = group * AK_KV_GROUP_TOKENS * s->head_dim;
        k->dequantize[AK_QUANT_BF16](keys + at * sizeof(uint16_t), scratch->page_f32 + at,
                                     groups * AK_KV_GROUP_TOKENS * s->head_dim);
        k->attn_qk_f32(q, s->head_dim, n, s->head_dim, scratch->page_f32, first, end,
                       scratch->weights);
        return;
    }
    default: compute_quantized_scores(p, scratch, begin, n, keys, group, groups);
    }
}

static void cap_scores(const struct ak_cpu_prepared *p, struct ak_cpu_scratch *scratch, uint32_t n,
                       float cap, size_t first, size_t end)
{
    for (uint32_t i = 0; cap > 0.0f && i < n; i++)
        p->cpu->kernels.softcap(scratch->weights + (size_t)i * AK_KV_PAGE_TOKENS + first, cap,
                                end - first);
}

/* Softmax of the rows of `part`, and their weighted sums of values, into scratch->page_out. Tokens
 * [first, end) include every token that one of the rows sees. */
static void mix_values(const struct ak_cpu_prepared *p, struct ak_cpu_scratch *scratch,
                       struct partial *part, const uint8_t *v, size_t first, size_t end)
{
    const struct ak_cpu_kernels *k = &p->cpu->kernels;
    const struct ak_kv_shape *s = &p->kv.shape;
    size_t n = s->head_dim;
    ak_attn_pv_fn *as_stored = s->v_type == AKUNU_KV_F16  ? k->attn_pv_f16 :
                               s->v_type == AKUNU_KV_Q8_0 ? k->attn_pv_q8_0 :
                                                            NULL;
    if (as_stored) {
        as_stored(scratch->weights, part->n, n, v, part->first, part->end, part->max, part->sum,
                  scratch->page_out, n);
        return;
    }
    const void *values_f32 = v;
    if (s->v_type != AKUNU_KV_F32) {
        k->dequantize[ak_kv_stored_type(s->v_type)](
            v + first * p->kv.value_bytes, scratch->page_f32 + first * n, (end - first) * n);
        values_f32 = scratch->page_f32;
    }
    k->attn_pv_f32(scratch->weights, part->n, n, values_f32, part->first, part->end, part->max,
                   part->sum, scratch->page_out, n);
}

/* ALiBi: subtracts distance times the head's slope from the scores of tokens [first, end) of a
 * page. */
static void subtract_distances(const struct ak_cpu_prepared *p, const struct item *item,
                               const struct partial *part, struct ak_cpu_scratch *scratch,
                               uint32_t page, size_t first, size_t end)
{
    for (uint32_t i = 0; i < part->n; i++) {
        uint32_t row = part->begin + i, position = p->pass.batch->positions[token_of(item, row)];
        const float *distances =
            p->memory.distances + (p->context - 1 - position) + page * AK_KV_PAGE_TOKENS + first;
        p->cpu->kernels.add_scaled(scratch->weights + (size_t)i * AK_KV_PAGE_TOKENS + first,
                                   distances, -p->memory.slopes[head_of(item, row)], end - first);
    }
}

/* Writes the scores of rows [begin, begin + n) for tokens [first, end) of a page to where the batch
 * wants them. */
static void copy_scores(const struct ak_cpu_prepared *p, const struct ak_command *c,
                        const struct item *item, const struct ak_cpu_scratch *scratch,
                        const struct partial *part, uint32_t page, size_t first, size_t end)
{
    const struct ak_batch_scores *s = p->pass.batch->scores;
    for (uint32_t i = 0; i < part->n; i++) {
        uint32_t row = part->begin + i, head = head_of(item, row);
        int32_t matrix = s->matrices[(uint32_t)c->layer * s->n_heads + head];
        if (matrix >= 0)
            memcpy(s->data + (size_t)matrix * s->matrix_stride + token_of(item, row) * s->stride +
                       page * AK_KV_PAGE_TOKENS + first,
                   scratch->weights + (size_t)i * AK_KV_PAGE_TOKENS + first,
                   (end - first) * sizeof(float));
    }
}

static const uint32_t *page_table(const struct ak_cpu_prepared *p, const struct ak_command *c,
                                  const struct ak_cpu_token_block *block)
{
    uint32_t sequence = p->pass.batch->sequences[block->first];
    if (c->params.attention.cross)
        sequence = p->pass.batch->cross_sequences[sequence];
    return p->pass.batch->pages[sequence];
}

/* Computes the partial softmax of one page into *part and scratch->page_out. Positions ascend, so
 * the rows that see any of its tokens are consecutive; none if it was dropped. */
static void run_page(const struct ak_cpu_prepared *p, const struct ak_command *c,
                     const struct item *item, struct ak_cpu_scratch *scratch, uint32_t page,
                     struct partial *part)
{
    const struct ak_batch *batch = p->pass.batch;
    uint32_t stored = page_table(p, c, &item->block)[page];
    size_t low = AK_KV_PAGE_TOKENS, high = 0;
    part->begin = part->n = 0;
    if (stored == AK_KV_NO_PAGE)
        return;
    for (uint32_t r = 0; r < item->block.n * item->n_heads; r++) {
        uint32_t seen, seen_end;
        find_visible(&c->params.attention, &item->block, batch->positions[token_of(item, r)], &seen,
                     &seen_end);
        uint16_t from = clamp_to_page(seen, page), to = clamp_to_page(seen_end, page);
        if (from >= to)
            continue;
        if (part->n == 0)
            part->begin = r;
        low = ak_min_size(low, from);
        high = ak_max_size(high, to);
        part->first[part->n] = from;
        part->end[part->n++] = to;
    }
    if (part->n == 0)
        return;
    const uint8_t *keys = ak_cpu_kv_head(p, stored, c->params.attention.kv_layer, item->kv_head);
    compute_scores(p, scratch, part->begin, part->n, keys, low, high);
    if (c->params.attention.cross && batch->scores)
        copy_scores(p, c, item, scratch, part, page, low, high);
    if (c->params.attention.alibi)
        subtract_distances(p, item, part, scratch, page, low, high);
    cap_scores(p, scratch, part->n, c->params.attention.cap, low, high);
    mix_values(p, scratch, part, keys + p->kv.keys_bytes, low, high);
}

/* Divides a row's sum of values by the sum of weights, applies the gate and writes the output. */
static void finish_row(const struct ak_cpu_prepared *p, const struct ak_command *c, uint32_t token,
                       uint32_t head, float *row, float sum)
{
    uint32_t head_dim = c->params.attention.head_dim;
    p->cpu->kernels.divide(row, sum, head_dim);
    if (c->params.attention.gated)
        p->cpu->kernels.sigmoid_mul(row, query_row(p, c, token, head) + head_dim, head_dim);
    memcpy(ak_cpu_slot(p, c->out) + token * ak_cpu_stride(p, c->out) + head * head_dim, row,
           head_dim * sizeof *row);
}

/* Initial maximum and sum of a row. An attention sink counts as one score without a value. */
static void begin_row(const struct ak_cpu_prepared *p, const struct ak_command *c, uint32_t head,
                      float *max, float *sum)
{
    *max = c->vector == AK_OP_NONE ? -INFINITY : p->weights->vectors[c->vector].data[head];
    *sum = c->vector == AK_OP_NONE ? 0.0f : 1.0f;
}

/* Processes all pages of an item on one thread. */
static void run_item(const struct ak_cpu_prepared *p, const struct ak_command *c,
                     const struct item *item, struct ak_cpu_scratch *scratch)
{
    const struct ak_op_attention_params *a = &c->params.attention;
    uint32_t rows = item->block.n * item->n_heads, page, end;
    float max[AK_ATTN_ROWS_MAX], sum[AK_ATTN_ROWS_MAX];
    struct partial part;
    load_queries(p, c, item, scratch);
    for (uint32_t r = 0; r < rows; r++)
        begin_row(p, c, head_of(item, r), &max[r], &sum[r]);
    memset(scratch->out, 0, (size_t)rows * a->head_dim * sizeof(float));
    find_visible_pages(p, a, &item->block, &page, &end);
    for (; page < end; page++) {
        run_page(p, c, item, scratch, page, &part);
        for (uint32_t i = 0; i < part.n; i++) {
            uint32_t r = part.begin + i;
            p->cpu->kernels.attn_merge(&max[r], &sum[r], scratch->out + r * a->head_dim,
                                       part.max[i], part.sum[i],
                                       scratch->page_out + i * a->head_dim, a->head_dim);
        }
    }
    for (uint32_t r = 0; r < rows; r++)
        finish_row(p, c, token_of(item, r), head_of(item, r), scratch->out + r * a->head_dim,
                   sum[r]);
}

/* ---- One token's pages split among threads ---------------------------------
 * Partial softmaxes of the pages that were not dropped go to p->partials as [heads][pages], each
 * the head's sums of values, its maximum score and its sum of weights. */

/* Pages [first, end) that were not dropped. */
static uint32_t count_present(const uint32_t *table, uint32_t first, uint32_t end)
{
    uint32_t n = 0;
    for (; first < end; first++)
        n += table[first] != AK_KV_NO_PAGE;
    return n;
}

/* Page number n, from page `first` on, of those that were not dropped. */
static uint32_t find_present(const uint32_t *table, uint32_t first, uint32_t n)
{
    while (table[first] == AK_KV_NO_PAGE || n-- > 0)
        first++;
    return first;
}

static float *partial_of(const struct ak_cpu_prepared *p, uint32_t head, uint32_t page)
{
    return p->pass.partials + ((size_t)head * p->kv.shape.n_pages + page) * p->pass.partial_stride;
}

static void run_thread_pages(const struct ak_cpu_prepared *p, const struct ak_command *c,
                             const struct ak_cpu_token_block *block, unsigned thread,
                             uint32_t first, uint32_t n_pages)
{
    const struct ak_op_attention_params *a = &c->params.attention;
    struct ak_cpu_scratch *scratch = &p->memory.scratch[thread];
    const uint32_t *table = page_table(p, c, block);
    uint32_t group = a->n_heads / a->n_kv_heads, loaded = UINT32_MAX, page = 0;
    size_t begin, end;
    ak_chunk_range((size_t)n_pages * a->n_kv_heads, p->n_threads, thread, &begin, &end);
    for (size_t i = begin; i < end; i++) {
        uint32_t kv_head = (uint32_t)(i / n_pages), index = (uint32_t)(i % n_pages);
        page = i > begin && index > 0 ? find_present(table, page + 1, 0) :
                                        find_present(table, first, index);
        struct item item = {
            .block = *block, .kv_head = kv_head, .first_head = kv_head * group, .n_heads = group
        };
        struct partial part;
        if (loaded != kv_head)
            load_queries(p, c, &item, scratch);
        loaded = kv_head;
        run_page(p, c, &item, scratch, page, &part);
        for (uint32_t r = 0; r < part.n; r++) {
            float *to = partial_of(p, head_of(&item, part.begin + r), index);
            memcpy(to, scratch->page_out + r * a->head_dim, a->head_dim * sizeof *to);
            to[a->head_dim] = part.max[r];
            to[a->head_dim + 1] = part.sum[r];
        }
    }
}

static void merge_thread_heads(const struct ak_cpu_prepared *p, const struct ak_command *c,
                               unsigned thread, uint32_t n_pages)
{
    const struct ak_op_attention_params *a = &c->params.attention;
    float *row = p->memory.scratch[thread].out;
    size_t begin, end;
    ak_chunk_range(a->n_heads, p->n_threads, thread, &begin, &end);
    for (size_t head = begin; head < end; head++) {
        float max, sum;
        begin_row(p, c, (uint32_t)head, &max, &sum);
        memset(row, 0, a->head_dim * sizeof *row);
        for (uint32_t page = 0; page < n_pages; page++) {
            const float *part = partial_of(p, (uint32_t)head, page);
            p->cpu->kernels.attn_merge(&max, &sum, row, part[a->head_dim], part[a->head_dim + 1],
                                       part, a->head_dim);
        }
        finish_row(p, c, 0, (uint32_t)head, row, sum);
    }
}

/* ---- Importance of tokens -------------------------------------------------- */
/* A weight, 0 … 1 before rounding, as struct ak_batch_importance counts it. */
static uint64_t count_weight(float weight)
{
    return weight < 2.0f ? (uint64_t)(int64_t)(weight * AK_IMPORTANCE_ONE) : 0; /* 0: a NaN */
}

/* Adds the weights of a page's tokens, of rows whose softmax has this maximum and sum. */
static void add_page_weights(const struct partial *part, const struct ak_cpu_scratch *scratch,
                             const float *max, const float *sum, uint64_t *sums)
{
    for (uint32_t i = 0; i < part->n; i++) {
        const float *weights = scratch->weights + (size_t)i * AK_KV_PAGE_TOKENS;
        uint32_t r = part->begin + i;
        float factor = ak_expf(part->max[i] - max[r]) / sum[r];
        for (size_t t = part->first[i]; t < part->end[i]; t++)
            sums[t] += count_weight(factor * weights[t]);
    }
}

/* Goes over the pages twice: for the maximum and the sum of each row's softmax, then for the
 * weights. */
static void add_item_weights(const struct ak_cpu_prepared *p, const struct ak_command *c,
                             const struct item *item, struct ak_cpu_scratch *scratch,
                             uint64_t *sums)
{
    float max[AK_ATTN_ROWS_MAX], sum[AK_ATTN_ROWS_MAX];
    struct partial part;
    uint32_t first, end;
    load_queries(p, c, item, scratch);
    for (uint32_t r = 0; r < item->block.n * item->n_heads; r++)
        begin_row(p, c, head_of(item, r), &max[r], &sum[r]);
    find_visible_pages(p, &c->params.attention, &item->block, &first, &end);
    for (uint32_t page = first; page < end; page++) {
        run_page(p, c, item, scratch, page, &part);
        for (uint32_t i = 0; i < part.n; i++)
            p->cpu->kernels.attn_merge(&max[part.begin + i], &sum[part.begin + i], scratch->out,
                                       part.max[i], part.sum[i], scratch->page_out, 0);
    }
    for (uint32_t page = first; page < end; page++) {
        run_page(p, c, item, scratch, page, &part);
        add_page_weights(&part, scratch, max, sum, sums + (size_t)page * AK_KV_PAGE_TOKENS);
    }
}

/* A KV head belongs to one thread. */
static void add_importance(const struct ak_cpu_prepared *p, const struct ak_command *c,
                           unsigned thread)
{
    const struct ak_op_attention_params *a = &c->params.attention;
    const struct ak_batch_importance *importance = p->pass.batch->importance;
    uint32_t group = a->n_heads / a->n_kv_heads,
             end = p->pass.batch->positions[p->pass.batch->n - 1] + 1;
    uint32_t n_max = group < AK_ATTN_ROWS_MAX ? AK_ATTN_ROWS_MAX / group : 1;
    for (uint32_t h = thread; h < a->n_kv_heads; h += p->n_threads) {
        uint64_t *sums = importance->sums +
                         ((size_t)a->kv_layer * importance->n_kv_heads + h) * importance->stride;
        for (uint32_t t = 0, n; t < p->pass.batch->n; t += n) {
            n = p->pass.batch->n - t < n_max ? p->pass.batch->n - t : n_max;
            for (uint32_t i = 0, heads; i < group; i += heads) {
                heads = group - i < AK_ATTN_ROWS_MAX ? group - i : AK_ATTN_ROWS_MAX;
                struct item item = { .block = { .first = t, .n = n, .end = end },
                                     .kv_head = h,
                                     .first_head = h * group + i,
                                     .n_heads = heads };
                add_item_weights(p, c, &item, &p->memory.scratch[thread], sums);
            }
        }
    }
}

/* Items are dealt round-robin: late tokens see more keys, and this distributes them evenly. The
 * query heads of a KV head stay in one item, which reads K and V once, unless that leaves threads
 * idle. Then heads become separate items, or one token's pages are split among threads. */
static void step_attention(const struct ak_cpu_step *step, struct ak_cpu_prepared *p,
                           unsigned thread)
{
    const struct ak_command *c = step->command;
    const struct ak_op_attention_params *a = &c->params.attention;
    uint32_t n_blocks;
    const struct ak_cpu_token_block *blocks = ak_cpu_blocks(p, a, &n_blocks);
    if (p->pass.batch->importance && !a->cross)
        add_importance(p, c, thread);
    uint32_t group = a->n_heads / a->n_kv_heads, groups = n_blocks * a->n_kv_heads;
    bool whole =
        group <= AK_ATTN_ROWS_MAX && (groups % p->n_threads == 0 || groups >= 4 * p->n_threads);
    if (!whole && group <= AK_ATTN_ROWS_MAX && p->pass.batch->n == 1 && n_blocks == 1) {
        uint32_t first, n_pages;
        find_visible_pages(p, a, blocks, &first, &n_pages);
        n_pages = count_present(page_table(p, c, blocks), first, n_pages);
        if (n_pages >= SPLIT_PAGES_MIN) {
            run_thread_pages(p, c, blocks, thread, first, n_pages);
            ak_pool_barrier(p->pool, thread);
            merge_thread_heads(p, c, thread, n_pages);
            return;
        }
    }
    uint32_t per_item = whole ? group : 1, pieces = group / per_item;
    for (uint32_t i = thread; i < groups * pieces; i += p->n_threads) {
        uint32_t kv_head = i / pieces % a->n_kv_heads;
        struct item item = { .block = blocks[i / (pieces * a->n_kv_heads)],
                             .kv_head = kv_head,
                             .first_head = kv_head * group + i % pieces * per_item,
                             .n_heads = per_item };
        run_item(p, c, &item, &p->memory.scratch[thread]);
    }
}

const struct ak_cpu_op ak_cpu_op_attention = { .steps = { step_attention } };
