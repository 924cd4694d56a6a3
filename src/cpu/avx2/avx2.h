/* The AVX2 kernels (with FMA and F16C), one function per slot of struct ak_cpu_kernels, with
 * the same results as the scalar ones. Implemented by the sources of this folder, collected by
 * table.c. */
#ifndef AK_CPU_AVX2_AVX2_H
#define AK_CPU_AVX2_AVX2_H

#include "cpu/kernels.h"

/* Set the kernels of packed types: blocks of 32, of 256. */
void ak_avx2_set_dot32(struct ak_cpu_kernels *k);
void ak_avx2_set_dot256(struct ak_cpu_kernels *k);

ak_attn_qk_fn ak_avx2_attn_qk_f16, ak_avx2_attn_qk_f32;
ak_attn_pv_fn ak_avx2_attn_pv_f16, ak_avx2_attn_pv_f32;
ak_quant_dequantize_fn ak_avx2_dequantize_f16, ak_avx2_dequantize_bf16, ak_avx2_dequantize_q8_0,
    ak_avx2_dequantize_q4_0, ak_avx2_dequantize_f8;
ak_dot_stored_fn ak_avx2_dot_f32, ak_avx2_dot_f16, ak_avx2_dot_bf16, ak_avx2_dot_f8;
ak_unpack_panel_f32_fn ak_avx2_unpack_f32, ak_avx2_unpack_f16, ak_avx2_unpack_bf16,
    ak_avx2_unpack_f8;
ak_interleave_token_f32_fn ak_avx2_interleave_token_f32;
ak_dot_panel_f32_fn ak_avx2_dot_panel_f32;

void ak_avx2_dot_rows(const float *restrict w, size_t w_stride, size_t n_rows,
                      const float *restrict x, size_t x_stride, size_t n, size_t k,
                      float *restrict y, size_t y_stride);
void ak_avx2_quantize32(const float *restrict x, size_t n, struct ak_cpu_act32 *restrict out);
void ak_avx2_quantize256(const float *restrict x, size_t n, struct ak_cpu_act256 *restrict out);
void ak_avx2_rms_norm(const float *restrict x, const float *restrict weight, size_t n, float eps,
                      float *restrict out);
void ak_avx2_add(float *restrict y, const float *restrict x, size_t n);
void ak_avx2_silu_mul(const float *restrict gate, const float *restrict up, float *restrict out,
                      size_t n);
void ak_avx2_layer_norm(const float *restrict x, const float *restrict weight,
                        const float *restrict bias, size_t n, float eps, float *restrict out);
void ak_avx2_add_scaled(float *restrict y, const float *restrict x, float scale, size_t n);
void ak_avx2_softcap(float *restrict x, float cap, size_t n);
void ak_avx2_gelu_tanh(const float *restrict x, float *restrict out, size_t n);
void ak_avx2_gelu_tanh_mul(const float *restrict gate, const float *restrict up,
                           float *restrict out, size_t n);
void ak_avx2_gelu_erf(const float *restrict x, float *restrict out, size_t n);
void ak_avx2_gelu_erf_mul(const float *restrict gate, const float *restrict up, float *restrict out,
                          size_t n);
void ak_avx2_swiglu_clamped(const float *restrict gate, const float *restrict up,
                            float *restrict out, size_t n);
void ak_avx2_short_conv(const float *restrict b, const float *restrict c, const float *restrict x,
                        const float *restrict kernel, size_t taps, float *restrict state,
                        size_t stride, float *restrict out, size_t n);
void ak_avx2_silu(float *restrict x, size_t n);
void ak_avx2_sigmoid_mul(float *restrict y, const float *restrict gate, size_t n);
void ak_avx2_conv(const float *restrict x, const float *restrict kernel, size_t taps,
                  float *restrict state, size_t stride, float *restrict out, size_t n);
void ak_avx2_delta_rule(const float *restrict q, const float *restrict k, size_t rows,
                        const float *restrict v, float decay, float beta, float *restrict state,
                        size_t stride, float *restrict out, size_t n);
void ak_avx2_rope(float *restrict x, const float *restrict cos, const float *restrict sin,
                  size_t n_dims, bool interleaved);
void ak_avx2_f32_to_f16(const float *restrict x, uint16_t *restrict out, size_t n);
void ak_avx2_attn_merge(float *restrict max, float *restrict sum, float *restrict out,
                        float page_max, float page_sum, const float *restrict page_out,
                        size_t head_dim);
void ak_avx2_divide(float *restrict x, float divisor, size_t n);
uint64_t ak_avx2_probe_read(const uint8_t *restrict p, size_t bytes);
uint64_t ak_avx2_probe_int8(size_t rounds, uint64_t *sink);
uint64_t ak_avx2_probe_f32(size_t rounds, uint64_t *sink);

#endif
