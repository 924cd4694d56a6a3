/* Elementwise kernels and norms. Those of generic.h are used unchanged if compilers vectorize
 * them. */
#include <arm_neon.h>

#include "cpu/neon/floats.h"
#include "cpu/neon/lanes.h"
#include "cpu/neon/neon.h"

/* The compiler vectorizes these. */
void ak_neon_add(float *restrict y, const float *restrict x, size_t n)
{
    ak_generic_add(y, x, n);
}

void ak_neon_divide(float *restrict x, float divisor, size_t n)
{
    ak_generic_divide(x, divisor, n);
}

void ak_neon_rope(float *restrict x, const float *restrict cos, const float *restrict sin,
                  size_t n_dims, bool interleaved)
{
    ak_generic_rope(x, cos, sin, n_dims, interleaved);
}

void ak_neon_attn_merge(float *restrict max, float *restrict sum, float *restrict out,
                        float page_max, float page_sum, const float *restrict page_out,
                        size_t head_dim)
{
    ak_generic_attn_merge(max, sum, out, page_max, page_sum, page_out, head_dim);
}

void ak_neon_silu_mul(const float *restrict gate, const float *restrict up, float *restrict out,
                      size_t n)
{
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        float32x4_t g = vld1q_f32(gate + i);
        float32x4_t divisor = vaddq_f32(vdupq_n_f32(1.0f), ak_neon_expf(vnegq_f32(g)));
        vst1q_f32(out + i, vmulq_f32(vdivq_f32(g, divisor), vld1q_f32(up + i)));
    }
    ak_generic_silu_mul(gate + i, up + i, out + i, n - i);
}

void ak_neon_f32_to_f16(const float *restrict x, uint16_t *restrict out, size_t n)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        float16x4_t low = vcvt_f16_f32(vld1q_f32(x + i)), high = vcvt_f16_f32(vld1q_f32(x + i + 4));
        vst1q_u16(out + i, vcombine_u16(vreinterpret_u16_f16(low), vreinterpret_u16_f16(high)));
    }
    ak_generic_f32_to_f16(x + i, out + i, n - i);
}

void ak_neon_dequantize_f16(const void *restrict blocks, float *restrict out, size_t n)
{
    const uint8_t *in = blocks;
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        float16x8_t h = vreinterpretq_f16_u8(vld1q_u8(in + 2 * i));
        vst1q_f32(out + i, vcvt_f32_f16(vget_low_f16(h)));
        vst1q_f32(out + i + 4, vcvt_high_f32_f16(h));
    }
    ak_quant_info(AK_QUANT_F16)->dequantize(in + 2 * i, out + i, n - i);
}

void ak_neon_dequantize_bf16(const void *restrict blocks, float *restrict out, size_t n)
{
    const uint8_t *in = blocks;
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        uint16x8_t h = vreinterpretq_u16_u8(vld1q_u8(in + 2 * i));
        vst1q_f32(out + i, vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(h), 16)));
        vst1q_f32(out + i + 4, vreinterpretq_f32_u32(vshll_high_n_u16(h, 16)));
    }
    ak_quant_info(AK_QUANT_BF16)->dequantize(in + 2 * i, out + i, n - i);
}

void ak_neon_dequantize_f8(const void *restrict blocks, float *restrict out, size_t n)
{
    for (size_t i = 0; i < n; i += 8) {
        float32x4_t scale = ak_neon_broadcast_float(ak_cpu_stored_scale(blocks, i));
        float16x8_t h = ak_neon_e4m3(
            vreinterpret_s8_u8(vld1_u8(ak_cpu_stored_element(AK_QUANT_F8, blocks, i))));
        vst1q_f32(out + i, vmulq_f32(vcvt_f32_f16(vget_low_f16(h)), scale));
        vst1q_f32(out + i + 4, vmulq_f32(vcvt_high_f32_f16(h), scale));
    }
}

/* Register j holds the partial sums 4j … 4j+3. */
static float sum_of_squares(const float *x, size_t n)
{
    float32x4_t partial[AK_LANES / 4];
    float last[AK_LANES] = { 0 };
    size_t whole = n / AK_LANES * AK_LANES;
#pragma GCC unroll 8
    for (size_t j = 0; j < AK_LANES / 4; j++)
        partial[j] = vdupq_n_f32(0.0f);
    for (size_t i = 0; i < whole; i += AK_LANES) {
#pragma GCC unroll 8
        for (size_t j = 0; j < AK_LANES / 4; j++) {
            float32x4_t v = vld1q_f32(x + i + 4 * j);
            partial[j] = vfmaq_f32(partial[j], v, v);
        }
    }
    for (size_t i = whole; i < n; i++)
        last[i - whole] = x[i];
#pragma GCC unroll 8
    for (size_t j = 0; j < AK_LANES / 4; j++) {
        float32x4_t v = vld1q_f32(last + 4 * j);
        partial[j] = vfmaq_f32(partial[j], v, v);
    }
#pragma GCC unroll 4
    for (size_t j = 0; j < 4; j++)
        partial[j] = vaddq_f32(partial[j], partial[j + 4]);
    return ak_neon_horizontal_sum4(
        vaddq_f32(vaddq_f32(partial[0], partial[2]), vaddq_f32(partial[1], partial[3])));
}

void ak_neon_rms_norm(const float *restrict x, const float *restrict weight, size_t n, float eps,
                      float *restrict out)
{
    float scale = 1.0f / sqrtf(sum_of_squares(x, n) / (float)n + eps);
    for (size_t i = 0; i < n; i++)
        out[i] = x[i] * scale * weight[i];
}

void ak_neon_layer_norm(const float *restrict x, const float *restrict weight,
                        const float *restrict bias, size_t n, float eps, float *restrict out)
{
    ak_generic_layer_norm(x, weight, bias, n, eps, out);
}

void ak_neon_add_scaled(float *restrict y, const float *restrict x, float scale, size_t n)
{
    ak_generic_add_scaled(y, x, scale, n);
}

void ak_neon_softcap(float *restrict x, float cap, size_t n)
{
    ak_generic_softcap(x, cap, n);
}

/* x / (1 + e^(x·(linear + cubic·x²))) */
AK_KERNEL float32x4_t gelu_tanh(float32x4_t x)
{
    float32x4_t inner =
        vfmaq_f32(vdupq_n_f32(AK_GELU_LINEAR), vmulq_f32(x, x), vdupq_n_f32(AK_GELU_CUBIC));
    return vdivq_f32(x, vaddq_f32(vdupq_n_f32(1.0f), ak_neon_expf(vmulq_f32(x, inner))));
}

/* x/2 · (1 + erf(x/sqrt(2))) */
AK_KERNEL float32x4_t gelu_erf(float32x4_t x)
{
    float32x4_t half = vmulq_f32(vdupq_n_f32(0.5f), x);
    return vfmaq_f32(half, half, ak_neon_erff(vmulq_f32(x, vdupq_n_f32(AK_GELU_ROOT))));
}

void ak_neon_gelu_tanh(const float *restrict x, float *restrict out, size_t n)
{
    size_t i = 0;
    for (; i + 4 <= n; i += 4)
        vst1q_f32(out + i, gelu_tanh(vld1q_f32(x + i)));
    ak_generic_gelu_tanh(x + i, out + i, n - i);
}

void ak_neon_gelu_tanh_mul(const float *restrict gate, const float *restrict up,
                           float *restrict out, size_t n)
{
    size_t i = 0;
    for (; i + 4 <= n; i += 4)
        vst1q_f32(out + i, vmulq_f32(gelu_tanh(vld1q_f32(gate + i)), vld1q_f32(up + i)));
    ak_generic_gelu_tanh_mul(gate + i, up + i, out + i, n - i);
}

void ak_neon_gelu_erf(const float *restrict x, float *restrict out, size_t n)
{
    size_t i = 0;
    for (; i + 4 <= n; i += 4)
        vst1q_f32(out + i, gelu_erf(vld1q_f32(x + i)));
    ak_generic_gelu_erf(x + i, out + i, n - i);
}

void ak_neon_gelu_erf_mul(const float *restrict gate, const float *restrict up, float *restrict out,
                          size_t n)
{
    size_t i = 0;
    for (; i + 4 <= n; i += 4)
        vst1q_f32(out + i, vmulq_f32(gelu_erf(vld1q_f32(gate + i)), vld1q_f32(up + i)));
    ak_generic_gelu_erf_mul(gate + i, up + i, out + i, n - i);
}

void ak_neon_swiglu_clamped(const float *restrict gate, const float *restrict up,
                            float *restrict out, size_t n)
{
    ak_generic_swiglu_clamped(gate, up, out, n);
}

void ak_neon_short_conv(const float *restrict b, const float *restrict c, const float *restrict x,
                        const float *restrict kernel, size_t taps, float *restrict state,
                        size_t stride, float *restrict out, size_t n)
{
    ak_generic_short_conv(b, c, x, kernel, taps, state, stride, out, n);
}

void ak_neon_silu(float *restrict x, size_t n)
{
    ak_generic_silu(x, n);
}

void ak_neon_sigmoid_mul(float *restrict y, const float *restrict gate, size_t n)
{
    ak_generic_sigmoid_mul(y, gate, n);
}

void ak_neon_conv(const float *restrict x, const float *restrict kernel, size_t taps,
                  float *restrict state, size_t stride, float *restrict out, size_t n)
{
    ak_generic_conv(x, kernel, taps, state, stride, out, n);
}
