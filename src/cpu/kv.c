/* Rotation, and keys and values into the cache.
 *
 * A page holds, for each layer and head, the keys of AK_PAGE_TOKENS tokens and then
 * their values. Keys lie in groups of 16 tokens, so that a kernel makes 16 scores
 * side by side: of the float types [head_dim][16], of the quantised ones as the
 * tiles of a weight whose rows are the tokens. Values lie token after token.
 *
 * Some models have a few elements in their keys that are a hundred times the others,
 * and take all precision from their block. Keys that are quantised, and the queries
 * that meet them, go through a Hadamard transform first, which spreads every element
 * over all of them and changes no product. */
#include <string.h>

#include "cpu/cpu.h"

uint8_t *ak_cpu_kv_head(const struct ak_cpu_prepared *p, uint32_t page, uint32_t layer, uint32_t head)
{
    const struct ak_kv_shape *s = &p->kv_shape;
    size_t index = ((size_t)page * s->n_layers + layer) * s->n_kv_heads + head;
    return p->kv + index * p->kv_head_bytes;
}

size_t ak_cpu_spread(float *x, size_t n)
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

/* n floats as the cache stores them, one after another. */
static void narrow(const struct ak_kernels *k, enum ak_kv_type type, const float *x, size_t n, void *to)
{
    if (type == AK_KV_F16)
        k->narrow_f16(x, to, n);
    else
        ak_type_info(ak_kv_stored(type))->quantise(x, to, n);
}

/* Puts the elements of one token into its column of a group. */
static void store_column(const void *elements, size_t size, size_t n, size_t token, uint8_t *group)
{
    uint8_t *to = group + token * size;
    for (size_t d = 0; d < n; d++, to += AK_PAGE_GROUP * size)
        memcpy(to, (const uint8_t *)elements + d * size, size);
}

static void store_key(const struct ak_cpu_prepared *p, float *x, size_t token, uint8_t *keys, void *scratch)
{
    const struct ak_kv_shape *s = &p->kv_shape;
    enum ak_type stored = ak_kv_stored(s->k_type);
    uint8_t *group = keys + token / AK_PAGE_GROUP * p->key_group_bytes;
    token %= AK_PAGE_GROUP;
    if (s->k_type == AK_KV_F32) {
        store_column(x, sizeof(float), s->head_dim, token, group);
        return;
    }
    if (ak_type_is_tiled(stored))
        ak_cpu_spread(x, s->head_dim);
    narrow(&p->cpu->kernels, s->k_type, x, s->head_dim, scratch);
    if (ak_type_is_tiled(stored))
        ak_pack_row(stored, scratch, s->head_dim, token, group);
    else
        store_column(scratch, sizeof(uint16_t), s->head_dim, token, group);
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
        uint32_t token = position % AK_PAGE_TOKENS;
        uint8_t *values = to + p->keys_bytes;
        store_key(p, key, token, to, scratch);
        narrow(&p->cpu->kernels, p->kv_shape.v_type, row + q->v_at + head * q->head_dim, q->head_dim, values + token * p->value_bytes);
    }
}
