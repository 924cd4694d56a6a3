/* The NEON kernels (with the dot-product instructions), one function per slot of struct
 * ak_cpu_kernels, with the same results as the scalar ones. Implemented by the sources of this
 * folder, collected by table.c. */
#ifndef AK_CPU_NEON_NEON_H
#define AK_CPU_NEON_NEON_H

#include "cpu/kernels.h"

ak_dot_tiles_fn ak_neon_dot_q4_0, ak_neon_dot_q4_1, ak_neon_dot_q5_0, ak_neon_dot_q5_1,
    ak_neon_dot_q8_0, ak_neon_dot_iq4_nl, ak_neon_dot_mxfp4, ak_neon_dot_q2_k, ak_neon_dot_q3_k,
    ak_neon_dot_q4_k, ak_neon_dot_q5_k, ak_neon_dot_q6_k, ak_neon_dot_iq4_xs, ak_neon_dot_a4,
    ak_neon_dot_a5, ak_neon_dot_a8;
ak_unpack_panel_i8_fn ak_neon_unpack_q4_0, ak_neon_unpack_q4_1, ak_neon_unpack_q5_0,
    ak_neon_unpack_q5_1, ak_neon_unpack_q8_0, ak_neon_unpack_iq4_nl, ak_neon_unpack_mxfp4,
    ak_neon_unpack_q2_k, ak_neon_unpack_q3_k, ak_neon_unpack_q4_k, ak_neon_unpack_q5_k,
    ak_neon_unpack_q6_k, ak_neon_unpack_iq4_xs, ak_neon_unpack_a4, ak_neon_unpack_a5,
    ak_neon_unpack_a8;
ak_dot_panel_i8_fn ak_neon_dot_panel_i8_q4_0, ak_neon_dot_panel_i8_q4_1, ak_neon_dot_panel_i8_q5_0,
    ak_neon_dot_panel_i8_q5_1, ak_neon_dot_panel_i8_q8_0, ak_neon_dot_panel_i8_iq4_nl,
    ak_neon_dot_panel_i8_mxfp4, ak_neon_dot_panel_i8_q2_k, ak_neon_dot_panel_i8_q3_k,
    ak_neon_dot_panel_i8_q4_k, ak_neon_dot_panel_i8_q5_k, ak_neon_dot_panel_i8_q6_k,
    ak_neon_dot_panel_i8_iq4_xs, ak_neon_dot_panel_i8_a4, ak_neon_dot_panel_i8_a5,
    ak_neon_dot_panel_i8_a8;
ak_unpack_panel_f32_fn ak_neon_unpack_f32, ak_neon_unpack_f16, ak_neon_unpack_bf16,
    ak_neon_unpack_f8;
ak_interleave_token_f32_fn ak_neon_interleave_token_f32;
ak_dot_panel_f32_fn ak_neon_dot_panel_f32;
ak_attn_qk_fn ak_neon_attn_qk_f16, ak_neon_attn_qk_f32;
ak_attn_pv_fn ak_neon_attn_pv_f16, ak_neon_attn_pv_f32;
ak_quant_dequantize_fn ak_neon_dequantize_f16, ak_neon_dequantize_bf16, ak_neon_dequantize_f8;

void ak_neon_dot_rows(const float *restrict w, size_t w_stride, size_t n_rows,
                      const float *restrict x, size_t x_stride, size_t n, size_t k,
                      float *restrict y, size_t y_stride);
void ak_neon_quantize32(const float *restrict x, size_t n, struct ak_cpu_act32 *restrict out);
void ak_neon_quantize256(const float *restrict x, size_t n, struct ak_cpu_act256 *restrict out);
void ak_neon_rms_norm(const float *restrict x, const float *restrict weight, size_t n, float eps,
                      float *restrict out);
void ak_neon_add(float *restrict y, const float *restrict x, size_t n);
void ak_neon_silu_mul(const float *restrict gate, const float *restrict up, float *restrict out,
                      size_t n);
void ak_neon_layer_norm(const float *restrict x, const float *restrict weight,
                        const float *restrict bias, size_t n, float eps, float *restrict out);
void ak_neon_add_scaled(float *restrict y, const float *restrict x, float scale, size_t n);
void ak_neon_softcap(float *restrict x, float cap, size_t n);
void ak_neon_gelu_tanh(const float *restrict x, float *restrict out, size_t n);
void ak_neon_gelu_tanh_mul(const float *restrict gate, const float *restrict up,
                           float *restrict out, size_t n);
void ak_neon_gelu_erf(const float *restrict x, float *restrict out, size_t n);
void ak_neon_gelu_erf_mul(const float *restrict gate, const float *restrict up, float *restrict out,
                          size_t n);
void ak_neon_swiglu_clamped(const float *restrict gate, const float *restrict up,
                            float *restrict out, size_t n);
void ak_neon_short_conv(const float *restrict b, const float *restrict c, const float *restrict x,
                        const float *restrict kernel, size_t taps, float *restrict state,
                        size_t stride, float *restrict out, size_t n);
void ak_neon_silu(float *restrict x, size_t n);
void ak_neon_sigmoid_mul(float *restrict y, const float *restrict gate, size_t n);
void ak_neon_conv(const float *restrict x, const float *restrict kernel, size_t taps,
                  float *restrict state, size_t stride, float *restrict out, size_t n);
void ak_neon_delta_rule(const float *restrict q, const float *restrict k, size_t rows,
                        const float *restrict v, float decay, float beta, float *restrict state,
                        size_t stride, float *restrict out, size_t n);
void ak_neon_rope(float *restrict x, const float *restrict cos, const float *restrict sin,
                  size_t n_dims, bool interleaved);
void ak_neon_f32_to_f16(const float *restrict x, uint16_t *restrict out, size_t n);
void ak_neon_attn_merge(float *restrict max, float *restrict sum, float *restrict out,
                        float page_max, float page_sum, const float *restrict page_out,
                        size_t head_dim);
void ak_neon_divide(float *restrict x, float divisor, size_t n);

uint64_t ak_neon_probe_read(const uint8_t *restrict p, size_t bytes);
uint64_t ak_neon_probe_int8(size_t rounds, uint64_t *sink);
uint64_t ak_neon_probe_f32(size_t rounds, uint64_t *sink);

#endif
