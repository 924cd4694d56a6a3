/* Roofline probe of AVX2: int8 products. */
#include "engine/cpu/setter.h"
#include "engine/cpu/avx2/lanes.h"

/* vpmaddubsw and the sum in 16 bits: the minimum cost of a 4-bit product. Operands are hidden from
 * the compiler, so that no product is merged or moved. */
static uint64_t probe_int8(size_t rounds, uint64_t *sink)
{
    enum { CHAINS = 8 };
    __m256i sum[CHAINS], a = _mm256_set1_epi8((char)(rounds & 15));
    for (int j = 0; j < CHAINS; j++)
        sum[j] = _mm256_setzero_si256();
    for (size_t i = 0; i < rounds; i++) {
#pragma GCC unroll 8
        for (int j = 0; j < CHAINS; j++) {
            a = in_order(a);
            sum[j] = in_order(_mm256_add_epi16(sum[j], _mm256_maddubs_epi16(a, a)));
        }
    }
    __m256i all = sum[0];
    for (int j = 1; j < CHAINS; j++)
        all = _mm256_xor_si256(all, sum[j]);
    *sink = (uint64_t)_mm256_extract_epi64(all, 0) ^ (uint64_t)_mm256_extract_epi64(all, 3);
    return (uint64_t)rounds * CHAINS * 32 * 2;
}

AK_SETTER(probe_int8)
{
    k->probe_int8 = probe_int8;
}
