/* Rotation, the KV cache, and attention page by page.
 *
 * A row is one query head of one token. Each page gives a row a partial result of
 * its own; partial results are merged in page order, so a row's bits depend on
 * nothing but its own tokens. */
#include <math.h>
#include <string.h>

#include "cpu/cpu.h"

static size_t type_bytes(enum ak_kv_type type)
{
    return type == AK_KV_F16 ? sizeof(uint16_t) : sizeof(float);
}

static size_t k_bytes(const struct ak_kv_shape *s)
{
    return (size_t)AK_PAGE_TOKENS * s->head_dim * type_bytes(s->k_type);
}

static size_t v_bytes(const struct ak_kv_shape *s)
{
    return (size_t)AK_PAGE_TOKENS * s->head_dim * type_bytes(s->v_type);
}

uint8_t *ak_cpu_kv_head(const struct ak_cpu_prepared *p, uint32_t page, uint32_t layer, uint32_t head)
{
    const struct ak_kv_shape *s = &p->kv_shape;
    size_t index = ((size_t)page * s->n_layers + layer) * s->n_kv_heads + head;
    return p->kv + index * (k_bytes(s) + v_bytes(s));
}

/* Values of one token into the lanes of K's groups. */
static void store_k(const struct ak_kernels *k, enum ak_kv_type type, const float *x, size_t head_dim, size_t token, void *to, void *scratch)
{
    size_t base = token / AK_PAGE_GROUP * head_dim * AK_PAGE_GROUP + token % AK_PAGE_GROUP;
    if (type == AK_KV_F16) {
        uint16_t *half = scratch;
        k->narrow_f16(x, half, head_dim);
        for (size_t d = 0; d < head_dim; d++)
            ((uint16_t *)to)[base + d * AK_PAGE_GROUP] = half[d];
    } else {
        for (size_t d = 0; d < head_dim; d++)
            ((float *)to)[base + d * AK_PAGE_GROUP] = x[d];
    }
}

static void store_v(const struct ak_kernels *k, enum ak_kv_type type, const float *x, size_t head_dim, size_t token, void *to)
{
    if (type == AK_KV_F16)
        k->narrow_f16(x, (uint16_t *)to + token * head_dim, head_dim);
    else
        memcpy((float *)to + token * head_dim, x, head_dim * sizeof *x);
}

static void norm_and_rotate(const struct ak_cpu_prepared *p, const struct ak_command *c, uint32_t norm, float *x, size_t t, float *scratch)
{
    const struct ak_qkv_params *q = &c->params.qkv;
    uint32_t half = q->rope_dims / 2;
    if (norm != AK_NONE) {
        p->cpu->kernels.rms_norm(x, p->weights->vectors[norm].data, q->head_dim, q->norm_eps, scratch);
        memcpy(x, scratch, q->head_dim * sizeof *x);
    }
    if (half)
        p->cpu->kernels.rope(x, p->cos + t * half, p->sin + t * half, q->rope_dims, q->interleaved != 0);
}

void ak_step_qkv(const struct ak_cpu_step *step, struct ak_cpu_prepared *p, unsigned thread)
{
    const struct ak_command *c = step->command;
    const struct ak_qkv_params *q = &c->params.qkv;
    const struct ak_kernels *k = &p->cpu->kernels;
    float *scratch = p->scratch[thread].row;
    uint32_t heads = q->n_heads + q->n_kv_heads;
    size_t begin, end;
    ak_split((size_t)p->batch->n * heads, p->n_threads, thread, &begin, &end);
    for (size_t i = begin; i < end; i++) {
        size_t t = i / heads;
        uint32_t head = (uint32_t)(i % heads);
        float *row = ak_cpu_slot(p, c->in) + t * ak_cpu_stride(p, c->in);
        if (head < q->n_heads) {
            norm_and_rotate(p, c, c->vector, row + q->q_at + head * q->head_dim, t, scratch);
            continue;
        }
        head -= q->n_heads;
        float *key = row + q->k_at + head * q->head_dim;
        norm_and_rotate(p, c, c->vector2, key, t, scratch);
        uint32_t position = p->batch->positions[t];
        uint32_t page = p->batch->pages[p->batch->sequences[t]][position / AK_PAGE_TOKENS];
        uint8_t *to = ak_cpu_kv_head(p, page, (uint32_t)c->layer, head);
        store_k(k, p->kv_shape.k_type, key, q->head_dim, position % AK_PAGE_TOKENS, to, scratch);
        store_v(k, p->kv_shape.v_type, row + q->v_at + head * q->head_dim, q->head_dim, position % AK_PAGE_TOKENS,
                to + k_bytes(&p->kv_shape));
    }
}

/* One work item: some query heads, which share a KV head, of a block's tokens. */
struct item {
    struct ak_token_block block;
    uint32_t kv_head, first_head, n_heads;
};

static void load_queries(const struct ak_cpu_prepared *p, const struct ak_command *c, const struct item *item, struct ak_thread_scratch *own,
                         float *max, float *sum)
{
    const struct ak_attention_params *a = &c->params.attention;
    uint32_t rows = item->block.n * item->n_heads;
    for (uint32_t r = 0; r < rows; r++) {
        size_t t = item->block.first + r / item->n_heads, head = item->first_head + r % item->n_heads;
        const float *q = ak_cpu_slot(p, c->in) + t * ak_cpu_stride(p, c->in) + a->q_at + head * a->head_dim;
        for (uint32_t d = 0; d < a->head_dim; d++)
            own->q[r * a->head_dim + d] = q[d] * a->scale;
        max[r] = -INFINITY;
        sum[r] = 0.0f;
    }
    memset(own->out, 0, (size_t)rows * a->head_dim * sizeof(float));
}

/* Tokens [*first, *end) of page `page` that a row at `position` sees. */
static void visible(uint32_t position, uint32_t window, uint32_t page, uint16_t *first, uint16_t *end)
{
    uint32_t begin = page * AK_PAGE_TOKENS, stop = begin + AK_PAGE_TOKENS;
    uint32_t from = window && position + 1 > window ? position + 1 - window : 0;
    *first = (uint16_t)(from > begin ? (from < stop ? from - begin : AK_PAGE_TOKENS) : 0);
    *end = (uint16_t)(position + 1 < stop ? (position + 1 > begin ? position + 1 - begin : 0) : AK_PAGE_TOKENS);
}

static void attend_page(const struct ak_cpu_prepared *p, const struct ak_command *c, const struct item *item, struct ak_thread_scratch *own,
                        uint32_t page, float *max, float *sum)
{
    const struct ak_attention_params *a = &c->params.attention;
    const struct ak_kernels *k = &p->cpu->kernels;
    const struct ak_batch *batch = p->batch;
    uint32_t rows = item->block.n * item->n_heads, begin = 0, n = 0;
    uint16_t first[AK_ATTEND_ROWS], end[AK_ATTEND_ROWS];
    float page_max[AK_ATTEND_ROWS], page_sum[AK_ATTEND_ROWS];
    /* the rows that see anything of this page stand together: positions ascend */
    for (uint32_t r = 0; r < rows; r++) {
        uint16_t from, to;
        visible(batch->positions[item->block.first + r / item->n_heads], a->window, page, &from, &to);
        if (from >= to)
            continue;
        if (n == 0)
            begin = r;
        first[n] = from;
        end[n++] = to;
    }
    if (n == 0)
        return;
    const uint8_t *kv = ak_cpu_kv_head(p, batch->pages[batch->sequences[item->block.first]][page], (uint32_t)c->layer, item->kv_head);
    ak_attend_page_fn *attend = p->kv_shape.k_type == AK_KV_F16 ? k->attend_page_f16 : k->attend_page_f32;
    attend(own->q + begin * a->head_dim, a->head_dim, n, a->head_dim, kv, kv + k_bytes(&p->kv_shape), first, end, own->weights, page_max,
           page_sum, own->page_out, a->head_dim);
    for (uint32_t r = 0; r < n; r++)
        k->attend_merge(&max[begin + r], &sum[begin + r], own->out + (begin + r) * a->head_dim, page_max[r], page_sum[r],
                        own->page_out + r * a->head_dim, a->head_dim);
}

static void attend(const struct ak_cpu_prepared *p, const struct ak_command *c, const struct item *item, struct ak_thread_scratch *own)
{
    const struct ak_attention_params *a = &c->params.attention;
    float max[AK_ATTEND_ROWS], sum[AK_ATTEND_ROWS];
    uint32_t oldest = p->batch->positions[item->block.first], newest = p->batch->positions[item->block.first + item->block.n - 1];
    uint32_t first_page = a->window && oldest + 1 > a->window ? (oldest + 1 - a->window) / AK_PAGE_TOKENS : 0;
    load_queries(p, c, item, own, max, sum);
    for (uint32_t page = first_page; page <= newest / AK_PAGE_TOKENS; page++)
        attend_page(p, c, item, own, page, max, sum);
    for (uint32_t r = 0; r < item->block.n * item->n_heads; r++) {
        size_t t = item->block.first + r / item->n_heads, head = item->first_head + r % item->n_heads;
        float *row = own->out + r * a->head_dim;
        p->cpu->kernels.divide(row, sum[r], a->head_dim);
        memcpy(ak_cpu_slot(p, c->out) + t * ak_cpu_stride(p, c->out) + head * a->head_dim, row, a->head_dim * sizeof *row);
    }
}

/* Items go round the threads, so that late tokens, which see more, are spread. */
void ak_step_attention(const struct ak_cpu_step *step, struct ak_cpu_prepared *p, unsigned thread)
{
    const struct ak_attention_params *a = &step->command->params.attention;
    uint32_t group = a->n_heads / a->n_kv_heads;
    uint32_t groups = p->n_blocks * a->n_kv_heads;
    /* a group stays together, and reads K and V once, where that leaves no thread idle */
    bool whole = group <= AK_ATTEND_ROWS && (groups % p->n_threads == 0 || groups >= 4 * p->n_threads);
    uint32_t per_item = whole ? group : 1, pieces = group / per_item;
    uint32_t n_items = groups * pieces;
    for (uint32_t i = thread; i < n_items; i += p->n_threads) {
        uint32_t kv_head = i / pieces % a->n_kv_heads;
        struct item item = { .block = p->blocks[i / (pieces * a->n_kv_heads)], .kv_head = kv_head,
                             .first_head = kv_head * group + i % pieces * per_item, .n_heads = per_item };
        attend(p, step->command, &item, &p->scratch[thread]);
    }
}
