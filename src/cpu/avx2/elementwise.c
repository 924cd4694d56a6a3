/* Elementwise kernels and norms. Those of generic.h are used unchanged if compilers vectorize them
 * with this bundle's flags. */
#include "cpu/avx2/avx2.h"
#include "cpu/avx2/stored.h"
#include "quant/block.h"

void ak_avx2_add(float *restrict y, const float *restrict x, size_t n)
{
    ak_generic_add(y, x, n);
}

void ak_avx2_divide(float *restrict x, float divisor, size_t n)
{
    ak_generic_divide(x, divisor, n);
}

void ak_avx2_silu_mul(const float *restrict gate, const float *restrict up, float *restrict out,
                      size_t n)
{
    const __m256 one = _mm256_set1_ps(1.0f), sign = _mm256_set1_ps(-0.0f);
    size_t whole = n / 8 * 8;
    for (size_t i = 0; i < whole; i += 8) {
        __m256 g = _mm256_loadu_ps(gate + i);
        __m256 y = _mm256_div_ps(g, _mm256_add_ps(one, exp_lanes(_mm256_xor_ps(g, sign))));
        _mm256_storeu_ps(out + i, _mm256_mul_ps(y, _mm256_loadu_ps(up + i)));
    }
    ak_generic_silu_mul(gate + whole, up + whole, out + whole, n - whole);
}

void ak_avx2_rope(float *restrict x, const float *restrict cos, const float *restrict sin,
                  size_t n_dims, bool interleaved)
{
    ak_generic_rope(x, cos, sin, n_dims, interleaved);
}

void ak_avx2_f32_to_f16(const float *restrict x, uint16_t *restrict out, size_t n)
{
    size_t whole = n / 8 * 8;
    for (size_t i = 0; i < whole; i += 8)
        _mm_storeu_si128((__m128i *)(void *)(out + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
    ak_generic_f32_to_f16(x + whole, out + whole, n - whole);
}

void ak_avx2_dequantize_f16(const void *restrict blocks, float *restrict out, size_t n)
{
    const uint16_t *x = blocks;
    size_t whole = n / 8 * 8;
    for (size_t i = 0; i < whole; i += 8)
        _mm256_storeu_ps(out + i, load_f16(x + i));
    for (size_t i = whole; i < n; i++)
        out[i] = ak_f16_to_float(x[i]);
}

void ak_avx2_dequantize_bf16(const void *restrict blocks, float *restrict out, size_t n)
{
    const uint16_t *x = blocks;
    for (size_t i = 0; i < n; i++)
        out[i] = ak_bf16_to_float(x[i]);
}

void ak_avx2_dequantize_f8(const void *restrict blocks, float *restrict out, size_t n)
{
    const uint8_t *row = blocks;
    for (size_t i = 0; i < n; i += AK_LANES) {
        __m256 v[AK_LANES / 8];
        load_f8(row, i, v);
        for (size_t j = 0; j < AK_LANES / 8; j++)
            _mm256_storeu_ps(out + i + 8 * j, v[j]);
    }
}

void ak_avx2_dequantize_q8_0(const void *restrict blocks, float *restrict out, size_t n)
{
    ak_quant_dequantize_q8_0(blocks, out, n);
}

void ak_avx2_dequantize_q4_0(const void *restrict blocks, float *restrict out, size_t n)
{
    ak_quant_dequantize_q4_0(blocks, out, n);
}

void ak_avx2_attn_merge(float *restrict max, float *restrict sum, float *restrict out,
                        float page_max, float page_sum, const float *restrict page_out,
                        size_t head_dim)
{
    ak_generic_attn_merge(max, sum, out, page_max, page_sum, page_out, head_dim);
}

void ak_avx2_rms_norm(const float *restrict x, const float *restrict weight, size_t n, float eps,
                      float *restrict out)
{
    __m256 partial[4] = { _mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps(),
                          _mm256_setzero_ps() };
    float tail[AK_LANES] = { 0 };
    size_t whole = n / AK_LANES * AK_LANES;
    memcpy(tail, x + whole, (n - whole) * sizeof *x);
    for (size_t i = 0; i < whole; i += AK_LANES)
#pragma GCC unroll 4
        for (size_t j = 0; j < 4; j++) {
            __m256 v = _mm256_loadu_ps(x + i + j * 8);
            partial[j] = _mm256_fmadd_ps(v, v, partial[j]);
        }
#pragma GCC unroll 4
    for (size_t j = 0; j < 4; j++) {
        __m256 v = _mm256_loadu_ps(tail + j * 8);
        partial[j] = _mm256_fmadd_ps(v, v, partial[j]);
    }
    float scale = 1.0f / sqrtf(horizontal_sum32(partial) / (float)n + eps);
    for (size_t i = 0; i < n; i++)
        out[i] = x[i] * scale * weight[i];
}

void ak_avx2_layer_norm(const float *restrict x, const float *restrict weight,
                        const float *restrict bias, size_t n, float eps, float *restrict out)
{
    ak_generic_layer_norm(x, weight, bias, n, eps, out);
}

void ak_avx2_add_scaled(float *restrict y, const float *restrict x, float scale, size_t n)
{
    ak_generic_add_scaled(y, x, scale, n);
}

void ak_avx2_softcap(float *restrict x, float cap, size_t n)
{
    ak_generic_softcap(x, cap, n);
}

/* x / (1 + e^(x·(linear + cubic·x²))) */
AK_KERNEL __m256 gelu_tanh(__m256 x)
{
    __m256 inner = _mm256_fmadd_ps(_mm256_mul_ps(x, x), _mm256_set1_ps(AK_GELU_CUBIC),
                                   _mm256_set1_ps(AK_GELU_LINEAR));
    return _mm256_div_ps(x,
                         _mm256_add_ps(_mm256_set1_ps(1.0f), exp_lanes(_mm256_mul_ps(x, inner))));
}

/* x/2 · (1 + erf(x/sqrt(2))) */
AK_KERNEL __m256 gelu_erf(__m256 x)
{
    __m256 half = _mm256_mul_ps(_mm256_set1_ps(0.5f), x);
    return _mm256_fmadd_ps(half, erf_lanes(_mm256_mul_ps(x, _mm256_set1_ps(AK_GELU_ROOT))), half);
}

void ak_avx2_gelu_tanh(const float *restrict x, float *restrict out, size_t n)
{
    size_t whole = n / 8 * 8;
    for (size_t i = 0; i < whole; i += 8)
        _mm256_storeu_ps(out + i, gelu_tanh(_mm256_loadu_ps(x + i)));
    ak_generic_gelu_tanh(x + whole, out + whole, n - whole);
}

void ak_avx2_gelu_tanh_mul(const float *restrict gate, const float *restrict up,
                           float *restrict out, size_t n)
{
    size_t whole = n / 8 * 8;
    for (size_t i = 0; i < whole; i += 8)
        _mm256_storeu_ps(
            out + i, _mm256_mul_ps(gelu_tanh(_mm256_loadu_ps(gate + i)), _mm256_loadu_ps(up + i)));
    ak_generic_gelu_tanh_mul(gate + whole, up + whole, out + whole, n - whole);
}

void ak_avx2_gelu_erf(const float *restrict x, float *restrict out, size_t n)
{
    size_t whole = n / 8 * 8;
    for (size_t i = 0; i < whole; i += 8)
        _mm256_storeu_ps(out + i, gelu_erf(_mm256_loadu_ps(x + i)));
    ak_generic_gelu_erf(x + whole, out + whole, n - whole);
}

void ak_avx2_gelu_erf_mul(const float *restrict gate, const float *restrict up, float *restrict out,
                          size_t n)
{
    size_t whole = n / 8 * 8;
    for (size_t i = 0; i < whole; i += 8)
        _mm256_storeu_ps(
            out + i, _mm256_mul_ps(gelu_erf(_mm256_loadu_ps(gate + i)), _mm256_loadu_ps(up + i)));
    ak_generic_gelu_erf_mul(gate + whole, up + whole, out + whole, n - whole);
}

void ak_avx2_swiglu_clamped(const float *restrict gate, const float *restrict up,
                            float *restrict out, size_t n)
{
    ak_generic_swiglu_clamped(gate, up, out, n);
}

void ak_avx2_short_conv(const float *restrict b, const float *restrict c, const float *restrict x,
                        const float *restrict kernel, size_t taps, float *restrict state,
                        size_t stride, float *restrict out, size_t n)
{
    ak_generic_short_conv(b, c, x, kernel, taps, state, stride, out, n);
}

void ak_avx2_silu(float *restrict x, size_t n)
{
    ak_generic_silu(x, n);
}

void ak_avx2_sigmoid_mul(float *restrict y, const float *restrict gate, size_t n)
{
    ak_generic_sigmoid_mul(y, gate, n);
}

void ak_avx2_conv(const float *restrict x, const float *restrict kernel, size_t taps,
                  float *restrict state, size_t stride, float *restrict out, size_t n)
{
    ak_generic_conv(x, kernel, taps, state, stride, out, n);
}
