/* AVX-512's vectors of floats: the type vf and its operations. The float kernels in cpu/tmpl/ use
 * them, so one source serves several ISAs. They include this header as AK_VEC_H (local.mk). */
#ifndef AK_ENGINE_CPU_AVX512_VEC_H
#define AK_ENGINE_CPU_AVX512_VEC_H

#include "engine/cpu/avx512/lanes.h"

typedef __m512 vf;
enum { VF_LANES = 16 };

AK_KERNEL vf vf_load(const float *p)
{
    return _mm512_loadu_ps(p);
}

AK_KERNEL void vf_store(float *p, vf x)
{
    _mm512_storeu_ps(p, x);
}

AK_KERNEL vf vf_set1(float x)
{
    return _mm512_set1_ps(x);
}

AK_KERNEL vf vf_add(vf a, vf b)
{
    return _mm512_add_ps(a, b);
}

AK_KERNEL vf vf_mul(vf a, vf b)
{
    return _mm512_mul_ps(a, b);
}

AK_KERNEL vf vf_div(vf a, vf b)
{
    return _mm512_div_ps(a, b);
}

/* a·b + c, rounded once */
AK_KERNEL vf vf_fma(vf a, vf b, vf c)
{
    return _mm512_fmadd_ps(a, b, c);
}

AK_KERNEL vf vf_neg(vf x)
{
    return _mm512_xor_ps(x, _mm512_set1_ps(-0.0f));
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
    return load_halves(p);
}

AK_KERNEL vf vf_load_bf16(const uint16_t *p)
{
    return load_bf16(p);
}

/* Ties to even. */
AK_KERNEL void vf_store_f16(uint16_t *p, vf x)
{
    _mm256_storeu_si256((__m256i *)(void *)p, _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
}

#endif
