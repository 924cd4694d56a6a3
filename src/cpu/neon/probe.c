/* Roofline probes of NEON: reading, int8 and f32 products. */
#include <arm_neon.h>

#include "cpu/neon/neon.h"

uint64_t ak_neon_probe_read(const uint8_t *restrict p, size_t bytes)
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
uint64_t ak_neon_probe_int8(size_t rounds, uint64_t *sink)
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

/* As above, with sixteen chains for cores with four units of four cycles latency. */
uint64_t ak_neon_probe_f32(size_t rounds, uint64_t *sink)
{
    enum { CHAINS = 16 };
    float32x4_t sum[CHAINS];
    for (int j = 0; j < CHAINS; j++)
        sum[j] = vdupq_n_f32((float)j);
    const float32x4_t w = vdupq_n_f32((float)(rounds & 7)), x = vdupq_n_f32(0.5f);
    for (size_t i = 0; i < rounds; i++) {
#pragma GCC unroll 16
        for (int j = 0; j < CHAINS; j++)
            sum[j] = vfmaq_f32(sum[j], w, x);
    }
    uint32x4_t all = vreinterpretq_u32_f32(sum[0]);
    for (int j = 1; j < CHAINS; j++)
        all = veorq_u32(all, vreinterpretq_u32_f32(sum[j]));
    *sink = (uint64_t)vgetq_lane_u64(vreinterpretq_u64_u32(all), 0);
    return (uint64_t)rounds * CHAINS * 4 * 2;
}
