/* Loads stored rows of floats or F8 into registers as f32, for kernels that read rows as stored. */
#ifndef AK_ENGINE_CPU_AVX2_STORED_H
#define AK_ENGINE_CPU_AVX2_STORED_H

#include "engine/cpu/avx2/lanes.h"

/* 8 elements of F32, F16 or BF16. */
AK_KERNEL __m256 load_stored(enum ak_quant_type type, const uint8_t *p)
{
    if (type == AK_QUANT_F32)
        return _mm256_loadu_ps((const float *)(const void *)p);
    return type == AK_QUANT_F16 ? load_f16(p) : load_bf16(p);
}

/* Scale of the block that contains element i of a row of F8. */
AK_KERNEL __m256 load_scale(const uint8_t *row, size_t i)
{
    return _mm256_broadcast_ss((const float *)(const void *)ak_cpu_stored_scale(row, i));
}

/* Converts E4M3 numbers in the upper bytes of 16 bits (lower bytes 0) to half floats. E4M3 becomes
 * a short F16 after inserting a fifth exponent bit, 0; the shift keeps the sign in place. */
AK_KERNEL __m256i halves_of_f8(__m256i upper)
{
    return _mm256_and_si256(_mm256_srai_epi16(upper, 1), _mm256_set1_epi16((int16_t)0xbfff));
}

/* 32 elements from element i on of a row of F8. */
AK_KERNEL void load_f8(const uint8_t *row, size_t i, __m256 out[4])
{
    const __m256i zero = _mm256_setzero_si256();
    __m256i bytes = load_bytes(ak_cpu_stored_element(AK_QUANT_F8, row, i));
    __m256i even = halves_of_f8(_mm256_unpacklo_epi8(zero, bytes)),
            odd = halves_of_f8(_mm256_unpackhi_epi8(zero, bytes));
    __m256 scale = load_scale(row, i);
    out[0] = _mm256_mul_ps(_mm256_cvtph_ps(_mm256_castsi256_si128(even)), scale);
    out[1] = _mm256_mul_ps(_mm256_cvtph_ps(_mm256_castsi256_si128(odd)), scale);
    out[2] = _mm256_mul_ps(_mm256_cvtph_ps(_mm256_extracti128_si256(even, 1)), scale);
    out[3] = _mm256_mul_ps(_mm256_cvtph_ps(_mm256_extracti128_si256(odd, 1)), scale);
}

#endif
