/* Roofline probes of AVX-512: reading and int8 products. */
#include <immintrin.h>

#include "cpu/setter.h"

/* XORs all lanes into one number; a sum could overflow. */
static uint64_t xor_lanes(__m512i x)
{
    uint64_t lanes[8], folded = 0;
    _mm512_storeu_si512(lanes, x);
    for (int i = 0; i < 8; i++)
        folded ^= lanes[i];
    return folded;
}

static uint64_t probe_read(const uint8_t *restrict p, size_t bytes)
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
static uint64_t probe_int8(size_t rounds, uint64_t *sink)
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

AK_SETTER(probe)
{
    k->probe_read = probe_read;
    k->probe_int8 = probe_int8;
}
