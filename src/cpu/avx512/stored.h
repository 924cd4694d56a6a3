/* Elements of rows that are stored as floats, in registers. */
#ifndef AK_CPU_AVX512_STORED_H
#define AK_CPU_AVX512_STORED_H

#include "base/mem.h"
#include "cpu/avx512/lanes.h"

AK_KERNEL size_t element_bytes(enum ak_type type)
{
    return type == AK_F32 ? sizeof(float) : sizeof(uint16_t);
}

/* 16 halves, AK_F16 or AK_BF16, as floats. */
AK_KERNEL __m512 widen_halves(enum ak_type type, __m256i halves)
{
    return type == AK_F16 ? _mm512_cvtph_ps(halves) : _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
}

/* Of 16 elements from number i on those in `lanes`, else zeros. */
AK_KERNEL __m512 load_some_stored(enum ak_type type, const void *row, size_t i, __mmask16 lanes)
{
    const uint8_t *p = (const uint8_t *)row + i * element_bytes(type);
    return type == AK_F32 ? _mm512_maskz_loadu_ps(lanes, p) : widen_halves(type, _mm256_maskz_loadu_epi16(lanes, p));
}

/* 16 elements from number i on. */
AK_KERNEL __m512 load_stored(enum ak_type type, const void *row, size_t i)
{
    const uint8_t *p = (const uint8_t *)row + i * element_bytes(type);
    return type == AK_F32 ? _mm512_loadu_ps(p) : widen_halves(type, _mm256_loadu_si256((const __m256i *)(const void *)p));
}

#endif
