/* Shapes of KV pools: sizes and offsets, the same for every backend. */
#include "engine/backend/backend.h"

#include <assert.h>

#include "base/mem.h"

enum { GROUP_ALIGN = 64 };

struct ak_backend *ak_backend_for_layer(struct ak_backend *b, int layer)
{
    return b->ops->layer_backend ? b->ops->layer_backend(b, layer) : b;
}

enum ak_quant_type ak_kv_stored_type(enum akunu_kv_type type)
{
    static const enum ak_quant_type stored[AK_KV_TYPE_COUNT] = {
        [AKUNU_KV_F16] = AK_QUANT_F16,       [AKUNU_KV_F32] = AK_QUANT_F32,
        [AKUNU_KV_BF16] = AK_QUANT_BF16,     [AKUNU_KV_Q8_0] = AK_QUANT_Q8_0,
        [AKUNU_KV_Q4_0] = AK_QUANT_Q4_0,     [AKUNU_KV_Q4_1] = AK_QUANT_Q4_1,
        [AKUNU_KV_IQ4_NL] = AK_QUANT_IQ4_NL, [AKUNU_KV_Q5_0] = AK_QUANT_Q5_0,
        [AKUNU_KV_Q5_1] = AK_QUANT_Q5_1,
    };
    assert((unsigned)type < AK_KV_TYPE_COUNT);
    return stored[type];
}

static uint64_t row_bytes(enum akunu_kv_type type, uint32_t head_dim)
{
    uint64_t bytes = 0;
    (void)ak_quant_row_bytes(ak_kv_stored_type(type), head_dim, &bytes);
    return bytes;
}

static bool has_quantized_keys(const struct ak_kv_shape *shape)
{
    return ak_quant_info(ak_kv_stored_type(shape->k_type))->block_elems > 1;
}

uint64_t ak_kv_group_bytes(const struct ak_kv_shape *shape)
{
    uint64_t bytes = AK_KV_GROUP_TOKENS * row_bytes(shape->k_type, shape->head_dim);
    return has_quantized_keys(shape) ? ak_round_up(bytes, GROUP_ALIGN) : bytes;
}

uint64_t ak_kv_k_bytes(const struct ak_kv_shape *shape)
{
    uint64_t bytes = AK_KV_PAGE_TOKENS / AK_KV_GROUP_TOKENS * ak_kv_group_bytes(shape);
    return bytes + (has_quantized_keys(shape) ? shape->head_dim * sizeof(float) : 0);
}

uint64_t ak_kv_v_bytes(const struct ak_kv_shape *shape)
{
    return AK_KV_PAGE_TOKENS * row_bytes(shape->v_type, shape->head_dim);
}

uint64_t ak_kv_page_bytes(const struct ak_kv_shape *shape)
{
    uint64_t bytes;
    if (!ak_mul_u64((uint64_t)shape->n_layers * shape->n_kv_heads,
                    ak_kv_k_bytes(shape) + ak_kv_v_bytes(shape), &bytes))
        return 0;
    return bytes;
}

/* Aligned to a cache line. */
uint64_t ak_kv_state_offset(const struct ak_kv_shape *shape, uint32_t sequence)
{
    uint64_t pages = ak_kv_page_bytes(shape) * shape->n_pages;
    return (pages + 63) / 64 * 64 + sequence * shape->state_elems * sizeof(float);
}

uint64_t ak_kv_pool_bytes(const struct ak_kv_shape *shape)
{
    uint64_t pages, states, bytes;
    if (!ak_mul_u64(ak_kv_page_bytes(shape), shape->n_pages, &pages) ||
        !ak_mul_u64(shape->state_elems, sizeof(float), &states) ||
        !ak_mul_u64(states, shape->n_states, &states) || !ak_add_u64(pages, 63, &bytes) ||
        !ak_add_u64(bytes, states, &bytes))
        return 0;
    return states > 0 ? ak_kv_state_offset(shape, shape->n_states) : pages;
}
