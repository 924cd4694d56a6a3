#include <math.h>

#include "cpu/generic.h"
#include "cpu/scalar/scalar.h"

typedef float load_fn(const void *base, size_t i);

static float load_f16(const void *base, size_t i)
{
    return ak_f16_to_float(((const uint16_t *)base)[i]);
}

static float load_f32(const void *base, size_t i)
{
    return ((const float *)base)[i];
}

static void scores(load_fn *load, const float *q, size_t q_stride, size_t n_rows, size_t head_dim,
                   const void *k, size_t first, size_t end, float *weights)
{
    for (size_t i = 0; i < n_rows; i++, q += q_stride, weights += AK_PAGE_TOKENS) {
        for (size_t t = first; t < end; t++) {
            size_t base = t / AK_PAGE_GROUP * head_dim * AK_PAGE_GROUP + t % AK_PAGE_GROUP;
            float s = 0.0f;
            for (size_t d = 0; d < head_dim; d++)
                s = fmaf(q[d], load(k, base + d * AK_PAGE_GROUP), s);
            weights[t] = s;
        }
    }
}

static void row_values(load_fn *load, float *weights, size_t head_dim, const void *v, size_t first,
                       size_t end, float *max, float *sum, float *out)
{
    float largest = -INFINITY, partial[AK_PAGE_GROUP] = { 0 };
    for (size_t t = first; t < end; t++)
        largest = weights[t] > largest ? weights[t] : largest;
    for (size_t t = first; t < end; t++) {
        weights[t] = ak_expf(weights[t] - largest);
        partial[t % AK_PAGE_GROUP] += weights[t];
    }
    *max = largest;
    *sum = ak_generic_fold(partial, AK_PAGE_GROUP);
    for (size_t d = 0; d < head_dim; d++) {
        float acc = 0.0f;
        for (size_t t = first; t < end; t++)
            acc = fmaf(weights[t], load(v, t * head_dim + d), acc);
        out[d] = acc;
    }
}

static void values(load_fn *load, float *weights, size_t n_rows, size_t head_dim, const void *v,
                   const uint16_t *first, const uint16_t *end, float *max, float *sum, float *out,
                   size_t out_stride)
{
    for (size_t i = 0; i < n_rows; i++)
        row_values(load, weights + i * AK_PAGE_TOKENS, head_dim, v, first[i], end[i], max + i,
                   sum + i, out + i * out_stride);
}

void ak_scalar_attend_scores_f16(const float *restrict q, size_t q_stride, size_t n_rows,
                                 size_t head_dim, const void *restrict k, size_t first, size_t end,
                                 float *restrict weights)
{
    scores(load_f16, q, q_stride, n_rows, head_dim, k, first, end, weights);
}

void ak_scalar_attend_scores_f32(const float *restrict q, size_t q_stride, size_t n_rows,
                                 size_t head_dim, const void *restrict k, size_t first, size_t end,
                                 float *restrict weights)
{
    scores(load_f32, q, q_stride, n_rows, head_dim, k, first, end, weights);
}

void ak_scalar_attend_values_f16(float *restrict weights, size_t n_rows, size_t head_dim,
                                 const void *restrict v, const uint16_t *restrict first,
                                 const uint16_t *restrict end, float *restrict max,
                                 float *restrict sum, float *restrict out, size_t out_stride)
{
    values(load_f16, weights, n_rows, head_dim, v, first, end, max, sum, out, out_stride);
}

void ak_scalar_attend_values_f32(float *restrict weights, size_t n_rows, size_t head_dim,
                                 const void *restrict v, const uint16_t *restrict first,
                                 const uint16_t *restrict end, float *restrict max,
                                 float *restrict sum, float *restrict out, size_t out_stride)
{
    values(load_f32, weights, n_rows, head_dim, v, first, end, max, sum, out, out_stride);
}
