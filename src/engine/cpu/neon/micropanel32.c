/* Product of micropanels of 32 k with up to 4 tokens at a time. */
#include "engine/cpu/neon/micropanel.h"
#include "engine/cpu/neon/tile32.h"

enum { TOKENS = 4 }; /* 8 rows × 4 tokens: 8 registers of integer sums, 8 of float sums */

/* Integer sums of one block. */
AK_KERNEL void block_sums(const struct ak_neon_micropanel32 *panel,
                          const struct ak_cpu_act32 *const act[TOKENS], size_t n,
                          int32x4_t sums[TOKENS][2])
{
#pragma GCC unroll 4
    for (size_t t = 0; t < TOKENS && t < n; t++)
        sums[t][0] = sums[t][1] = vdupq_n_s32(0);
#pragma GCC unroll 2
    for (size_t s = 0; s < 2; s++) {
        int8x16_t w[2][4];
#pragma GCC unroll 4
        for (size_t i = 0; i < 4; i++) {
            w[0][i] = vld1q_s8(panel->q[s * 4 + i]);
            w[1][i] = vld1q_s8(panel->q[s * 4 + i] + 16);
        }
#pragma GCC unroll 4
        for (size_t t = 0; t < TOKENS && t < n; t++) {
            int8x16_t a = vld1q_s8(act[t]->q + s * 16);
            sums[t][0] = ak_neon_dot16(sums[t][0], w[0], a);
            sums[t][1] = ak_neon_dot16(sums[t][1], w[1], a);
        }
        ak_neon_fence();
    }
}

/* n tokens times all micropanels; n is a constant after inlining. */
AK_KERNEL void dot_tokens(bool has_min, const struct ak_neon_micropanel32 *panels, size_t n_panels,
                          const uint8_t *activations, size_t act_bytes, size_t n, float *y,
                          size_t y_stride)
{
    float32x4_t acc[TOKENS][2];
#pragma GCC unroll 4
    for (size_t t = 0; t < TOKENS && t < n; t++) {
        acc[t][0] = vld1q_f32(y + t * y_stride);
        acc[t][1] = vld1q_f32(y + t * y_stride + 4);
    }
    for (size_t b = 0; b < n_panels; b++) {
        const struct ak_neon_micropanel32 *panel = panels + b;
        const struct ak_cpu_act32 *act[TOKENS];
        int32x4_t sums[TOKENS][2];
#pragma GCC unroll 4
        for (size_t t = 0; t < TOKENS && t < n; t++)
            act[t] = ak_neon_act32(activations + t * act_bytes, b);
        block_sums(panel, act, n, sums);
#pragma GCC unroll 4
        for (size_t t = 0; t < TOKENS && t < n; t++) {
            float32x4_t terms = vreinterpretq_f32_u8(ak_neon_act32_terms(act[t]));
#pragma GCC unroll 2
            for (size_t g = 0; g < 2; g++) {
                float32x4_t d = vmulq_laneq_f32(vld1q_f32(panel->factors + g * 4), terms, 0);
                acc[t][g] = vfmaq_f32(acc[t][g], d, vcvtq_f32_s32(sums[t][g]));
                if (has_min)
                    acc[t][g] =
                        vfmaq_laneq_f32(acc[t][g], vld1q_f32(panel->factors + 8 + g * 4), terms, 2);
            }
        }
    }
#pragma GCC unroll 4
    for (size_t t = 0; t < TOKENS && t < n; t++) {
        vst1q_f32(y + t * y_stride, acc[t][0]);
        vst1q_f32(y + t * y_stride + 4, acc[t][1]);
    }
}

AK_KERNEL void dot_panels(bool has_min, const struct ak_neon_micropanel32 *panels, size_t n_panels,
                          const uint8_t *activations, size_t act_bytes, size_t n, float *y,
                          size_t y_stride)
{
    for (; n >= TOKENS; n -= TOKENS, activations += TOKENS * act_bytes, y += TOKENS * y_stride)
        dot_tokens(has_min, panels, n_panels, activations, act_bytes, TOKENS, y, y_stride);
    AK_CONSTANT(n, 3, N,
                dot_tokens(has_min, panels, n_panels, activations, act_bytes, N, y, y_stride));
}

void ak_neon_dot_micropanels32(enum ak_quant_type type,
                               const struct ak_neon_micropanel32 *restrict panels, size_t n_panels,
                               const uint8_t *restrict activations, size_t act_bytes, size_t n,
                               float *restrict y, size_t y_stride)
{
    if (ak_neon_has_minimum(type))
        dot_panels(true, panels, n_panels, activations, act_bytes, n, y, y_stride);
    else
        dot_panels(false, panels, n_panels, activations, act_bytes, n, y, y_stride);
}
