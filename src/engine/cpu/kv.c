/* Applies RoPE to queries and keys, and writes keys and values to the KV cache.
 *
 * A page holds, per layer and head, the keys of AK_KV_PAGE_TOKENS tokens, then their values. Keys
 * are stored in groups of 16 tokens, so that a kernel computes 16 scores at once: float types as
 * [head_dim][16], quantized types as weight tiles with the 16 tokens as rows. Values are stored
 * token by token.
 *
 * In some models a few elements of a key are a hundred times larger than the others and use up the
 * precision of their block. Quantized keys and their queries are therefore Hadamard-transformed,
 * which spreads outliers over all elements and preserves products up to a factor. Large elements
 * are nearly equal in neighboring tokens, so each key is stored as its difference from the page's
 * first key. That key is kept as floats after the page's key groups. */
#include <string.h>

#include "engine/cpu/cpu.h"

uint8_t *ak_cpu_kv_head(const struct ak_cpu_prepared *p, uint32_t page, uint32_t layer,
                        uint32_t head)
{
    const struct ak_kv_shape *s = &p->kv.shape;
    size_t index = ((size_t)page * s->n_layers + layer) * s->n_kv_heads + head;
    return p->kv.pages + index * p->kv.head_bytes;
}

size_t ak_cpu_hadamard(float *x, size_t n)
{
    size_t block = n & (~n + 1);
    for (float *end = x + n; x < end; x += block)
        for (size_t half = 1; half < block; half *= 2)
            for (size_t i = 0; i < block; i += 2 * half)
                for (size_t j = i; j < i + half; j++) {
                    float a = x[j], b = x[j + half];
                    x[j] = a + b;
                    x[j + half] = a - b;
                }
    return block;
}

/* Converts or quantizes n floats to the cache's type. */
static void convert_elements(const struct ak_cpu_kernels *k, enum akunu_kv_type type,
                             const float *x, size_t n, void *to)
{
    if (type == AKUNU_KV_F16)
        k->f32_to_f16(x, to, n);
    else
        ak_quant_info(ak_kv_stored_type(type))->quantize(x, to, n);
}

/* Writes the elements of one token to its column of a key group. */
static void store_column(const void *elements, size_t size, size_t n, size_t token, uint8_t *group)
{
    uint8_t *to = group + token * size;
    for (size_t d = 0; d < n; d++, to += AK_KV_GROUP_TOKENS * size)
        memcpy(to, (const uint8_t *)elements + d * size, size);
}

/* Stores a key of a float type. */
static void store_key(const struct ak_cpu_prepared *p, const float *x, size_t token, uint8_t *keys,
                      void *scratch)
{
    const struct ak_kv_shape *s = &p->kv.shape;
    uint8_t *group = keys + token / AK_KV_GROUP_TOKENS * p->kv.key_group_bytes;
    token %= AK_KV_GROUP_TOKENS;
    if (s->k_type == AKUNU_KV_F32) {
        store_column(x, sizeof(float), s->head_dim, token, group);
        return;
    }
    convert_elements(&p->cpu->kernels, s->k_type, x, s->head_dim, scratch);
    store_column(scratch, sizeof(uint16_t), s->head_dim, token, group);
}

/* Quantizes a transformed key as its difference from the page's first key; overwrites x. */
static void store_difference(const struct ak_cpu_prepared *p, float *x, size_t token, uint8_t *keys,
                             void *scratch)
{
    const struct ak_kv_shape *s = &p->kv.shape;
    const float *first = ak_cpu_first_key(p, keys);
    enum ak_quant_type stored = ak_kv_stored_type(s->k_type);
    for (uint32_t d = 0; d < s->head_dim; d++)
        x[d] -= first[d];
    convert_elements(&p->cpu->kernels, s->k_type, x, s->head_dim, scratch);
    ak_cpu_pack_row(stored, scratch, s->head_dim, token % AK_KV_GROUP_TOKENS,
                    keys + token / AK_KV_GROUP_TOKENS * p->kv.key_group_bytes);
}

static void norm_and_rotate(const struct ak_cpu_prepared *p, const struct ak_command *c,
                            uint32_t norm, float *x, size_t t, float *scratch)
{
    const struct ak_op_qkv_params *q = &c->params.qkv;
    if (norm != AK_OP_NONE) {
        p->cpu->kernels.rms_norm(x, p->weights->vectors[norm].data, q->head_dim, q->norm_eps,
                                 scratch);
        memcpy(x, scratch, q->head_dim * sizeof *x);
    }
    if (q->rope_dims > 0)
        p->cpu->kernels.rope(x, ak_cpu_angles(p, p->pass.cos, q->rope_table, t),
                             ak_cpu_angles(p, p->pass.sin, q->rope_table, t), q->rope_dims,
                             q->interleaved != 0);
}

/* Finds the keys and values of a KV head in the page of batch token t; *token: its index in the
 * page. */
static uint8_t *find_page(const struct ak_cpu_prepared *p, const struct ak_command *c, size_t t,
                          uint32_t head, uint32_t *token)
{
    uint32_t position = p->pass.batch->positions[t];
    uint32_t page = p->pass.batch->pages[p->pass.batch->sequences[t]][position / AK_KV_PAGE_TOKENS];
    *token = position % AK_KV_PAGE_TOKENS;
    return ak_cpu_kv_head(p, page, c->params.qkv.kv_layer, head);
}

/* Processes one KV head of batch token t: normalizes and rotates the key, stores key and value.
 * `row`: the token's queries, keys and values. A quantized key is only transformed here, and kept
 * as floats if it is the first of its page; step_qkv quantizes it once all first keys are known. */
static void store_head(const struct ak_cpu_prepared *p, const struct ak_command *c, size_t t,
                       uint32_t head, float *row, float *scratch)
{
    const struct ak_op_qkv_params *q = &c->params.qkv;
    uint32_t token;
    uint8_t *page = find_page(p, c, t, head, &token);
    float *key = row + q->k_at + head * q->head_dim;
    norm_and_rotate(p, c, c->vector2, key, t, scratch);
    if (ak_cpu_is_tiled(ak_kv_stored_type(p->kv.shape.k_type))) {
        ak_cpu_hadamard(key, q->head_dim);
        if (token == 0)
            memcpy(ak_cpu_first_key(p, page), key, q->head_dim * sizeof *key);
    } else {
        store_key(p, key, token, page, scratch);
    }
    convert_elements(&p->cpu->kernels, p->kv.shape.v_type, row + q->v_at + head * q->head_dim,
                     q->head_dim, page + p->kv.keys_bytes + token * p->kv.value_bytes);
}

/* Quantizes the transformed key of a KV head of batch token t. */
static void quantize_head(const struct ak_cpu_prepared *p, const struct ak_command *c, size_t t,
                          uint32_t head, float *scratch)
{
    const struct ak_op_qkv_params *q = &c->params.qkv;
    uint32_t token;
    uint8_t *page = find_page(p, c, t, head, &token);
    float *key = ak_cpu_slot(p, c->in) + t * ak_cpu_stride(p, c->in) + q->k_at + head * q->head_dim;
    store_difference(p, key, token, page, scratch);
}

/* Whether batch token t is the second of two neighbors in the batch whose keys share the bytes of
 * their fifth bits: the first one's thread stores both. */
static bool is_second(const struct ak_batch *batch, size_t t)
{
    return t > 0 && batch->positions[t] % 2 == 1 && batch->sequences[t] == batch->sequences[t - 1];
}

static void step_qkv(const struct ak_cpu_step *step, struct ak_cpu_prepared *p, unsigned thread)
{
    const struct ak_command *c = step->command;
    const struct ak_op_qkv_params *q = &c->params.qkv;
    float *scratch = p->memory.scratch[thread].row;
    uint32_t heads = q->n_heads + q->n_kv_heads;
    size_t begin, end;
    ak_chunk_range((size_t)p->pass.batch->n * heads, p->n_threads, thread, &begin, &end);
    bool is_stored = p->pass.batch->importance != NULL;
    for (size_t i = begin; i < end; i++) {
        float *row = ak_cpu_slot(p, c->in) + i / heads * ak_cpu_stride(p, c->in);
        uint32_t head = (uint32_t)(i % heads);
        if (head < q->n_heads)
            norm_and_rotate(p, c, c->vector, row + q->q_at + head * q->q_step, i / heads, scratch);
        else if (!is_stored)
            store_head(p, c, i / heads, head - q->n_heads, row, scratch);
    }
    if (is_stored || !ak_cpu_is_tiled(ak_kv_stored_type(p->kv.shape.k_type)))
        return;
    if (p->pass.batch->n > 1)
        ak_pool_barrier(p->pool, thread);
    for (size_t i = begin; i < end; i++) {
        size_t t = i / heads;
        if (i % heads < q->n_heads || is_second(p->pass.batch, t))
            continue;
        quantize_head(p, c, t, (uint32_t)(i % heads) - q->n_heads, scratch);
        if (t + 1 < p->pass.batch->n && is_second(p->pass.batch, t + 1))
            quantize_head(p, c, t + 1, (uint32_t)(i % heads) - q->n_heads, scratch);
    }
}

const struct ak_cpu_op ak_cpu_op_qkv = { .steps = { step_qkv } };
