#include "backend/backend.h"

#include "base/mem.h"

uint64_t ak_kv_page_bytes(const struct ak_kv_shape *shape)
{
    uint64_t token = shape->k_type == AK_KV_F16 ? 2 : 4, bytes;
    token += shape->v_type == AK_KV_F16 ? 2 : 4;
    if (!ak_mul_u64((uint64_t)shape->n_layers * shape->n_kv_heads, (uint64_t)shape->head_dim * AK_KV_PAGE_TOKENS, &bytes) ||
        !ak_mul_u64(bytes, token, &bytes))
        return 0;
    return bytes;
}
