/* Roofline probes of reading and of float products, written once for the vectors of every ISA.
 */
#include <string.h>

#include "engine/cpu/setter.h"

#include AK_VEC_H

typedef uint64_t words __attribute__((vector_size(sizeof(vf))));

static uint64_t probe_read(const uint8_t *restrict p, size_t bytes)
{
    enum { CHAINS = 4 };
    words sum[CHAINS] = { { 0 } };
    for (size_t i = 0; i + sizeof sum <= bytes; i += sizeof sum)
        AK_UNROLLED_FOR (size_t j = 0; j < CHAINS; j++) {
            words read;
            memcpy(&read, p + i + j * sizeof read, sizeof read);
            sum[j] ^= read;
        }
    sum[0] ^= sum[1] ^ sum[2] ^ sum[3];
    uint64_t folded = 0;
    for (size_t j = 0; j < sizeof sum[0] / sizeof folded; j++)
        folded ^= sum[0][j];
    return folded;
}

/* Sixteen chains of fma, enough for four units with a latency of four cycles. Different starting
 * values keep them apart, and they share two operands, so that everything stays in registers. */
static uint64_t probe_f32(size_t rounds, uint64_t *sink)
{
    enum { CHAINS = VF_LANES == 8 ? 12 : 16 }; /* AVX2 has sixteen registers */
    vf sum[CHAINS];
    AK_UNROLLED_FOR (int j = 0; j < CHAINS; j++)
        sum[j] = vf_set1((float)j);
    const vf w = vf_set1((float)(rounds & 7)), x = vf_set1(0.5f);
    for (size_t i = 0; i < rounds; i++) {
        AK_UNROLLED_FOR (int j = 0; j < CHAINS; j++)
            sum[j] = vf_fma(w, x, sum[j]);
    }
    AK_UNROLLED_FOR (int j = 1; j < CHAINS; j++)
        sum[0] = vf_add(sum[0], sum[j]);
    *sink = vf_sum(sum[0]) > 0.0f;
    return (uint64_t)rounds * CHAINS * VF_LANES * 2;
}

AK_SETTER(probe)
{
    k->probe_read = probe_read;
    k->probe_f32 = probe_f32;
}
