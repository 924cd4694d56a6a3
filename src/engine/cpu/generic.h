/* Reference kernels in plain C, inline: they define the results of all others. scalar/ has them all
 * in its table; tmpl/elementwise.c uses them for AVX2, AVX-512 and NEON, for the elements that do
 * not fill a vector and for loops that a compiler vectorizes equally well. All ISAs include this
 * file (setter.h), also for prefetching and for the macros that define a kernel per type. */
#ifndef AK_ENGINE_CPU_GENERIC_H
#define AK_ENGINE_CPU_GENERIC_H

#include <string.h>

#include "base/math.h"
#include "engine/cpu/kernels.h"
#include "files/quant/block.h"

enum { AK_F8_K = sizeof(((struct ak_quant_block_f8 *)0)->q) };

#define AK_KERNEL static inline __attribute__((always_inline))

/* `for` of a loop over registers, whose trip count inlining makes constant: unrolling keeps the
 * arrays of vectors in registers. */
#ifdef __clang__
#define AK_UNROLLED_FOR _Pragma("clang loop unroll(full)") for
#else
#define AK_UNROLLED_FOR _Pragma("GCC unroll 32") for
#endif

/* AK_CONSTANT(x, max, N, call) runs `call` with N, a constant equal to x, if 1 ≤ x ≤ max; max is 2,
 * 3, 4, 6 or 8. Vectors in arrays with constant bounds stay in registers. */
#define AK_CONSTANT_CASE(N, value, ...)                                                            \
    case value: {                                                                                  \
        enum { N = (value) };                                                                      \
        __VA_ARGS__;                                                                               \
    } break;
#define AK_CONSTANT_CASES_2(N, ...)                                                                \
    AK_CONSTANT_CASE(N, 1, __VA_ARGS__) AK_CONSTANT_CASE(N, 2, __VA_ARGS__)
#define AK_CONSTANT_CASES_3(N, ...)                                                                \
    AK_CONSTANT_CASES_2(N, __VA_ARGS__) AK_CONSTANT_CASE(N, 3, __VA_ARGS__)
#define AK_CONSTANT_CASES_4(N, ...)                                                                \
    AK_CONSTANT_CASES_3(N, __VA_ARGS__) AK_CONSTANT_CASE(N, 4, __VA_ARGS__)
#define AK_CONSTANT_CASES_6(N, ...)                                                                \
    AK_CONSTANT_CASES_4(N, __VA_ARGS__)                                                            \
    AK_CONSTANT_CASE(N, 5, __VA_ARGS__) AK_CONSTANT_CASE(N, 6, __VA_ARGS__)
#define AK_CONSTANT_CASES_8(N, ...)                                                                \
    AK_CONSTANT_CASES_6(N, __VA_ARGS__)                                                            \
    AK_CONSTANT_CASE(N, 7, __VA_ARGS__) AK_CONSTANT_CASE(N, 8, __VA_ARGS__)
#define AK_CONSTANT(x, max, N, ...)                                                                \
    switch (x) {                                                                                   \
        AK_CONSTANT_CASES_##max(N, __VA_ARGS__)                                                    \
    }

/* Prefetches `bytes` bytes at p + distance into the L2 cache; L1 caches allow few outstanding
 * lines. The address need not be mapped. */
AK_KERNEL void ak_cpu_prefetch(const uint8_t *p, size_t bytes, size_t distance)
{
    for (size_t i = 0; i < bytes; i += AK_LINE_BYTES)
        __builtin_prefetch((const void *)((uintptr_t)p + distance + i), 0, 2);
}

/* Reads lines into the cache in address order: where nothing is prefetched, those of a tile's
 * scales, before its quants. Prefetches in place of these loads left 40 % of the memory bandwidth
 * on Zen 4 (bench/notes). */
AK_KERNEL void ak_cpu_load_lines(const uint8_t *p, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += AK_LINE_BYTES) {
        uint8_t byte = p[i];
        __asm__ volatile("" : : "r"(byte));
    }
}

/* Defines the kernel `name` for one type, or for types with one format: the file's own dot_tiles,
 * unpack_panel_i8 or dot_panel_i8, with the constant `kind` as first argument. `static` may precede
 * the macro, and a semicolon follows it. */
#define AK_DOT_TILES(name, kind)                                                                   \
    void name(const uint8_t *restrict tiles, size_t n_tiles, size_t k,                             \
              const uint8_t *restrict activations, size_t act_bytes, size_t n, float *restrict y,  \
              size_t y_stride, size_t distance)                                                    \
    {                                                                                              \
        dot_tiles(kind, tiles, n_tiles, k, activations, act_bytes, n, y, y_stride, distance);      \
    }                                                                                              \
    _Static_assert(true, "a semicolon follows")

#define AK_UNPACK_PANEL_I8(name, kind)                                                             \
    void name(const uint8_t *restrict tiles, size_t n_tiles, size_t k, uint8_t *restrict panel)    \
    {                                                                                              \
        unpack_panel_i8(kind, tiles, n_tiles, k, panel);                                           \
    }                                                                                              \
    _Static_assert(true, "a semicolon follows")

#define AK_DOT_PANEL_I8(name, kind)                                                                \
    void name(const uint8_t *restrict panel, size_t n_tiles, size_t k,                             \
              const uint8_t *restrict activations, size_t act_bytes, size_t n, float *restrict y,  \
              size_t y_stride)                                                                     \
    {                                                                                              \
        dot_panel_i8(kind, panel, n_tiles, k, activations, act_bytes, n, y, y_stride);             \
    }                                                                                              \
    _Static_assert(true, "a semicolon follows")

/* The same for attention: attn_qk and attn_pv. */
#define AK_ATTN_QK(name, kind)                                                                     \
    void name(const float *restrict q, size_t q_stride, size_t n_rows, size_t head_dim,            \
              const void *restrict k, size_t first, size_t end, float *restrict weights)           \
    {                                                                                              \
        attn_qk(kind, q, q_stride, n_rows, head_dim, k, first, end, weights);                      \
    }                                                                                              \
    _Static_assert(true, "a semicolon follows")

#define AK_ATTN_PV(name, kind)                                                                     \
    void name(float *restrict weights, size_t n_rows, size_t head_dim, const void *restrict v,     \
              const uint16_t *restrict first, const uint16_t *restrict end, float *restrict max,   \
              float *restrict sum, float *restrict out, size_t out_stride)                         \
    {                                                                                              \
        attn_pv(kind, weights, n_rows, head_dim, v, first, end, max, sum, out, out_stride);        \
    }                                                                                              \
    _Static_assert(true, "a semicolon follows")

/* The same for stored rows: dot_stored and unpack_panel_f32. */
#define AK_DOT_STORED(name, kind)                                                                  \
    void name(const uint8_t *restrict rows, size_t row_bytes, size_t n_rows, size_t cols,          \
              const float *restrict x, size_t x_stride, size_t n, float *restrict y,               \
              size_t y_stride, size_t distance)                                                    \
    {                                                                                              \
        dot_stored(kind, rows, row_bytes, n_rows, cols, x, x_stride, n, y, y_stride, distance);    \
    }                                                                                              \
    _Static_assert(true, "a semicolon follows")

#define AK_UNPACK_PANEL_F32(name, kind)                                                            \
    void name(const uint8_t *restrict rows, size_t row_bytes, size_t n_rows, size_t cols,          \
              float *restrict panel)                                                               \
    {                                                                                              \
        unpack_panel_f32(kind, rows, row_bytes, n_rows, cols, panel);                              \
    }                                                                                              \
    _Static_assert(true, "a semicolon follows")

#define AK_UNPACK_PANEL_BF16(name, kind)                                                           \
    void name(const uint8_t *restrict rows, size_t row_bytes, size_t n_rows, size_t k,             \
              uint16_t *restrict panel)                                                            \
    {                                                                                              \
        unpack_panel_bf16(kind, rows, row_bytes, n_rows, k, panel);                                \
    }                                                                                              \
    _Static_assert(true, "a semicolon follows")

/* Stored rows of floats and of F8, which has a scale before each 128 elements: bytes of an element,
 * address of element i, and address of its scale. */
AK_KERNEL size_t ak_cpu_stored_element_bytes(enum ak_quant_type type)
{
    return type == AK_QUANT_F32 ? sizeof(float) : type == AK_QUANT_F8 ? 1 : sizeof(uint16_t);
}

AK_KERNEL const uint8_t *ak_cpu_stored_scale(const void *row, size_t i)
{
    return (const uint8_t *)row + i / AK_F8_K * sizeof(struct ak_quant_block_f8);
}

AK_KERNEL const uint8_t *ak_cpu_stored_element(enum ak_quant_type type, const void *row, size_t i)
{
    if (type == AK_QUANT_F8)
        return ak_cpu_stored_scale(row, i) + sizeof(float) + i % AK_F8_K;
    return (const uint8_t *)row + i * ak_cpu_stored_element_bytes(type);
}

/* Prefetches for `rows` rows that are read side by side, at element i of k, unless the distance is
 * 0. One row: `distance` bytes further along it and the rows after it. Several rows: the same
 * position in the next `rows` rows. */
AK_KERNEL void ak_cpu_prefetch_stored(enum ak_quant_type type, size_t rows, const uint8_t *w,
                                      size_t row_bytes, size_t i, size_t k, size_t distance)
{
    const size_t element = ak_cpu_stored_element_bytes(type);
    for (size_t r = 0; r < rows && distance; r++)
        ak_cpu_prefetch(w + r * row_bytes + i * element, k * element,
                        rows == 1 ? distance : rows * row_bytes);
}

AK_KERNEL void ak_generic_add(float *restrict y, const float *restrict x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] += x[i];
}

AK_KERNEL void ak_generic_add_scaled(float *restrict y, const float *restrict x, float scale,
                                     size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = fmaf(x[i], scale, y[i]);
}

AK_KERNEL void ak_generic_softcap(float *restrict x, float cap, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = cap * ak_tanhf(x[i] / cap);
}

AK_KERNEL void ak_generic_divide(float *restrict x, float divisor, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] /= divisor;
}

AK_KERNEL void ak_generic_silu_mul(const float *restrict gate, const float *restrict up,
                                   float *restrict out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = gate[i] / (1.0f + ak_expf(-gate[i])) * up[i];
}

AK_KERNEL void ak_generic_silu(float *restrict x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] /= 1.0f + ak_expf(-x[i]);
}

AK_KERNEL void ak_generic_sigmoid_mul(float *restrict y, const float *restrict gate, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] /= 1.0f + ak_expf(-gate[i]);
}

/* The activation of gpt-oss, with its constants. */
AK_KERNEL void ak_generic_swiglu_clamped(const float *restrict gate, const float *restrict up,
                                         float *restrict out, size_t n)
{
    const float alpha = 1.702f, limit = 7.0f;
    for (size_t i = 0; i < n; i++) {
        float g = gate[i] > limit ? limit : gate[i], u = up[i] > limit ? limit : up[i];
        u = u < -limit ? -limit : u;
        out[i] = g / (1.0f + ak_expf(-alpha * g)) * (u + 1.0f);
    }
}

/* −2·sqrt(2/π), the same times 0.044715, and sqrt(1/2). */
#define AK_GELU_LINEAR -0x1.988454p+0f
#define AK_GELU_CUBIC -0x1.2444f2p-4f
#define AK_GELU_ROOT 0x1.6a09e6p-1f

/* The tanh approximation of Hendrycks and Gimpel, "Gaussian Error Linear Units":
 * x/2 · (1 + tanh u) = x / (1 + e^−2u), u = sqrt(2/π)·(x + 0.044715·x³). */
AK_KERNEL float ak_generic_gelu_tanh_of(float x)
{
    return x / (1.0f + ak_expf(x * fmaf(x * x, AK_GELU_CUBIC, AK_GELU_LINEAR)));
}

AK_KERNEL void ak_generic_gelu_tanh(const float *x, float *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = ak_generic_gelu_tanh_of(x[i]);
}

AK_KERNEL void ak_generic_gelu_tanh_mul(const float *restrict gate, const float *restrict up,
                                        float *restrict out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = ak_generic_gelu_tanh_of(gate[i]) * up[i];
}

/* x/2 · (1 + erf(x/sqrt(2))) */
AK_KERNEL float ak_generic_gelu_erf_of(float x)
{
    float half = 0.5f * x;
    return fmaf(half, ak_erff(x * AK_GELU_ROOT), half);
}

AK_KERNEL void ak_generic_gelu_erf(const float *x, float *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = ak_generic_gelu_erf_of(x[i]);
}

AK_KERNEL void ak_generic_gelu_erf_mul(const float *restrict gate, const float *restrict up,
                                       float *restrict out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = ak_generic_gelu_erf_of(gate[i]) * up[i];
}

AK_KERNEL void ak_generic_short_conv(const float *restrict b, const float *restrict c,
                                     const float *restrict x, const float *restrict kernel,
                                     size_t taps, float *restrict state, size_t stride,
                                     float *restrict out, size_t n)
{
    for (size_t i = 0; i < n; i++, kernel += taps) {
        float now = b[i] * x[i], sum = 0.0f;
        for (size_t k = 0; k + 1 < taps; k++)
            sum = fmaf(kernel[k], state[k * stride + i], sum);
        out[i] = c[i] * fmaf(kernel[taps - 1], now, sum);
        for (size_t k = 0; k + 2 < taps; k++)
            state[k * stride + i] = state[(k + 1) * stride + i];
        state[(taps - 2) * stride + i] = now;
    }
}

/* `taps` is a constant after inlining. */
AK_KERNEL void ak_generic_conv_taps(const float *restrict x, const float *restrict kernel,
                                    size_t taps, float *restrict state, size_t stride,
                                    float *restrict out, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float sum = 0.0f;
        for (size_t k = 0; k + 1 < taps; k++)
            sum = fmaf(kernel[i * taps + k], state[k * stride + i], sum);
        out[i] = fmaf(kernel[i * taps + taps - 1], x[i], sum);
    }
    for (size_t k = 0; k + 2 < taps; k++)
        memcpy(state + k * stride, state + (k + 1) * stride, n * sizeof *state);
    memcpy(state + (taps - 2) * stride, x, n * sizeof *state);
}

AK_KERNEL void ak_generic_conv(const float *restrict x, const float *restrict kernel, size_t taps,
                               float *restrict state, size_t stride, float *restrict out, size_t n)
{
    if (taps == 4) /* the usual value */
        ak_generic_conv_taps(x, kernel, 4, state, stride, out, n);
    else
        ak_generic_conv_taps(x, kernel, taps, state, stride, out, n);
}

AK_KERNEL void ak_generic_delta_rule(const float *restrict q, const float *restrict k, size_t rows,
                                     const float *restrict v, float decay, float beta,
                                     float *restrict state, size_t stride, float *restrict out,
                                     size_t n)
{
    float d[AK_DELTA_COLUMNS_MAX] = { 0 };
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < n; j++)
            d[j] = fmaf(k[i], state[i * stride + j], d[j]);
    for (size_t j = 0; j < n; j++) {
        d[j] = beta * fmaf(-decay, d[j], v[j]);
        out[j] = 0.0f;
    }
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < n; j++) {
            float *s = state + i * stride + j;
            *s = fmaf(k[i], d[j], decay * *s);
            out[j] = fmaf(q[i], *s, out[j]);
        }
}

AK_KERNEL void ak_generic_rope(float *restrict x, const float *restrict cos,
                               const float *restrict sin, size_t n_dims, bool interleaved)
{
    size_t half = n_dims / 2;
    if (interleaved) {
        for (size_t i = 0; i < half; i++) {
            float a = x[2 * i], b = x[2 * i + 1];
            x[2 * i] = fmaf(a, cos[i], -(b * sin[i]));
            x[2 * i + 1] = fmaf(a, sin[i], b * cos[i]);
        }
    } else {
        float *restrict y = x + half;
        for (size_t i = 0; i < half; i++) {
            float a = x[i], b = y[i];
            x[i] = fmaf(a, cos[i], -(b * sin[i]));
            y[i] = fmaf(a, sin[i], b * cos[i]);
        }
    }
}

AK_KERNEL void ak_generic_f32_to_f16(const float *restrict x, uint16_t *restrict out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = ak_float_to_f16(x[i]);
}

AK_KERNEL void ak_generic_attn_merge(float *restrict max, float *restrict sum, float *restrict out,
                                     float page_max, float page_sum, const float *restrict page_out,
                                     size_t head_dim)
{
    float m = page_max > *max ? page_max : *max;
    float a = ak_expf(*max - m), b = ak_expf(page_max - m);
    *max = m;
    *sum = fmaf(page_sum, b, *sum * a);
    for (size_t d = 0; d < head_dim; d++)
        out[d] = fmaf(page_out[d], b, out[d] * a);
}

/* Adds the upper half of n partial sums to the lower half until one is left; n is a power of
 * two. */
AK_KERNEL float ak_generic_horizontal_sum(float *partial, size_t n)
{
    for (size_t width = n / 2; width > 0; width /= 2)
        for (size_t j = 0; j < width; j++)
            partial[j] += partial[j + width];
    return partial[0];
}

AK_KERNEL void ak_generic_rms_norm(const float *restrict x, const float *restrict weight, size_t n,
                                   float eps, float *restrict out)
{
    float partial[AK_LANES] = { 0 };
    size_t whole = n / AK_LANES * AK_LANES;
    for (size_t i = 0; i < whole; i += AK_LANES)
        for (size_t j = 0; j < AK_LANES; j++)
            partial[j] = fmaf(x[i + j], x[i + j], partial[j]);
    for (size_t i = whole; i < n; i++)
        partial[i - whole] = fmaf(x[i], x[i], partial[i - whole]);
    float mean = ak_generic_horizontal_sum(partial, AK_LANES) / (float)n;
    float scale = 1.0f / sqrtf(mean + eps);
    for (size_t i = 0; i < n; i++)
        out[i] = x[i] * scale * weight[i];
}

AK_KERNEL void ak_generic_layer_norm(const float *restrict x, const float *restrict weight,
                                     const float *restrict bias, size_t n, float eps,
                                     float *restrict out)
{
    float partial[AK_LANES] = { 0 };
    size_t whole = n / AK_LANES * AK_LANES;
    for (size_t i = 0; i < whole; i += AK_LANES)
        for (size_t j = 0; j < AK_LANES; j++)
            partial[j] += x[i + j];
    for (size_t i = whole; i < n; i++)
        partial[i - whole] += x[i];
    float mean = ak_generic_horizontal_sum(partial, AK_LANES) / (float)n;
    memset(partial, 0, sizeof partial);
    for (size_t i = 0; i < n; i++)
        out[i] = x[i] - mean;
    for (size_t i = 0; i < whole; i += AK_LANES)
        for (size_t j = 0; j < AK_LANES; j++)
            partial[j] = fmaf(out[i + j], out[i + j], partial[j]);
    for (size_t i = whole; i < n; i++)
        partial[i - whole] = fmaf(out[i], out[i], partial[i - whole]);
    float scale = 1.0f / sqrtf(ak_generic_horizontal_sum(partial, AK_LANES) / (float)n + eps);
    for (size_t i = 0; i < n; i++)
        out[i] = fmaf(out[i] * scale, weight[i], bias[i]);
}

#endif
