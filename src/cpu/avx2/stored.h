/* Elements of rows that are stored as floats, in registers. */
#ifndef AK_CPU_AVX2_STORED_H
#define AK_CPU_AVX2_STORED_H

#include "cpu/avx2/lanes.h"

AK_KERNEL size_t element_bytes(enum ak_type type)
{
    return type == AK_F32 ? sizeof(float) : sizeof(uint16_t);
}

/* 8 elements. */
AK_KERNEL __m256 load_stored(enum ak_type type, const uint8_t *p)
{
    if (type == AK_F32)
        return _mm256_loadu_ps((const float *)(const void *)p);
    if (type == AK_F16)
        return load_f16(p);
    __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
}

#endif
