/* Elementwise kernels and norms. Those of generic.h process the elements that do not fill a
 * vector. */
#include "cpu/avx512/avx512.h"
#include "cpu/avx512/lanes.h"
#include "quant/block.h"

void ak_avx512_add(float *restrict y, const float *restrict x, size_t n)
{
    size_t whole = n / 16 * 16;
    for (size_t i = 0; i < whole; i += 16)
        _mm512_storeu_ps(y + i, _mm512_add_ps(_mm512_loadu_ps(y + i), _mm512_loadu_ps(x + i)));
    ak_generic_add(y + whole, x + whole, n - whole);
}

void ak_avx512_divide(float *restrict x, float divisor, size_t n)
{
    const __m512 by = _mm512_set1_ps(divisor);
    size_t whole = n / 16 * 16;
    for (size_t i = 0; i < whole; i += 16)
        _mm512_storeu_ps(x + i, _mm512_div_ps(_mm512_loadu_ps(x + i), by));
    ak_generic_divide(x + whole, divisor, n - whole);
}

void ak_avx512_silu_mul(const float *restrict gate, const float *restrict up, float *restrict out,
                        size_t n)
{
    const __m512 one = _mm512_set1_ps(1.0f), sign = _mm512_set1_ps(-0.0f);
    size_t whole = n / 16 * 16;
    for (size_t i = 0; i < whole; i += 16) {
        __m512 g = _mm512_loadu_ps(gate + i);
        __m512 y = _mm512_div_ps(g, _mm512_add_ps(one, exp_lanes(_mm512_xor_ps(g, sign))));
        _mm512_storeu_ps(out + i, _mm512_mul_ps(y, _mm512_loadu_ps(up + i)));
    }
    ak_generic_silu_mul(gate + whole, up + whole, out + whole, n - whole);
}

/* Pairs (i, i + half), 16 at once. */
AK_KERNEL void rope_halves(float *restrict x, const float *restrict cos, const float *restrict sin,
                           size_t half)
{
    for (size_t i = 0; i < half; i += 16) {
        __mmask16 lanes = half - i < 16 ? first_lanes(half - i) : (__mmask16)0xffff;
        __m512 a = _mm512_maskz_loadu_ps(lanes, x + i),
               b = _mm512_maskz_loadu_ps(lanes, x + half + i);
        __m512 c = _mm512_maskz_loadu_ps(lanes, cos + i), s = _mm512_maskz_loadu_ps(lanes, sin + i);
        _mm512_mask_storeu_ps(x + i, lanes, _mm512_fmsub_ps(a, c, _mm512_mul_ps(b, s)));
        _mm512_mask_storeu_ps(x + half + i, lanes, _mm512_fmadd_ps(a, s, _mm512_mul_ps(b, c)));
    }
}

/* Pairs (2i, 2i + 1), 8 at once; each lane is next to its partner. */
AK_KERNEL void rope_neighbors(float *restrict x, const float *restrict cos,
                              const float *restrict sin, size_t half)
{
    const __m512i twice = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
    size_t whole = half / 8 * 8;
    for (size_t i = 0; i < whole; i += 8) {
        __m512 c = _mm512_permutexvar_ps(twice, _mm512_castps256_ps512(_mm256_loadu_ps(cos + i)));
        __m512 s = _mm512_permutexvar_ps(twice, _mm512_castps256_ps512(_mm256_loadu_ps(sin + i)));
        __m512 v = _mm512_loadu_ps(x + 2 * i), a = _mm512_moveldup_ps(v), b = _mm512_movehdup_ps(v);
        /* even lanes: a·cos − b·sin; odd ones: a·sin + b·cos */
        __m512 first = _mm512_mask_mov_ps(c, 0xaaaa, s), second = _mm512_mask_mov_ps(s, 0xaaaa, c);
        _mm512_storeu_ps(x + 2 * i, _mm512_fmaddsub_ps(a, first, _mm512_mul_ps(b, second)));
    }
    ak_generic_rope(x + 2 * whole, cos + whole, sin + whole, 2 * (half - whole), true);
}

void ak_avx512_rope(float *restrict x, const float *restrict cos, const float *restrict sin,
                    size_t n_dims, bool interleaved)
{
    if (interleaved)
        rope_neighbors(x, cos, sin, n_dims / 2);
    else
        rope_halves(x, cos, sin, n_dims / 2);
}

void ak_avx512_f32_to_f16(const float *restrict x, uint16_t *restrict out, size_t n)
{
    size_t whole = n / 16 * 16;
    for (size_t i = 0; i < whole; i += 16)
        _mm256_storeu_si256((__m256i *)(void *)(out + i),
                            _mm512_cvtps_ph(_mm512_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT));
    ak_generic_f32_to_f16(x + whole, out + whole, n - whole);
}

void ak_avx512_dequantize_f16(const void *restrict blocks, float *restrict out, size_t n)
{
    const uint16_t *x = blocks;
    size_t whole = n / 16 * 16;
    for (size_t i = 0; i < whole; i += 16)
        _mm512_storeu_ps(out + i, load_halves(x + i));
    for (size_t i = whole; i < n; i++)
        out[i] = ak_f16_to_float(x[i]);
}

void ak_avx512_dequantize_bf16(const void *restrict blocks, float *restrict out, size_t n)
{
    const uint16_t *x = blocks;
    size_t whole = n / 16 * 16;
    for (size_t i = 0; i < whole; i += 16) {
        __m512i wide =
            _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)(const void *)(x + i)));
        store_line(out + i, _mm512_slli_epi32(wide, 16));
    }
    for (size_t i = whole; i < n; i++)
        out[i] = ak_bf16_to_float(x[i]);
}

void ak_avx512_dequantize_q8_0(const void *restrict blocks, float *restrict out, size_t n)
{
    ak_quant_dequantize_q8_0(blocks, out, n);
}

void ak_avx512_dequantize_q4_0(const void *restrict blocks, float *restrict out, size_t n)
{
    ak_quant_dequantize_q4_0(blocks, out, n);
}

void ak_avx512_attn_merge(float *restrict max, float *restrict sum, float *restrict out,
                          float page_max, float page_sum, const float *restrict page_out,
                          size_t head_dim)
{
    float m = page_max > *max ? page_max : *max;
    float a = ak_expf(*max - m), b = ak_expf(page_max - m);
    *max = m;
    *sum = fmaf(page_sum, b, *sum * a);
    size_t whole = head_dim / 16 * 16;
    for (size_t d = 0; d < whole; d += 16) {
        __m512 kept = _mm512_mul_ps(_mm512_loadu_ps(out + d), _mm512_set1_ps(a));
        _mm512_storeu_ps(out + d,
                         _mm512_fmadd_ps(_mm512_loadu_ps(page_out + d), _mm512_set1_ps(b), kept));
    }
    for (size_t d = whole; d < head_dim; d++)
        out[d] = fmaf(page_out[d], b, out[d] * a);
}

void ak_avx512_rms_norm(const float *restrict x, const float *restrict weight, size_t n, float eps,
                        float *restrict out)
{
    __m512 low = _mm512_setzero_ps(), high = low;
    size_t whole = n / AK_LANES * AK_LANES, rest = n - whole;
    for (size_t i = 0; i < whole; i += AK_LANES) {
        __m512 a = _mm512_loadu_ps(x + i), b = _mm512_loadu_ps(x + i + 16);
        low = _mm512_fmadd_ps(a, a, low);
        high = _mm512_fmadd_ps(b, b, high);
    }
    if (rest > 0) {
        __m512 a =
            _mm512_maskz_loadu_ps(rest < 16 ? first_lanes(rest) : (__mmask16)0xffff, x + whole);
        __m512 b = rest > 16 ? _mm512_maskz_loadu_ps(first_lanes(rest - 16), x + whole + 16) :
                               _mm512_setzero_ps();
        low = _mm512_fmadd_ps(a, a, low);
        high = _mm512_fmadd_ps(b, b, high);
    }
    float scale = 1.0f / sqrtf(horizontal_sum(_mm512_add_ps(low, high)) / (float)n + eps);
    size_t full = n / 16 * 16;
    for (size_t i = 0; i < full; i += 16)
        _mm512_storeu_ps(out + i,
                         _mm512_mul_ps(_mm512_mul_ps(_mm512_loadu_ps(x + i), _mm512_set1_ps(scale)),
                                       _mm512_loadu_ps(weight + i)));
    for (size_t i = full; i < n; i++)
        out[i] = x[i] * scale * weight[i];
}

void ak_avx512_layer_norm(const float *restrict x, const float *restrict weight,
                          const float *restrict bias, size_t n, float eps, float *restrict out)
{
    ak_generic_layer_norm(x, weight, bias, n, eps, out);
}

void ak_avx512_add_scaled(float *restrict y, const float *restrict x, float scale, size_t n)
{
    ak_generic_add_scaled(y, x, scale, n);
}

void ak_avx512_softcap(float *restrict x, float cap, size_t n)
{
    ak_generic_softcap(x, cap, n);
}

/* x / (1 + e^(x·(linear + cubic·x²))) */
AK_KERNEL __m512 gelu_tanh(__m512 x)
{
    __m512 inner = _mm512_fmadd_ps(_mm512_mul_ps(x, x), _mm512_set1_ps(AK_GELU_CUBIC),
                                   _mm512_set1_ps(AK_GELU_LINEAR));
    return _mm512_div_ps(x,
                         _mm512_add_ps(_mm512_set1_ps(1.0f), exp_lanes(_mm512_mul_ps(x, inner))));
}

/* x/2 · (1 + erf(x/sqrt(2))) */
AK_KERNEL __m512 gelu_erf(__m512 x)
{
    __m512 half = _mm512_mul_ps(_mm512_set1_ps(0.5f), x);
    return _mm512_fmadd_ps(half, erf_lanes(_mm512_mul_ps(x, _mm512_set1_ps(AK_GELU_ROOT))), half);
}

void ak_avx512_gelu_tanh(const float *restrict x, float *restrict out, size_t n)
{
    size_t whole = n / 16 * 16;
    for (size_t i = 0; i < whole; i += 16)
        _mm512_storeu_ps(out + i, gelu_tanh(_mm512_loadu_ps(x + i)));
    ak_generic_gelu_tanh(x + whole, out + whole, n - whole);
}

void ak_avx512_gelu_tanh_mul(const float *restrict gate, const float *restrict up,
                             float *restrict out, size_t n)
{
    size_t whole = n / 16 * 16;
    for (size_t i = 0; i < whole; i += 16)
        _mm512_storeu_ps(
            out + i, _mm512_mul_ps(gelu_tanh(_mm512_loadu_ps(gate + i)), _mm512_loadu_ps(up + i)));
    ak_generic_gelu_tanh_mul(gate + whole, up + whole, out + whole, n - whole);
}

void ak_avx512_gelu_erf(const float *restrict x, float *restrict out, size_t n)
{
    size_t whole = n / 16 * 16;
    for (size_t i = 0; i < whole; i += 16)
        _mm512_storeu_ps(out + i, gelu_erf(_mm512_loadu_ps(x + i)));
    ak_generic_gelu_erf(x + whole, out + whole, n - whole);
}

void ak_avx512_gelu_erf_mul(const float *restrict gate, const float *restrict up,
                            float *restrict out, size_t n)
{
    size_t whole = n / 16 * 16;
    for (size_t i = 0; i < whole; i += 16)
        _mm512_storeu_ps(
            out + i, _mm512_mul_ps(gelu_erf(_mm512_loadu_ps(gate + i)), _mm512_loadu_ps(up + i)));
    ak_generic_gelu_erf_mul(gate + whole, up + whole, out + whole, n - whole);
}

void ak_avx512_swiglu_clamped(const float *restrict gate, const float *restrict up,
                              float *restrict out, size_t n)
{
    ak_generic_swiglu_clamped(gate, up, out, n);
}

void ak_avx512_short_conv(const float *restrict b, const float *restrict c, const float *restrict x,
                          const float *restrict kernel, size_t taps, float *restrict state,
                          size_t stride, float *restrict out, size_t n)
{
    ak_generic_short_conv(b, c, x, kernel, taps, state, stride, out, n);
}

void ak_avx512_silu(float *restrict x, size_t n)
{
    ak_generic_silu(x, n);
}

void ak_avx512_sigmoid_mul(float *restrict y, const float *restrict gate, size_t n)
{
    ak_generic_sigmoid_mul(y, gate, n);
}

void ak_avx512_conv(const float *restrict x, const float *restrict kernel, size_t taps,
                    float *restrict state, size_t stride, float *restrict out, size_t n)
{
    ak_generic_conv(x, kernel, taps, state, stride, out, n);
}
