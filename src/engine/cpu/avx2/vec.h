/* AVX2's vectors of floats: the type vf and its operations. The float kernels in cpu/tmpl/ use
 * them, so one source serves several ISAs. They include this header as AK_VEC_H (local.mk). */
#ifndef AK_ENGINE_CPU_AVX2_VEC_H
#define AK_ENGINE_CPU_AVX2_VEC_H

#include "engine/cpu/avx2/lanes.h"

typedef __m256 vf;
enum { VF_LANES = 8 };

AK_KERNEL vf vf_load(const float *p)
{
    return _mm256_loadu_ps(p);
}

AK_KERNEL void vf_store(float *p, vf x)
{
    _mm256_storeu_ps(p, x);
}

AK_KERNEL vf vf_set1(float x)
{
    return _mm256_set1_ps(x);
}

AK_KERNEL vf vf_add(vf a, vf b)
{
    return _mm256_add_ps(a, b);
}

AK_KERNEL vf vf_mul(vf a, vf b)
{
    return _mm256_mul_ps(a, b);
}

AK_KERNEL vf vf_div(vf a, vf b)
{
    return _mm256_div_ps(a, b);
}

/* a·b + c, rounded once */
AK_KERNEL vf vf_fma(vf a, vf b, vf c)
{
    return _mm256_fmadd_ps(a, b, c);
}

AK_KERNEL vf vf_neg(vf x)
{
    return _mm256_xor_ps(x, _mm256_set1_ps(-0.0f));
}

AK_KERNEL vf vf_exp(vf x)
{
    return exp_lanes(x);
}

AK_KERNEL vf vf_erf(vf x)
{
    return erf_lanes(x);
}

/* Adds the upper half to the lower half until one lane is left. */
AK_KERNEL float vf_sum(vf x)
{
    return horizontal_sum(x);
}

AK_KERNEL vf vf_load_f16(const uint16_t *p)
{
    return load_f16(p);
}

AK_KERNEL vf vf_load_bf16(const uint16_t *p)
{
    return load_bf16(p);
}

/* Ties to even. */
AK_KERNEL void vf_store_f16(uint16_t *p, vf x)
{
    _mm_storeu_si128((__m128i *)(void *)p, _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
}

#endif
