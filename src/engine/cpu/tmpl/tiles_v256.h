/* Decodes nibbles of packed tiles to bytes in 256-bit vectors, and includes the ISA's multiply
 * step. */
#ifndef AK_ENGINE_CPU_TMPL_TILES_V256_H
#define AK_ENGINE_CPU_TMPL_TILES_V256_H

#include "base/mem.h"

#include AK_STEP_H

enum {
    GROUP = 4, /* tokens that use a word while it is in registers */
    HALF_LINE = AK_LINE_BYTES / 2,
    BLOCK_WORDS = AK_BLOCK_K / 4
};

AK_KERNEL void zero_rows(float *y, size_t y_stride, size_t n)
{
    for (size_t t = 0; t < n; t++)
        memset(y + t * y_stride, 0, AK_TILE_ROWS * sizeof *y);
}

AK_KERNEL __m256i low_nibbles(__m256i x)
{
    return _mm256_and_si256(x, _mm256_set1_epi8(15));
}

AK_KERNEL __m256i high_nibbles(__m256i x)
{
    return _mm256_and_si256(_mm256_srli_epi16(x, 4), _mm256_set1_epi8(15));
}

/* a | (b & mask) */
AK_KERNEL __m256i or_masked(__m256i a, __m256i b, int mask)
{
    return _mm256_or_si256(a, _mm256_and_si256(b, _mm256_set1_epi8((char)mask)));
}

/* Values of MXFP4's nibbles + 16; of IQ4_NL's and IQ4_XS's, which are wide, + `bias`. */
AK_KERNEL __m256i nibble_values(enum ak_quant_type type, int bias, __m256i nibbles)
{
    __m128i values = _mm_loadu_si128((const __m128i *)(const void *)(type == AK_QUANT_MXFP4 ?
                                                                         ak_quant_mxfp4_values :
                                                                         ak_quant_iq4_values));
    values = _mm_add_epi8(values, _mm_set1_epi8((char)(type == AK_QUANT_MXFP4 ? 16 : bias)));
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(values), nibbles);
}

/* The same from a table of 16 values in memory. */
AK_KERNEL __m256i table_values(const uint8_t *table, int bias, __m256i nibbles)
{
    __m128i values = _mm_loadu_si128((const __m128i *)(const void *)table);
    values = _mm_add_epi8(values, _mm_set1_epi8((char)bias));
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(values), nibbles);
}

#endif
