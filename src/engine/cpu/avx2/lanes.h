/* Inline functions on vectors of 8 lanes, shared by the AVX2 and AVX-VNNI sources: loads,
 * broadcasts, horizontal sums, exp and erf. exp and erf return the same bits as base/math.h,
 * because results must not depend on the ISA. */
#ifndef AK_ENGINE_CPU_AVX2_LANES_H
#define AK_ENGINE_CPU_AVX2_LANES_H

#include <immintrin.h>
#include <string.h>

#include "engine/cpu/generic.h"

AK_KERNEL __m256i load_bytes(const void *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}

AK_KERNEL void store_bytes(void *p, __m256i x)
{
    _mm256_storeu_si256((__m256i *)p, x);
}

/* Broadcast: the 32-bit word at p in all lanes, by one load. */
AK_KERNEL __m256i broadcast_word(const void *p)
{
    int32_t word;
    memcpy(&word, p, sizeof word);
    return _mm256_set1_epi32(word);
}

/* Returns x, hidden from the optimizer, so that a chain of sums keeps its source order, which needs
 * the fewest registers. */
AK_KERNEL __m256i in_order(__m256i x)
{
    __asm__("" : "+x"(x));
    return x;
}

AK_KERNEL __m256 load_f16(const void *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
}

AK_KERNEL __m256 load_bf16(const void *p)
{
    return _mm256_castsi256_ps(
        _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p)), 16));
}

/* Adds the upper half to the lower half until one is left. */
AK_KERNEL float horizontal_sum(__m256 x)
{
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

/* As ak_generic_horizontal_sum of 32 partial sums. */
AK_KERNEL float horizontal_sum32(const __m256 partial[4])
{
    return horizontal_sum(_mm256_add_ps(_mm256_add_ps(partial[0], partial[2]),
                                        _mm256_add_ps(partial[1], partial[3])));
}

/* ak_expf, the same operations in the same order. */
AK_KERNEL __m256 exp_lanes(__m256 x)
{
    __m256 round = _mm256_set1_ps(AK_EXP_ROUND);
    __m256 shifted = _mm256_fmadd_ps(x, _mm256_set1_ps(AK_EXP_LOG2E), round);
    __m256 n = _mm256_sub_ps(shifted, round);
    __m256 r = _mm256_fmadd_ps(n, _mm256_set1_ps(-AK_EXP_LN2_HIGH), x);
    r = _mm256_fmadd_ps(n, _mm256_set1_ps(-AK_EXP_LN2_LOW), r);
    __m256 p = _mm256_set1_ps(AK_EXP_C6);
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(AK_EXP_C5));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(AK_EXP_C4));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(AK_EXP_C3));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(AK_EXP_C2));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f));
    __m256i scale = _mm256_add_epi32(_mm256_slli_epi32(_mm256_castps_si256(shifted), 23),
                                     _mm256_set1_epi32(0x3f800000));
    __m256 y = _mm256_mul_ps(p, _mm256_castsi256_ps(scale));
    y = _mm256_andnot_ps(_mm256_cmp_ps(x, _mm256_set1_ps(AK_EXP_LOW), _CMP_LT_OQ), y);
    return _mm256_blendv_ps(y, _mm256_set1_ps(INFINITY),
                            _mm256_cmp_ps(x, _mm256_set1_ps(AK_EXP_HIGH), _CMP_GT_OQ));
}

/* ak_erff, the same operations in the same order. */
AK_KERNEL __m256 erf_lanes(__m256 x)
{
    const __m256 sign = _mm256_set1_ps(-0.0f);
    __m256 a = _mm256_andnot_ps(sign, x), z = _mm256_mul_ps(x, x);
    __m256 p = _mm256_set1_ps(AK_ERF_C13);
    p = _mm256_fmadd_ps(p, z, _mm256_set1_ps(AK_ERF_C11));
    p = _mm256_fmadd_ps(p, z, _mm256_set1_ps(AK_ERF_C9));
    p = _mm256_fmadd_ps(p, z, _mm256_set1_ps(AK_ERF_C7));
    p = _mm256_fmadd_ps(p, z, _mm256_set1_ps(AK_ERF_C5));
    p = _mm256_fmadd_ps(p, z, _mm256_set1_ps(AK_ERF_C3));
    p = _mm256_fmadd_ps(p, z, _mm256_set1_ps(AK_ERF_C1));
    __m256 t = _mm256_min_ps(_mm256_set1_ps(AK_ERF_HIGH), a); /* a if it is NaN */
    __m256 q = _mm256_set1_ps(AK_ERFC_LOG_C6);
    q = _mm256_fmadd_ps(q, t, _mm256_set1_ps(AK_ERFC_LOG_C5));
    q = _mm256_fmadd_ps(q, t, _mm256_set1_ps(AK_ERFC_LOG_C4));
    q = _mm256_fmadd_ps(q, t, _mm256_set1_ps(AK_ERFC_LOG_C3));
    q = _mm256_fmadd_ps(q, t, _mm256_set1_ps(AK_ERFC_LOG_C2));
    q = _mm256_fmadd_ps(q, t, _mm256_set1_ps(AK_ERFC_LOG_C1));
    q = _mm256_fmadd_ps(q, t, _mm256_set1_ps(AK_ERFC_LOG_C0));
    __m256 rest = _mm256_sub_ps(_mm256_set1_ps(1.0f), exp_lanes(q));
    __m256 large = _mm256_or_ps(_mm256_andnot_ps(sign, rest), _mm256_and_ps(sign, x));
    return _mm256_blendv_ps(large, _mm256_mul_ps(p, x),
                            _mm256_cmp_ps(a, _mm256_set1_ps(AK_ERF_SMALL), _CMP_LT_OQ));
}

#endif
