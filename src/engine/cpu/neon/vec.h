/* NEON's vectors of floats: the type vf and its operations. The float kernels in cpu/tmpl/ use
 * them, so one source serves several ISAs. They include this header as AK_VEC_H (local.mk). */
#ifndef AK_ENGINE_CPU_NEON_VEC_H
#define AK_ENGINE_CPU_NEON_VEC_H

#include "engine/cpu/neon/floats.h"
#include "engine/cpu/neon/lanes.h"

typedef float32x4_t vf;
enum { VF_LANES = 4 };

AK_KERNEL vf vf_load(const float *p)
{
    return vld1q_f32(p);
}

AK_KERNEL void vf_store(float *p, vf x)
{
    vst1q_f32(p, x);
}

AK_KERNEL vf vf_set1(float x)
{
    return vdupq_n_f32(x);
}

AK_KERNEL vf vf_add(vf a, vf b)
{
    return vaddq_f32(a, b);
}

AK_KERNEL vf vf_mul(vf a, vf b)
{
    return vmulq_f32(a, b);
}

AK_KERNEL vf vf_div(vf a, vf b)
{
    return vdivq_f32(a, b);
}

/* a·b + c, rounded once */
AK_KERNEL vf vf_fma(vf a, vf b, vf c)
{
    return vfmaq_f32(c, a, b);
}

AK_KERNEL vf vf_neg(vf x)
{
    return vnegq_f32(x);
}

AK_KERNEL vf vf_exp(vf x)
{
    return ak_neon_expf(x);
}

AK_KERNEL vf vf_erf(vf x)
{
    return ak_neon_erff(x);
}

/* Adds the upper half to the lower half until one lane is left. */
AK_KERNEL float vf_sum(vf x)
{
    return ak_neon_horizontal_sum4(x);
}

AK_KERNEL vf vf_load_f16(const uint16_t *p)
{
    return ak_neon_load_f16((const uint8_t *)p);
}

AK_KERNEL vf vf_load_bf16(const uint16_t *p)
{
    return ak_neon_load_bf16((const uint8_t *)p);
}

/* Ties to even. */
AK_KERNEL void vf_store_f16(uint16_t *p, vf x)
{
    vst1_u16(p, vreinterpret_u16_f16(vcvt_f16_f32(x)));
}

#endif
