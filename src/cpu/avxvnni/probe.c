/* Roofline probe of AVX-VNNI: int8 products. The others are AVX2's. */
#include <immintrin.h>

#include "cpu/setter.h"

/* Twelve chains of vpdpbusd with separate operands, so that none is merged. */
static uint64_t probe_int8(size_t rounds, uint64_t *sink)
{
    enum { CHAINS = 12 };
    __m256i sum[CHAINS], x[CHAINS];
    for (int j = 0; j < CHAINS; j++) {
        sum[j] = _mm256_set1_epi8((char)(j + 1));
        x[j] = _mm256_set1_epi8((char)(j * 3 + 1));
    }
    const __m256i w = _mm256_set1_epi8((char)(rounds & 7));
    for (size_t i = 0; i < rounds; i++) {
#pragma GCC unroll 12
        for (int j = 0; j < CHAINS; j++)
            sum[j] = _mm256_dpbusd_epi32(sum[j], w, x[j]);
    }
    __m256i all = sum[0];
    for (int j = 1; j < CHAINS; j++)
        all = _mm256_xor_si256(all, sum[j]);
    *sink = (uint64_t)_mm256_extract_epi64(all, 0) ^ (uint64_t)_mm256_extract_epi64(all, 3);
    return (uint64_t)rounds * CHAINS * 32 * 2;
}

AK_SETTER(probe)
{
    k->probe_int8 = probe_int8;
}
