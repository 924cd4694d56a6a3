/* exp and erf on four floats, bit-identical to base/math.h since results must not depend on the
 * ISA, and a horizontal sum. */
#ifndef AK_ENGINE_CPU_NEON_FLOATS_H
#define AK_ENGINE_CPU_NEON_FLOATS_H

#include <arm_neon.h>

#include "engine/cpu/generic.h"

/* ak_expf on four floats: the same operations in the same order. */
AK_KERNEL float32x4_t ak_neon_expf(float32x4_t x)
{
    const float32x4_t one = vdupq_n_f32(1.0f);
    float32x4_t shifted = vfmaq_f32(vdupq_n_f32(AK_EXP_ROUND), x, vdupq_n_f32(AK_EXP_LOG2E));
    float32x4_t n = vsubq_f32(shifted, vdupq_n_f32(AK_EXP_ROUND));
    float32x4_t r = vfmaq_f32(x, n, vdupq_n_f32(-AK_EXP_LN2_HIGH));
    r = vfmaq_f32(r, n, vdupq_n_f32(-AK_EXP_LN2_LOW));
    float32x4_t p = vdupq_n_f32(AK_EXP_C6);
    p = vfmaq_f32(vdupq_n_f32(AK_EXP_C5), p, r);
    p = vfmaq_f32(vdupq_n_f32(AK_EXP_C4), p, r);
    p = vfmaq_f32(vdupq_n_f32(AK_EXP_C3), p, r);
    p = vfmaq_f32(vdupq_n_f32(AK_EXP_C2), p, r);
    p = vfmaq_f32(one, p, r);
    p = vfmaq_f32(one, p, r);
    uint32x4_t scale =
        vaddq_u32(vshlq_n_u32(vreinterpretq_u32_f32(shifted), 23), vdupq_n_u32(0x3f800000u));
    float32x4_t y = vmulq_f32(p, vreinterpretq_f32_u32(scale));
    y = vbslq_f32(vcltq_f32(x, vdupq_n_f32(AK_EXP_LOW)), vdupq_n_f32(0.0f), y);
    return vbslq_f32(vcgtq_f32(x, vdupq_n_f32(AK_EXP_HIGH)), vdupq_n_f32(INFINITY), y);
}

/* ak_erff on four floats: the same operations in the same order. */
AK_KERNEL float32x4_t ak_neon_erff(float32x4_t x)
{
    float32x4_t a = vabsq_f32(x), z = vmulq_f32(x, x);
    float32x4_t p = vdupq_n_f32(AK_ERF_C13);
    p = vfmaq_f32(vdupq_n_f32(AK_ERF_C11), p, z);
    p = vfmaq_f32(vdupq_n_f32(AK_ERF_C9), p, z);
    p = vfmaq_f32(vdupq_n_f32(AK_ERF_C7), p, z);
    p = vfmaq_f32(vdupq_n_f32(AK_ERF_C5), p, z);
    p = vfmaq_f32(vdupq_n_f32(AK_ERF_C3), p, z);
    p = vfmaq_f32(vdupq_n_f32(AK_ERF_C1), p, z);
    float32x4_t t = vbslq_f32(vcgtq_f32(a, vdupq_n_f32(AK_ERF_HIGH)), vdupq_n_f32(AK_ERF_HIGH), a);
    float32x4_t q = vdupq_n_f32(AK_ERFC_LOG_C6);
    q = vfmaq_f32(vdupq_n_f32(AK_ERFC_LOG_C5), q, t);
    q = vfmaq_f32(vdupq_n_f32(AK_ERFC_LOG_C4), q, t);
    q = vfmaq_f32(vdupq_n_f32(AK_ERFC_LOG_C3), q, t);
    q = vfmaq_f32(vdupq_n_f32(AK_ERFC_LOG_C2), q, t);
    q = vfmaq_f32(vdupq_n_f32(AK_ERFC_LOG_C1), q, t);
    q = vfmaq_f32(vdupq_n_f32(AK_ERFC_LOG_C0), q, t);
    float32x4_t rest = vsubq_f32(vdupq_n_f32(1.0f), ak_neon_expf(q));
    float32x4_t large = vbslq_f32(vdupq_n_u32(0x80000000u), x, rest);
    return vbslq_f32(vcltq_f32(a, vdupq_n_f32(AK_ERF_SMALL)), vmulq_f32(p, x), large);
}

/* Adds the upper half to the lower half until one is left. */
AK_KERNEL float ak_neon_horizontal_sum4(float32x4_t x)
{
    float32x2_t half = vadd_f32(vget_low_f32(x), vget_high_f32(x));
    return vget_lane_f32(half, 0) + vget_lane_f32(half, 1);
}

#endif
