/* Loads stored rows of floats or F8 into registers as f32, for kernels that read rows as stored. */
#ifndef AK_ENGINE_CPU_AVX512_STORED_H
#define AK_ENGINE_CPU_AVX512_STORED_H

#include "base/mem.h"
#include "engine/cpu/avx512/lanes.h"

/* Converts 16 halves, AK_QUANT_F16 or AK_QUANT_BF16, to floats. */
AK_KERNEL __m512 halves_to_f32(enum ak_quant_type type, __m256i halves)
{
    return type == AK_QUANT_F16 ?
               _mm512_cvtph_ps(halves) :
               _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
}

/* Converts 16 E4M3 numbers of F8. E4M3 becomes a short F16 after inserting a fifth exponent bit, 0;
 * the copy of the sign that sign extension leaves in its place is cleared. */
AK_KERNEL __m512 f8_to_f32(__m128i numbers, const uint8_t *scale)
{
    __m256i halves = _mm256_slli_epi16(_mm256_cvtepi8_epi16(numbers), 7);
    float factor;
    memcpy(&factor, scale, sizeof factor);
    return _mm512_mul_ps(
        _mm512_cvtph_ps(_mm256_and_si256(halves, _mm256_set1_epi16((int16_t)0xbfff))),
        _mm512_set1_ps(factor));
}

/* Loads 16 elements from element i on, with 0 in the lanes outside `lanes`; F8: all 16. */
AK_KERNEL __m512 load_some_stored(enum ak_quant_type type, const void *row, size_t i,
                                  __mmask16 lanes)
{
    const uint8_t *p = ak_cpu_stored_element(type, row, i);
    if (type == AK_QUANT_F8)
        return f8_to_f32(_mm_loadu_si128((const __m128i *)(const void *)p),
                         ak_cpu_stored_scale(row, i));
    return type == AK_QUANT_F32 ? _mm512_maskz_loadu_ps(lanes, p) :
                                  halves_to_f32(type, _mm256_maskz_loadu_epi16(lanes, p));
}

/* Loads 16 elements from element i on. */
AK_KERNEL __m512 load_stored(enum ak_quant_type type, const void *row, size_t i)
{
    const uint8_t *p = ak_cpu_stored_element(type, row, i);
    if (type == AK_QUANT_F8)
        return f8_to_f32(_mm_loadu_si128((const __m128i *)(const void *)p),
                         ak_cpu_stored_scale(row, i));
    return type == AK_QUANT_F32 ?
               _mm512_loadu_ps(p) :
               halves_to_f32(type, _mm256_loadu_si256((const __m256i *)(const void *)p));
}

#endif
