/* Product of micropanels of 256 k with up to 4 tokens at a time. */
#include "engine/cpu/neon/micropanel.h"

enum { TOKENS = 4 }; /* 8 rows × 4 tokens: 8 registers of block sums, 8 of scaled sums */

/* Adds one block of 32 k to the scaled sums. */
AK_KERNEL void add_block(enum ak_quant_type type, const struct ak_neon_micropanel256 *panel,
                         size_t j, const struct ak_cpu_act256 *const act[TOKENS], size_t n,
                         int32x4_t scaled[TOKENS][2])
{
    const size_t n_scales = ak_neon_block_scales(type);
    int32x4_t sums[TOKENS][2];
#pragma GCC unroll 2
    for (size_t s = 0; s < 2; s++) {
        bool first = s == 0 || n_scales == 2, last = s == 1 || n_scales == 2;
        int8x16_t w[2][4];
#pragma GCC unroll 4
        for (size_t i = 0; i < 4; i++) {
            w[0][i] = vld1q_s8(panel->block[j].q[s * 4 + i]);
            w[1][i] = vld1q_s8(panel->block[j].q[s * 4 + i] + 16);
        }
#pragma GCC unroll 4
        for (size_t t = 0; t < TOKENS && t < n; t++) {
            int8x16_t a = vld1q_s8(act[t]->q + j * 32 + s * 16);
#pragma GCC unroll 2
            for (size_t g = 0; g < 2; g++) {
                if (n_scales == 0) {
                    scaled[t][g] = ak_neon_dot16(scaled[t][g], w[g], a);
                    continue;
                }
                sums[t][g] =
                    ak_neon_hold(ak_neon_dot16(first ? vdupq_n_s32(0) : sums[t][g], w[g], a));
                if (last) {
                    int32x4_t scale =
                        vld1q_s32(panel->block[j].scales + (n_scales == 2 ? s * 8 : 0) + g * 4);
                    scaled[t][g] = ak_neon_hold(vmlaq_s32(scaled[t][g], sums[t][g], scale));
                }
            }
        }
        ak_neon_fence();
    }
}

/* Contribution of the minimums to rows 4g … 4g+3. */
AK_KERNEL int32x4_t minimum_sum(enum ak_quant_type type, const struct ak_neon_micropanel256 *panel,
                                size_t g, const int8x16_t split[2])
{
    const int8_t *words = panel->mins[0] + g * 16;
    if (ak_neon_min_words(type) == 2) {
        const int8x16_t mins[2] = { vld1q_s8(words), vld1q_s8(words + 32) };
        return ak_neon_dot_mins(mins, split[0]);
    }
    const int8x16_t mins[4] = { vld1q_s8(words), vld1q_s8(words + 32), vld1q_s8(words + 64),
                                vld1q_s8(words + 96) };
    return ak_neon_dot_mins16(mins, split);
}

/* n tokens times all micropanels; n is a constant after inlining. */
AK_KERNEL void dot_tokens(enum ak_quant_type type, const struct ak_neon_micropanel256 *panels,
                          size_t n_panels, const uint8_t *activations, size_t act_bytes, size_t n,
                          float *y, size_t y_stride)
{
    for (size_t b = 0; b < n_panels; b++) {
        const struct ak_neon_micropanel256 *panel = panels + b;
        const struct ak_cpu_act256 *act[TOKENS];
        int32x4_t scaled[TOKENS][2];
#pragma GCC unroll 4
        for (size_t t = 0; t < TOKENS && t < n; t++) {
            act[t] = ak_neon_act256(activations + t * act_bytes, b);
            scaled[t][0] = scaled[t][1] = vdupq_n_s32(0);
        }
        for (size_t j = 0; j < 8; j++)
            add_block(type, panel, j, act, n, scaled);
#pragma GCC unroll 4
        for (size_t t = 0; t < TOKENS && t < n; t++) {
            float32x4_t act_scale = vdupq_n_f32(act[t]->scale);
            int8x16_t split[2];
            if (ak_neon_min_words(type) == 2)
                split[0] = ak_neon_split_sums(act[t]);
            else if (ak_neon_min_words(type) == 4)
                ak_neon_split_sums16(act[t], split);
#pragma GCC unroll 2
            for (size_t g = 0; g < 2; g++) {
                float *out = y + t * y_stride + g * 4;
                float32x4_t d = vmulq_f32(vld1q_f32(panel->scale + g * 4), act_scale),
                            acc = vld1q_f32(out);
                acc = vfmaq_f32(acc, d, ak_neon_micropanel_sum(type, scaled[t][g]));
                if (ak_neon_min_words(type)) {
                    float32x4_t m = vmulq_f32(vld1q_f32(panel->min + g * 4), act_scale);
                    acc = vfmaq_f32(acc, m, vcvtq_f32_s32(minimum_sum(type, panel, g, split)));
                }
                vst1q_f32(out, acc);
            }
        }
    }
}

AK_KERNEL void dot_panels(enum ak_quant_type type, const struct ak_neon_micropanel256 *panels,
                          size_t n_panels, const uint8_t *activations, size_t act_bytes, size_t n,
                          float *y, size_t y_stride)
{
    for (; n >= TOKENS; n -= TOKENS, activations += TOKENS * act_bytes, y += TOKENS * y_stride)
        dot_tokens(type, panels, n_panels, activations, act_bytes, TOKENS, y, y_stride);
    AK_CONSTANT(n, 3, N,
                dot_tokens(type, panels, n_panels, activations, act_bytes, N, y, y_stride));
}

void ak_neon_dot_micropanels256(enum ak_quant_type type,
                                const struct ak_neon_micropanel256 *restrict panels,
                                size_t n_panels, const uint8_t *restrict activations,
                                size_t act_bytes, size_t n, float *restrict y, size_t y_stride)
{
    switch (type) {
    case AK_QUANT_Q2_K:
        dot_panels(AK_QUANT_Q2_K, panels, n_panels, activations, act_bytes, n, y, y_stride);
        break;
    case AK_QUANT_Q3_K:
        dot_panels(AK_QUANT_Q3_K, panels, n_panels, activations, act_bytes, n, y, y_stride);
        break;
    case AK_QUANT_V3:
    case AK_QUANT_Q6_K:
        dot_panels(AK_QUANT_Q6_K, panels, n_panels, activations, act_bytes, n, y, y_stride);
        break;
    case AK_QUANT_V4:
    case AK_QUANT_IQ4_XS:
        dot_panels(AK_QUANT_IQ4_XS, panels, n_panels, activations, act_bytes, n, y, y_stride);
        break;
    /* also Q5_K */
    default:
        dot_panels(AK_QUANT_Q4_K, panels, n_panels, activations, act_bytes, n, y, y_stride);
        break;
    }
}
