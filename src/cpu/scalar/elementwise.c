/* Elementwise kernels, norms and recurrent kernels: those of generic.h, compiled for any
 * machine. */
#include "cpu/generic.h"
#include "cpu/scalar/scalar.h"

void ak_scalar_add(float *restrict y, const float *restrict x, size_t n)
{
    ak_generic_add(y, x, n);
}

void ak_scalar_divide(float *restrict x, float divisor, size_t n)
{
    ak_generic_divide(x, divisor, n);
}

void ak_scalar_silu_mul(const float *restrict gate, const float *restrict up, float *restrict out,
                        size_t n)
{
    ak_generic_silu_mul(gate, up, out, n);
}

void ak_scalar_rope(float *restrict x, const float *restrict cos, const float *restrict sin,
                    size_t n_dims, bool interleaved)
{
    ak_generic_rope(x, cos, sin, n_dims, interleaved);
}

void ak_scalar_f32_to_f16(const float *restrict x, uint16_t *restrict out, size_t n)
{
    ak_generic_f32_to_f16(x, out, n);
}

void ak_scalar_attn_merge(float *restrict max, float *restrict sum, float *restrict out,
                          float page_max, float page_sum, const float *restrict page_out,
                          size_t head_dim)
{
    ak_generic_attn_merge(max, sum, out, page_max, page_sum, page_out, head_dim);
}

void ak_scalar_rms_norm(const float *restrict x, const float *restrict weight, size_t n, float eps,
                        float *restrict out)
{
    ak_generic_rms_norm(x, weight, n, eps, out);
}

void ak_scalar_layer_norm(const float *restrict x, const float *restrict weight,
                          const float *restrict bias, size_t n, float eps, float *restrict out)
{
    ak_generic_layer_norm(x, weight, bias, n, eps, out);
}

void ak_scalar_add_scaled(float *restrict y, const float *restrict x, float scale, size_t n)
{
    ak_generic_add_scaled(y, x, scale, n);
}

void ak_scalar_softcap(float *restrict x, float cap, size_t n)
{
    ak_generic_softcap(x, cap, n);
}

void ak_scalar_gelu_tanh(const float *restrict x, float *restrict out, size_t n)
{
    ak_generic_gelu_tanh(x, out, n);
}

void ak_scalar_gelu_tanh_mul(const float *restrict gate, const float *restrict up,
                             float *restrict out, size_t n)
{
    ak_generic_gelu_tanh_mul(gate, up, out, n);
}

void ak_scalar_gelu_erf(const float *restrict x, float *restrict out, size_t n)
{
    ak_generic_gelu_erf(x, out, n);
}

void ak_scalar_gelu_erf_mul(const float *restrict gate, const float *restrict up,
                            float *restrict out, size_t n)
{
    ak_generic_gelu_erf_mul(gate, up, out, n);
}

void ak_scalar_swiglu_clamped(const float *restrict gate, const float *restrict up,
                              float *restrict out, size_t n)
{
    ak_generic_swiglu_clamped(gate, up, out, n);
}

void ak_scalar_short_conv(const float *restrict b, const float *restrict c, const float *restrict x,
                          const float *restrict kernel, size_t taps, float *restrict state,
                          size_t stride, float *restrict out, size_t n)
{
    ak_generic_short_conv(b, c, x, kernel, taps, state, stride, out, n);
}

void ak_scalar_silu(float *restrict x, size_t n)
{
    ak_generic_silu(x, n);
}

void ak_scalar_sigmoid_mul(float *restrict y, const float *restrict gate, size_t n)
{
    ak_generic_sigmoid_mul(y, gate, n);
}

void ak_scalar_conv(const float *restrict x, const float *restrict kernel, size_t taps,
                    float *restrict state, size_t stride, float *restrict out, size_t n)
{
    ak_generic_conv(x, kernel, taps, state, stride, out, n);
}

void ak_scalar_delta_rule(const float *restrict q, const float *restrict k, size_t rows,
                          const float *restrict v, float decay, float beta, float *restrict state,
                          size_t stride, float *restrict out, size_t n)
{
    ak_generic_delta_rule(q, k, rows, v, decay, beta, state, stride, out, n);
}
