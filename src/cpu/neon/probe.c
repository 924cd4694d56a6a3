/* Roofline probes of NEON: reading and int8 products. */
#include <arm_neon.h>

#include "cpu/setter.h"

static uint64_t probe_read(const uint8_t *restrict p, size_t bytes)
{
    uint8x16_t a = vdupq_n_u8(0), b = a, c = a, d = a;
    for (size_t i = 0; i + 64 <= bytes; i += 64) {
        a = veorq_u8(a, vld1q_u8(p + i));
        b = veorq_u8(b, vld1q_u8(p + i + 16));
        c = veorq_u8(c, vld1q_u8(p + i + 32));
        d = veorq_u8(d, vld1q_u8(p + i + 48));
    }
    return vgetq_lane_u64(vreinterpretq_u64_u8(veorq_u8(veorq_u8(a, b), veorq_u8(c, d))), 0);
}

/* Twelve chains of sdot with separate operands, so that none is merged. */
static uint64_t probe_int8(size_t rounds, uint64_t *sink)
{
    enum { CHAINS = 12 };
    int32x4_t sum[CHAINS];
    int8x16_t x[CHAINS];
    for (int j = 0; j < CHAINS; j++) {
        sum[j] = vdupq_n_s32(j);
        x[j] = vdupq_n_s8((int8_t)(j * 3 + 1));
    }
    const int8x16_t w = vdupq_n_s8((int8_t)(rounds & 7));
    for (size_t i = 0; i < rounds; i++) {
#pragma GCC unroll 12
        for (int j = 0; j < CHAINS; j++)
            sum[j] = vdotq_s32(sum[j], w, x[j]);
    }
    int32x4_t all = sum[0];
    for (int j = 1; j < CHAINS; j++)
        all = veorq_s32(all, sum[j]);
    *sink = (uint64_t)vgetq_lane_s64(vreinterpretq_s64_s32(all), 0);
    return (uint64_t)rounds * CHAINS * 16 * 2;
}

AK_SETTER(probe)
{
    k->probe_read = probe_read;
    k->probe_int8 = probe_int8;
}
