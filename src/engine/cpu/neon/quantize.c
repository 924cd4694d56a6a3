/* Quantizes activations to int8 with one scale per 32 or 256; same results as the scalar
 * kernels. */
#include <arm_neon.h>
#include <string.h>

#include "engine/cpu/setter.h"
#include "base/half.h"
#include "engine/cpu/generic.h"

/* Largest magnitude of n values, compared as integers like in the scalar kernel. */
AK_KERNEL uint32_t largest_magnitude(const float *x, size_t n)
{
    uint32x4_t largest[4] = { vdupq_n_u32(0), vdupq_n_u32(0), vdupq_n_u32(0), vdupq_n_u32(0) };
    for (size_t i = 0; i < n; i += 16)
#pragma GCC unroll 4
        for (size_t j = 0; j < 4; j++) {
            uint32x4_t bits = vreinterpretq_u32_f32(vld1q_f32(x + i + 4 * j));
            largest[j] = vmaxq_u32(largest[j], vbicq_u32(bits, vdupq_n_u32(0x80000000u)));
        }
    return vmaxvq_u32(
        vmaxq_u32(vmaxq_u32(largest[0], largest[1]), vmaxq_u32(largest[2], largest[3])));
}

AK_KERNEL int16x8_t round8(const float *x, float32x4_t inverse)
{
    int32x4_t a = vcvtnq_s32_f32(vmulq_f32(vld1q_f32(x), inverse)),
              b = vcvtnq_s32_f32(vmulq_f32(vld1q_f32(x + 4), inverse));
    return vcombine_s16(vmovn_s32(a), vmovn_s32(b));
}

/* Quantizes n values by their largest magnitude; returns the scale. */
AK_KERNEL float quantize_block(const float *x, size_t n, int8_t *q)
{
    uint32_t largest = largest_magnitude(x, n);
    if (largest < ak_float_bits(0x1p-100f) || largest >= 0x7f800000u) {
        memset(q, 0, n);
        return largest < 0x7f800000u ? 0.0f : ak_bits_float(0x7fc00000u);
    }
    float max = ak_bits_float(largest);
    float32x4_t inverse = vdupq_n_f32(127.0f / max);
    for (size_t i = 0; i < n; i += 16)
        vst1q_s8(q + i, vcombine_s8(vmovn_s16(round8(x + i, inverse)),
                                    vmovn_s16(round8(x + i + 8, inverse))));
    return max / 127.0f;
}

static void quantize32(const float *restrict x, size_t n, struct ak_cpu_act32 *restrict out)
{
    for (size_t i = 0; i < n; i += 32, out++) {
        out->scale = quantize_block(x + i, 32, out->q);
        int32_t sum = vaddlvq_s8(vld1q_s8(out->q)) + vaddlvq_s8(vld1q_s8(out->q + 16));
        out->minus8_sum = -8 * sum;
        out->scaled_sum = out->scale * (float)sum;
        out->unused = 0;
    }
}

static void quantize256(const float *restrict x, size_t n, struct ak_cpu_act256 *restrict out)
{
    static const uint8_t pair_order[16] = { 0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15 };
    for (size_t i = 0; i < n; i += 256, out++) {
        out->scale = quantize_block(x + i, 256, out->q);
        out->sum = 0;
#pragma GCC unroll 8
        for (size_t j = 0; j < 8; j++) {
            int32_t a = vaddlvq_s8(vld1q_s8(out->q + j * 32)),
                    b = vaddlvq_s8(vld1q_s8(out->q + j * 32 + 16));
            out->minus32_sum16[2 * j] = -32 * a;
            out->minus32_sum16[2 * j + 1] = -32 * b;
            out->pair_sum16[pair_order[2 * j]] = (int16_t)a;
            out->pair_sum16[pair_order[2 * j + 1]] = (int16_t)b;
            out->pair_sum32[pair_order[j]] = (int16_t)(a + b);
            out->sum += a + b;
        }
        memset(out->unused, 0, sizeof out->unused);
    }
}

AK_SETTER(quantize)
{
    k->quantize32 = quantize32;
    k->quantize256 = quantize256;
}
