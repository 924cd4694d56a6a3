/* Roofline probes of AVX-512: reading, int8, f32 and BF16 products. */
#include <immintrin.h>

#include "cpu/avx512/avx512.h"

/* XORs all lanes into one number; a sum could overflow. */
static uint64_t xor_lanes(__m512i x)
{
    uint64_t lanes[8], folded = 0;
    _mm512_storeu_si512(lanes, x);
    for (int i = 0; i < 8; i++)
        folded ^= lanes[i];
    return folded;
}

uint64_t ak_avx512_probe_read(const uint8_t *restrict p, size_t bytes)
{
    __m512i a = _mm512_setzero_si512(), b = a, c = a, d = a;
    for (size_t i = 0; i + 256 <= bytes; i += 256) {
        a = _mm512_xor_si512(a, _mm512_loadu_si512(p + i));
        b = _mm512_xor_si512(b, _mm512_loadu_si512(p + i + 64));
        c = _mm512_xor_si512(c, _mm512_loadu_si512(p + i + 128));
        d = _mm512_xor_si512(d, _mm512_loadu_si512(p + i + 192));
    }
    return xor_lanes(_mm512_xor_si512(_mm512_xor_si512(a, b), _mm512_xor_si512(c, d)));
}

/* Twelve chains of vpdpbusd with separate operands, so that none is merged. */
uint64_t ak_avx512_probe_int8(size_t rounds, uint64_t *sink)
{
    enum { CHAINS = 12 };
    __m512i sum[CHAINS], x[CHAINS];
    for (int j = 0; j < CHAINS; j++) {
        sum[j] = _mm512_set1_epi8((char)(j + 1));
        x[j] = _mm512_set1_epi8((char)(j * 3 + 1));
    }
    const __m512i w = _mm512_set1_epi8((char)(rounds & 7));
    for (size_t i = 0; i < rounds; i++) {
#pragma GCC unroll 12
        for (int j = 0; j < CHAINS; j++)
            sum[j] = _mm512_dpbusd_epi32(sum[j], w, x[j]);
    }
    __m512i all = sum[0];
    for (int j = 1; j < CHAINS; j++)
        all = _mm512_xor_si512(all, sum[j]);
    *sink = xor_lanes(all);
    return (uint64_t)rounds * CHAINS * 64 * 2;
}

uint64_t ak_avx512_probe_f32(size_t rounds, uint64_t *sink)
{
    enum { CHAINS = 12 };
    __m512 sum[CHAINS];
    for (int j = 0; j < CHAINS; j++)
        sum[j] = _mm512_set1_ps((float)j);
    const __m512 w = _mm512_set1_ps((float)(rounds & 7)), x = _mm512_set1_ps(0.5f);
    for (size_t i = 0; i < rounds; i++) {
#pragma GCC unroll 12
        for (int j = 0; j < CHAINS; j++)
            sum[j] = _mm512_fmadd_ps(w, x, sum[j]);
    }
    __m512 all = sum[0];
    for (int j = 1; j < CHAINS; j++)
        all = _mm512_xor_ps(all, sum[j]);
    *sink = xor_lanes(_mm512_castps_si512(all));
    return (uint64_t)rounds * CHAINS * 16 * 2;
}

/* Optional instruction of this bundle: ak_cpu_fill_kernels checks for it. */
__attribute__((target("avx512bf16"))) uint64_t ak_avx512_probe_bf16(size_t rounds, uint64_t *sink)
{
    enum { CHAINS = 12 };
    __m512 sum[CHAINS];
    for (int j = 0; j < CHAINS; j++)
        sum[j] = _mm512_set1_ps((float)j);
    const __m512bh w = (__m512bh)_mm512_set1_epi16((short)(0x3f80 + (rounds & 7))),
                   x = (__m512bh)_mm512_set1_epi16(0x3f00);
    for (size_t i = 0; i < rounds; i++) {
#pragma GCC unroll 12
        for (int j = 0; j < CHAINS; j++)
            sum[j] = _mm512_dpbf16_ps(sum[j], w, x);
    }
    __m512 all = sum[0];
    for (int j = 1; j < CHAINS; j++)
        all = _mm512_xor_ps(all, sum[j]);
    *sink = xor_lanes(_mm512_castps_si512(all));
    return (uint64_t)rounds * CHAINS * 32 * 2;
}
