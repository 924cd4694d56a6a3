/* Attention over one KV page: the definition of its results. Contracts in engine/cpu/kernels.h. */
#include <math.h>

#include "engine/cpu/setter.h"
#include "engine/cpu/generic.h"

typedef float load_fn(const void *base, size_t i);

static float load_f16(const void *base, size_t i)
{
    return ak_f16_to_float(((const uint16_t *)base)[i]);
}

static float load_f32(const void *base, size_t i)
{
    return ((const float *)base)[i];
}

static void attn_qk(load_fn *load, const float *q, size_t q_stride, size_t n_rows, size_t head_dim,
                    const void *k, size_t first, size_t end, float *weights)
{
    for (size_t i = 0; i < n_rows; i++, q += q_stride, weights += AK_KV_PAGE_TOKENS) {
        for (size_t t = first; t < end; t++) {
            size_t base =
                t / AK_KV_GROUP_TOKENS * head_dim * AK_KV_GROUP_TOKENS + t % AK_KV_GROUP_TOKENS;
            float s = 0.0f;
            for (size_t d = 0; d < head_dim; d++)
                s = fmaf(q[d], load(k, base + d * AK_KV_GROUP_TOKENS), s);
            weights[t] = s;
        }
    }
}

static void mix_row_values(load_fn *load, float *weights, size_t head_dim, const void *v,
                           size_t first, size_t end, float *max, float *sum, float *out)
{
    float largest = -INFINITY, partial[AK_KV_GROUP_TOKENS] = { 0 };
    for (size_t t = first; t < end; t++)
        largest = weights[t] > largest ? weights[t] : largest;
    for (size_t t = first; t < end; t++) {
        weights[t] = ak_expf(weights[t] - largest);
        partial[t % AK_KV_GROUP_TOKENS] += weights[t];
    }
    *max = largest;
    *sum = ak_generic_horizontal_sum(partial, AK_KV_GROUP_TOKENS);
    for (size_t d = 0; d < head_dim; d++) {
        float acc = 0.0f;
        for (size_t t = first; t < end; t++)
            acc = fmaf(weights[t], load(v, t * head_dim + d), acc);
        out[d] = acc;
    }
}

static void attn_pv(load_fn *load, float *weights, size_t n_rows, size_t head_dim, const void *v,
                    const uint16_t *first, const uint16_t *end, float *max, float *sum, float *out,
                    size_t out_stride)
{
    for (size_t i = 0; i < n_rows; i++)
        mix_row_values(load, weights + i * AK_KV_PAGE_TOKENS, head_dim, v, first[i], end[i],
                       max + i, sum + i, out + i * out_stride);
}

static AK_ATTN_QK(attn_qk_f16, load_f16);
static AK_ATTN_QK(attn_qk_f32, load_f32);
static AK_ATTN_PV(attn_pv_f16, load_f16);
static AK_ATTN_PV(attn_pv_f32, load_f32);

AK_SETTER(attn)
{
    k->attn_qk_f16 = attn_qk_f16;
    k->attn_qk_f32 = attn_qk_f32;
    k->attn_pv_f16 = attn_pv_f16;
    k->attn_pv_f32 = attn_pv_f32;
}
