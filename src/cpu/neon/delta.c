/* The gated delta rule: a lane is a column of the state. */
#include <arm_neon.h>

#include "cpu/generic.h"
#include "cpu/neon/neon.h"

/* vectors of columns at once: with twice as many, the sums do not fit the registers */
enum { VECTORS = 8 };

_Static_assert(AK_DELTA_STEP == VECTORS * 4, "columns come in whole groups");

void ak_neon_delta_rule(const float *restrict q, const float *restrict k, size_t rows,
                        const float *restrict v, float decay, float beta, float *restrict state,
                        size_t stride, float *restrict out, size_t n)
{
    for (size_t j = 0; j < n; j += VECTORS * 4) {
        float32x4_t d[VECTORS], o[VECTORS];
        AK_UNROLL
        for (size_t c = 0; c < VECTORS; c++)
            d[c] = o[c] = vdupq_n_f32(0.0f);
        for (size_t i = 0; i < rows; i++)
            AK_UNROLL
        for (size_t c = 0; c < VECTORS; c++)
            d[c] = vfmaq_n_f32(d[c], vld1q_f32(state + i * stride + j + c * 4), k[i]);
        AK_UNROLL
        for (size_t c = 0; c < VECTORS; c++)
            d[c] = vmulq_n_f32(vfmaq_n_f32(vld1q_f32(v + j + c * 4), d[c], -decay), beta);
        for (size_t i = 0; i < rows; i++)
            AK_UNROLL
        for (size_t c = 0; c < VECTORS; c++) {
            float *at = state + i * stride + j + c * 4;
            float32x4_t s = vfmaq_n_f32(vmulq_n_f32(vld1q_f32(at), decay), d[c], k[i]);
            vst1q_f32(at, s);
            o[c] = vfmaq_n_f32(o[c], s, q[i]);
        }
        AK_UNROLL
        for (size_t c = 0; c < VECTORS; c++)
            vst1q_f32(out + j + c * 4, o[c]);
    }
}
