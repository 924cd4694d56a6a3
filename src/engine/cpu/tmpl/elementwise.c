/* Elementwise kernels and norms, written once for the vectors of every ISA. generic.h has the
 * elements that do not fill a vector, and the kernels that compilers vectorize as well. */
#include "engine/cpu/setter.h"

#include AK_VEC_H

/* The part of n elements that fills whole vectors. */
AK_KERNEL size_t whole_vectors(size_t n)
{
    return n / VF_LANES * VF_LANES;
}

static void add_floats(float *restrict y, const float *restrict x, size_t n)
{
    size_t whole = whole_vectors(n);
    for (size_t i = 0; i < whole; i += VF_LANES)
        vf_store(y + i, vf_add(vf_load(y + i), vf_load(x + i)));
    ak_generic_add(y + whole, x + whole, n - whole);
}

static void divide(float *restrict x, float divisor, size_t n)
{
    const vf by = vf_set1(divisor);
    size_t whole = whole_vectors(n);
    for (size_t i = 0; i < whole; i += VF_LANES)
        vf_store(x + i, vf_div(vf_load(x + i), by));
    ak_generic_divide(x + whole, divisor, n - whole);
}

static void silu_mul(const float *restrict gate, const float *restrict up, float *restrict out,
                     size_t n)
{
    const vf one = vf_set1(1.0f);
    size_t whole = whole_vectors(n);
    for (size_t i = 0; i < whole; i += VF_LANES) {
        vf g = vf_load(gate + i);
        vf_store(out + i, vf_mul(vf_div(g, vf_add(one, vf_exp(vf_neg(g)))), vf_load(up + i)));
    }
    ak_generic_silu_mul(gate + whole, up + whole, out + whole, n - whole);
}

/* x / (1 + e^(x·(linear + cubic·x²))) */
AK_KERNEL vf gelu_tanh_of(vf x)
{
    vf inner = vf_fma(vf_mul(x, x), vf_set1(AK_GELU_CUBIC), vf_set1(AK_GELU_LINEAR));
    return vf_div(x, vf_add(vf_set1(1.0f), vf_exp(vf_mul(x, inner))));
}

/* x/2 · (1 + erf(x/sqrt(2))) */
AK_KERNEL vf gelu_erf_of(vf x)
{
    vf half = vf_mul(vf_set1(0.5f), x);
    return vf_fma(half, vf_erf(vf_mul(x, vf_set1(AK_GELU_ROOT))), half);
}

static void gelu_tanh(const float *x, float *out, size_t n)
{
    size_t whole = whole_vectors(n);
    for (size_t i = 0; i < whole; i += VF_LANES)
        vf_store(out + i, gelu_tanh_of(vf_load(x + i)));
    ak_generic_gelu_tanh(x + whole, out + whole, n - whole);
}

static void gelu_tanh_mul(const float *restrict gate, const float *restrict up, float *restrict out,
                          size_t n)
{
    size_t whole = whole_vectors(n);
    for (size_t i = 0; i < whole; i += VF_LANES)
        vf_store(out + i, vf_mul(gelu_tanh_of(vf_load(gate + i)), vf_load(up + i)));
    ak_generic_gelu_tanh_mul(gate + whole, up + whole, out + whole, n - whole);
}

static void gelu_erf(const float *x, float *out, size_t n)
{
    size_t whole = whole_vectors(n);
    for (size_t i = 0; i < whole; i += VF_LANES)
        vf_store(out + i, gelu_erf_of(vf_load(x + i)));
    ak_generic_gelu_erf(x + whole, out + whole, n - whole);
}

static void gelu_erf_mul(const float *restrict gate, const float *restrict up, float *restrict out,
                         size_t n)
{
    size_t whole = whole_vectors(n);
    for (size_t i = 0; i < whole; i += VF_LANES)
        vf_store(out + i, vf_mul(gelu_erf_of(vf_load(gate + i)), vf_load(up + i)));
    ak_generic_gelu_erf_mul(gate + whole, up + whole, out + whole, n - whole);
}

/* Register j holds the partial sums from VF_LANES·j on. */
static void rms_norm(const float *restrict x, const float *restrict weight, size_t n, float eps,
                     float *restrict out)
{
    enum { VECTORS = AK_LANES / VF_LANES };
    vf partial[VECTORS];
    float rest[AK_LANES] = { 0 };
    size_t blocks = n / AK_LANES * AK_LANES, whole = whole_vectors(n);
    memcpy(rest, x + blocks, (n - blocks) * sizeof *x);
    AK_UNROLLED_FOR (size_t j = 0; j < VECTORS; j++)
        partial[j] = vf_set1(0.0f);
    for (size_t i = 0; i < blocks; i += AK_LANES) {
        AK_UNROLLED_FOR (size_t j = 0; j < VECTORS; j++) {
            vf v = vf_load(x + i + j * VF_LANES);
            partial[j] = vf_fma(v, v, partial[j]);
        }
    }
    AK_UNROLLED_FOR (size_t j = 0; j < VECTORS; j++) {
        vf v = vf_load(rest + j * VF_LANES);
        partial[j] = vf_fma(v, v, partial[j]);
    }
    AK_UNROLLED_FOR (size_t width = VECTORS / 2; width > 0; width /= 2)
        AK_UNROLLED_FOR (size_t j = 0; j < width; j++)
            partial[j] = vf_add(partial[j], partial[j + width]);
    float scale = 1.0f / sqrtf(vf_sum(partial[0]) / (float)n + eps);
    for (size_t i = 0; i < whole; i += VF_LANES)
        vf_store(out + i, vf_mul(vf_mul(vf_load(x + i), vf_set1(scale)), vf_load(weight + i)));
    for (size_t i = whole; i < n; i++)
        out[i] = x[i] * scale * weight[i];
}

static void attn_merge(float *restrict max, float *restrict sum, float *restrict out,
                       float page_max, float page_sum, const float *restrict page_out,
                       size_t head_dim)
{
    float m = page_max > *max ? page_max : *max;
    float a = ak_expf(*max - m), b = ak_expf(page_max - m);
    size_t whole = whole_vectors(head_dim);
    *max = m;
    *sum = fmaf(page_sum, b, *sum * a);
    for (size_t d = 0; d < whole; d += VF_LANES)
        vf_store(out + d,
                 vf_fma(vf_load(page_out + d), vf_set1(b), vf_mul(vf_load(out + d), vf_set1(a))));
    for (size_t d = whole; d < head_dim; d++)
        out[d] = fmaf(page_out[d], b, out[d] * a);
}

static void f32_to_f16(const float *restrict x, uint16_t *restrict out, size_t n)
{
    size_t whole = whole_vectors(n);
    for (size_t i = 0; i < whole; i += VF_LANES)
        vf_store_f16(out + i, vf_load(x + i));
    ak_generic_f32_to_f16(x + whole, out + whole, n - whole);
}

static void dequantize_f16(const void *restrict blocks, float *restrict out, size_t n)
{
    const uint16_t *x = blocks;
    size_t whole = whole_vectors(n);
    for (size_t i = 0; i < whole; i += VF_LANES)
        vf_store(out + i, vf_load_f16(x + i));
    for (size_t i = whole; i < n; i++)
        out[i] = ak_f16_to_float(x[i]);
}

static void dequantize_bf16(const void *restrict blocks, float *restrict out, size_t n)
{
    const uint16_t *x = blocks;
    size_t whole = whole_vectors(n);
    for (size_t i = 0; i < whole; i += VF_LANES)
        vf_store(out + i, vf_load_bf16(x + i));
    for (size_t i = whole; i < n; i++)
        out[i] = ak_bf16_to_float(x[i]);
}

AK_SETTER(elementwise)
{
    k->dequantize[AK_QUANT_F16] = dequantize_f16;
    k->dequantize[AK_QUANT_BF16] = dequantize_bf16;
    k->dequantize[AK_QUANT_Q8_0] = ak_quant_dequantize_q8_0;
    k->dequantize[AK_QUANT_Q4_0] = ak_quant_dequantize_q4_0;
    k->rms_norm = rms_norm;
    k->layer_norm = ak_generic_layer_norm;
    k->add = add_floats;
    k->add_scaled = ak_generic_add_scaled;
    k->softcap = ak_generic_softcap;
    k->gelu_tanh = gelu_tanh;
    k->gelu_tanh_mul = gelu_tanh_mul;
    k->gelu_erf = gelu_erf;
    k->gelu_erf_mul = gelu_erf_mul;
    k->silu_mul = silu_mul;
    k->silu = ak_generic_silu;
    k->sigmoid_mul = ak_generic_sigmoid_mul;
    k->swiglu_clamped = ak_generic_swiglu_clamped;
    k->short_conv = ak_generic_short_conv;
    k->conv = ak_generic_conv;
    k->rope = ak_generic_rope;
    k->f32_to_f16 = f32_to_f16;
    k->attn_merge = attn_merge;
    k->divide = divide;
}
