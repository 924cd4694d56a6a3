/* The gated delta rule, written once for the vectors of every ISA. A lane is a column of the
 * state. */
#include "engine/cpu/setter.h"

#include AK_VEC_H

enum {
    STEP = AK_DELTA_STEP / VF_LANES, /* vectors of the fewest columns */
    /* vectors at once, each with its own chain of sums; with more, the sums do not fit the
     * registers */
    VECTORS = STEP < 4 ? 4 : STEP
};

/* n vectors of columns; n is a constant. */
AK_KERNEL void columns(size_t n, const float *q, const float *k, size_t rows, const float *v,
                       float decay, float beta, float *state, size_t stride, float *out)
{
    const vf g = vf_set1(decay), minus_g = vf_set1(-decay), b = vf_set1(beta);
    vf d[VECTORS], o[VECTORS];
    AK_UNROLLED_FOR (size_t c = 0; c < n; c++)
        d[c] = o[c] = vf_set1(0.0f);
    for (size_t i = 0; i < rows; i++) {
        const vf key = vf_set1(k[i]);
        AK_UNROLLED_FOR (size_t c = 0; c < n; c++)
            d[c] = vf_fma(key, vf_load(state + i * stride + c * VF_LANES), d[c]);
    }
    AK_UNROLLED_FOR (size_t c = 0; c < n; c++)
        d[c] = vf_mul(b, vf_fma(minus_g, d[c], vf_load(v + c * VF_LANES)));
    for (size_t i = 0; i < rows; i++) {
        const vf key = vf_set1(k[i]), query = vf_set1(q[i]);
        AK_UNROLLED_FOR (size_t c = 0; c < n; c++) {
            float *at = state + i * stride + c * VF_LANES;
            vf s = vf_fma(key, d[c], vf_mul(g, vf_load(at)));
            vf_store(at, s);
            o[c] = vf_fma(query, s, o[c]);
        }
    }
    AK_UNROLLED_FOR (size_t c = 0; c < n; c++)
        vf_store(out + c * VF_LANES, o[c]);
}

static void delta_rule(const float *restrict q, const float *restrict k, size_t rows,
                       const float *restrict v, float decay, float beta, float *restrict state,
                       size_t stride, float *restrict out, size_t n)
{
    size_t j = 0;
    for (; n - j >= VECTORS * VF_LANES; j += VECTORS * VF_LANES)
        columns(VECTORS, q, k, rows, v + j, decay, beta, state + j, stride, out + j);
    for (; VECTORS > STEP && j < n; j += STEP * VF_LANES)
        columns(STEP, q, k, rows, v + j, decay, beta, state + j, stride, out + j);
}

AK_SETTER(delta)
{
    k->delta_rule = delta_rule;
}
