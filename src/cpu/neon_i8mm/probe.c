/* Roofline probe of I8MM: int8 products. The others are NEON's. */
#include <arm_neon.h>

#include "cpu/setter.h"

/* Twelve chains of smmla with separate operands, so that none is merged. */
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
            sum[j] = vmmlaq_s32(sum[j], w, x[j]);
    }
    int32x4_t all = sum[0];
    for (int j = 1; j < CHAINS; j++)
        all = veorq_s32(all, sum[j]);
    *sink = (uint64_t)vgetq_lane_s64(vreinterpretq_s64_s32(all), 0);
    return (uint64_t)rounds * CHAINS * 32 * 2;
}

AK_SETTER(probe)
{
    k->probe_int8 = probe_int8;
}
