/* What a candidate weighs in a draw. */
#ifndef AK_SAMPLE_WEIGHT_H
#define AK_SAMPLE_WEIGHT_H

#include "base/math.h"

/* exp of x ≤ 0: ak_expf with products and sums that round apart. A fused one is a
 * call on the baseline of x86-64, and a whole vocabulary is weighed for a token. */
static inline float ak_sample_exp(float x)
{
    float shifted = x * AK_EXP_LOG2E + AK_EXP_ROUND;
    float n = shifted - AK_EXP_ROUND;
    float r = (x - n * AK_EXP_LN2_HIGH) - n * AK_EXP_LN2_LOW;
    float p = AK_EXP_C6 * r + AK_EXP_C5;
    p = p * r + AK_EXP_C4;
    p = p * r + AK_EXP_C3;
    p = p * r + AK_EXP_C2;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    float scale = ak_bits_float((ak_float_bits(shifted) << 23) + 0x3f800000u);
    return x < AK_EXP_LOW ? 0.0f : p * scale;
}

#endif
