/* Inline functions on vectors of 16 lanes: loads, broadcasts, transposition, horizontal sums;
 * exp and erf, both bit-identical to base/math.h. Shared by the AVX-512, AVX512-BF16 and AMX
 * sources. */
#ifndef AK_ENGINE_CPU_AVX512_LANES_H
#define AK_ENGINE_CPU_AVX512_LANES_H

#include <immintrin.h>
#include <string.h>

#include "engine/cpu/generic.h"

AK_KERNEL __m512i load_line(const void *p)
{
    return _mm512_loadu_si512(p);
}

/* As load_line, but loads at this point of the program. Compilers move loads to their uses, and
 * memory would no longer be read in address order. */
AK_KERNEL __m512i load_line_now(const void *p)
{
    __m512i x = load_line(p);
    __asm__ volatile("" : "+v"(x));
    return x;
}

AK_KERNEL void store_line(void *p, __m512i x)
{
    _mm512_storeu_si512(p, x);
}

/* Converts 16 halves to floats. */
AK_KERNEL __m512 load_halves(const void *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
}

/* Converts 16 BF16 to floats. */
AK_KERNEL __m512 load_bf16(const void *p)
{
    return _mm512_castsi512_ps(
        _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p)), 16));
}

/* Broadcast: the 32-bit word at p in all lanes, by one load. */
AK_KERNEL __m512i broadcast_word(const void *p)
{
    int32_t word;
    memcpy(&word, p, sizeof word);
    return _mm512_set1_epi32(word);
}

/* The first n < 16 lanes. */
AK_KERNEL __mmask16 first_lanes(size_t n)
{
    return (__mmask16)((1u << n) - 1);
}

/* Transposes: exchanges lane r of v[i] and lane i of v[r]. */
AK_KERNEL void transpose_lanes(__m512 v[16])
{
    __m512 pairs[16], fours[16];
    AK_UNROLLED_FOR (size_t i = 0; i < 16; i += 2) {
        pairs[i] = _mm512_unpacklo_ps(v[i], v[i + 1]);
        pairs[i + 1] = _mm512_unpackhi_ps(v[i], v[i + 1]);
    }
    AK_UNROLLED_FOR (size_t i = 0; i < 16; i += 4)
        AK_UNROLLED_FOR (size_t j = 0; j < 2; j++) {
            __m512d a = _mm512_castps_pd(pairs[i + j]), b = _mm512_castps_pd(pairs[i + j + 2]);
            fours[i + 2 * j] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, b));
            fours[i + 2 * j + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, b));
        }
    AK_UNROLLED_FOR (size_t j = 0; j < 4; j++) {
        __m512 even[2], odd[2];
        AK_UNROLLED_FOR (size_t i = 0; i < 2; i++) {
            even[i] = _mm512_shuffle_f32x4(fours[8 * i + j], fours[8 * i + 4 + j], 0x88);
            odd[i] = _mm512_shuffle_f32x4(fours[8 * i + j], fours[8 * i + 4 + j], 0xdd);
        }
        v[j] = _mm512_shuffle_f32x4(even[0], even[1], 0x88);
        v[4 + j] = _mm512_shuffle_f32x4(odd[0], odd[1], 0x88);
        v[8 + j] = _mm512_shuffle_f32x4(even[0], even[1], 0xdd);
        v[12 + j] = _mm512_shuffle_f32x4(odd[0], odd[1], 0xdd);
    }
}

/* Adds the upper half to the lower half until one is left. */
AK_KERNEL float horizontal_sum(__m512 x)
{
    __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

/* ak_expf, the same operations in the same order. */
AK_KERNEL __m512 exp_lanes(__m512 x)
{
    __m512 round = _mm512_set1_ps(AK_EXP_ROUND);
    __m512 shifted = _mm512_fmadd_ps(x, _mm512_set1_ps(AK_EXP_LOG2E), round);
    __m512 n = _mm512_sub_ps(shifted, round);
    __m512 r = _mm512_fmadd_ps(n, _mm512_set1_ps(-AK_EXP_LN2_HIGH), x);
    r = _mm512_fmadd_ps(n, _mm512_set1_ps(-AK_EXP_LN2_LOW), r);
    __m512 p = _mm512_set1_ps(AK_EXP_C6);
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(AK_EXP_C5));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(AK_EXP_C4));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(AK_EXP_C3));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(AK_EXP_C2));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f));
    __m512i scale = _mm512_add_epi32(_mm512_slli_epi32(_mm512_castps_si512(shifted), 23),
                                     _mm512_set1_epi32(0x3f800000));
    __mmask16 low = _mm512_cmp_ps_mask(x, _mm512_set1_ps(AK_EXP_LOW), _CMP_LT_OQ);
    __mmask16 high = _mm512_cmp_ps_mask(x, _mm512_set1_ps(AK_EXP_HIGH), _CMP_GT_OQ);
    __m512 y = _mm512_maskz_mul_ps((__mmask16)~low, p, _mm512_castsi512_ps(scale));
    return _mm512_mask_mov_ps(y, high, _mm512_set1_ps(INFINITY));
}

/* ak_erff, the same operations in the same order. */
AK_KERNEL __m512 erf_lanes(__m512 x)
{
    const __m512 sign = _mm512_set1_ps(-0.0f);
    __m512 a = _mm512_andnot_ps(sign, x), z = _mm512_mul_ps(x, x);
    __m512 p = _mm512_set1_ps(AK_ERF_C13);
    p = _mm512_fmadd_ps(p, z, _mm512_set1_ps(AK_ERF_C11));
    p = _mm512_fmadd_ps(p, z, _mm512_set1_ps(AK_ERF_C9));
    p = _mm512_fmadd_ps(p, z, _mm512_set1_ps(AK_ERF_C7));
    p = _mm512_fmadd_ps(p, z, _mm512_set1_ps(AK_ERF_C5));
    p = _mm512_fmadd_ps(p, z, _mm512_set1_ps(AK_ERF_C3));
    p = _mm512_fmadd_ps(p, z, _mm512_set1_ps(AK_ERF_C1));
    __m512 t = _mm512_min_ps(_mm512_set1_ps(AK_ERF_HIGH), a); /* a if it is NaN */
    __m512 q = _mm512_set1_ps(AK_ERFC_LOG_C6);
    q = _mm512_fmadd_ps(q, t, _mm512_set1_ps(AK_ERFC_LOG_C5));
    q = _mm512_fmadd_ps(q, t, _mm512_set1_ps(AK_ERFC_LOG_C4));
    q = _mm512_fmadd_ps(q, t, _mm512_set1_ps(AK_ERFC_LOG_C3));
    q = _mm512_fmadd_ps(q, t, _mm512_set1_ps(AK_ERFC_LOG_C2));
    q = _mm512_fmadd_ps(q, t, _mm512_set1_ps(AK_ERFC_LOG_C1));
    q = _mm512_fmadd_ps(q, t, _mm512_set1_ps(AK_ERFC_LOG_C0));
    __m512 rest = _mm512_sub_ps(_mm512_set1_ps(1.0f), exp_lanes(q));
    __m512 large = _mm512_or_ps(_mm512_andnot_ps(sign, rest), _mm512_and_ps(sign, x));
    return _mm512_mask_mul_ps(
        large, _mm512_cmp_ps_mask(a, _mm512_set1_ps(AK_ERF_SMALL), _CMP_LT_OQ), p, x);
}

#endif
