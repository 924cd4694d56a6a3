/* The AVX-512 kernels (F, BW, DQ, VL, VNNI), one function per slot of struct ak_cpu_kernels, with
 * the same results as the scalar ones. Used by the sources of this folder and by the AMX bundle,
 * which unpacks with them. */
#ifndef AK_CPU_AVX512_AVX512_H
#define AK_CPU_AVX512_AVX512_H

#include "cpu/kernels.h"

ak_dot_tiles_fn ak_avx512_dot_q4_0, ak_avx512_dot_q4_1, ak_avx512_dot_q5_0, ak_avx512_dot_q5_1,
    ak_avx512_dot_q8_0, ak_avx512_dot_q2_k, ak_avx512_dot_q3_k, ak_avx512_dot_q4_k,
    ak_avx512_dot_q5_k, ak_avx512_dot_q6_k, ak_avx512_dot_iq4_nl, ak_avx512_dot_iq4_xs,
    ak_avx512_dot_mxfp4, ak_avx512_dot_a4, ak_avx512_dot_a5, ak_avx512_dot_a8;
ak_unpack_panel_i8_fn ak_avx512_unpack_q4_0, ak_avx512_unpack_q4_1, ak_avx512_unpack_q5_0,
    ak_avx512_unpack_q5_1, ak_avx512_unpack_q8_0, ak_avx512_unpack_q2_k, ak_avx512_unpack_q3_k,
    ak_avx512_unpack_q4_k, ak_avx512_unpack_q5_k, ak_avx512_unpack_q6_k, ak_avx512_unpack_iq4_nl,
    ak_avx512_unpack_iq4_xs, ak_avx512_unpack_mxfp4, ak_avx512_unpack_a4, ak_avx512_unpack_a5,
    ak_avx512_unpack_a8;

/* One kernel per kind of scaling: blocks of 32 with an offset, a minimum or both; K-types with
 * integer scales per 32, per 16 or none. */
ak_dot_panel_i8_fn ak_avx512_dot_panel_i8_8, ak_avx512_dot_panel_i8_16, ak_avx512_dot_panel_i8_128,
    ak_avx512_dot_panel_i8_minimum, ak_avx512_dot_panel_i8_128_minimum,
    ak_avx512_dot_panel_i8_k32_minimum, ak_avx512_dot_panel_i8_k32_128,
    ak_avx512_dot_panel_i8_k16_32, ak_avx512_dot_panel_i8_k_minimum16, ak_avx512_dot_panel_i8_k_124;
ak_attn_qk_fn ak_avx512_attn_qk_f16, ak_avx512_attn_qk_f32;
ak_attn_pv_fn ak_avx512_attn_pv_f16, ak_avx512_attn_pv_f32, ak_avx512_attn_pv_q8_0;
ak_quant_dequantize_fn ak_avx512_dequantize_f16, ak_avx512_dequantize_bf16,
    ak_avx512_dequantize_q8_0, ak_avx512_dequantize_q4_0;
ak_dot_stored_fn ak_avx512_dot_f32, ak_avx512_dot_f16, ak_avx512_dot_bf16, ak_avx512_dot_f8;
ak_unpack_panel_f32_fn ak_avx512_unpack_f32, ak_avx512_unpack_f16, ak_avx512_unpack_bf16,
    ak_avx512_unpack_f8;
ak_interleave_token_f32_fn ak_avx512_interleave_token_f32;
ak_dot_panel_f32_fn ak_avx512_dot_panel_f32;

void ak_avx512_dot_rows(const float *restrict w, size_t w_stride, size_t n_rows,
                        const float *restrict x, size_t x_stride, size_t n, size_t k,
                        float *restrict y, size_t y_stride);
void ak_avx512_rms_norm(const float *restrict x, const float *restrict weight, size_t n, float eps,
                        float *restrict out);
void ak_avx512_add(float *restrict y, const float *restrict x, size_t n);
void ak_avx512_silu_mul(const float *restrict gate, const float *restrict up, float *restrict out,
                        size_t n);
void ak_avx512_layer_norm(const float *restrict x, const float *restrict weight,
                          const float *restrict bias, size_t n, float eps, float *restrict out);
void ak_avx512_add_scaled(float *restrict y, const float *restrict x, float scale, size_t n);
void ak_avx512_softcap(float *restrict x, float cap, size_t n);
void ak_avx512_gelu_tanh(const float *restrict x, float *restrict out, size_t n);
void ak_avx512_gelu_tanh_mul(const float *restrict gate, const float *restrict up,
                             float *restrict out, size_t n);
void ak_avx512_gelu_erf(const float *restrict x, float *restrict out, size_t n);
void ak_avx512_gelu_erf_mul(const float *restrict gate, const float *restrict up,
                            float *restrict out, size_t n);
void ak_avx512_swiglu_clamped(const float *restrict gate, const float *restrict up,
                              float *restrict out, size_t n);
void ak_avx512_short_conv(const float *restrict b, const float *restrict c, const float *restrict x,
                          const float *restrict kernel, size_t taps, float *restrict state,
                          size_t stride, float *restrict out, size_t n);
void ak_avx512_silu(float *restrict x, size_t n);
void ak_avx512_sigmoid_mul(float *restrict y, const float *restrict gate, size_t n);
void ak_avx512_conv(const float *restrict x, const float *restrict kernel, size_t taps,
                    float *restrict state, size_t stride, float *restrict out, size_t n);
void ak_avx512_delta_rule(const float *restrict q, const float *restrict k, size_t rows,
                          const float *restrict v, float decay, float beta, float *restrict state,
                          size_t stride, float *restrict out, size_t n);
void ak_avx512_rope(float *restrict x, const float *restrict cos, const float *restrict sin,
                    size_t n_dims, bool interleaved);
void ak_avx512_f32_to_f16(const float *restrict x, uint16_t *restrict out, size_t n);
void ak_avx512_attn_merge(float *restrict max, float *restrict sum, float *restrict out,
                          float page_max, float page_sum, const float *restrict page_out,
                          size_t head_dim);
void ak_avx512_divide(float *restrict x, float divisor, size_t n);
uint64_t ak_avx512_probe_read(const uint8_t *restrict p, size_t bytes);
uint64_t ak_avx512_probe_int8(size_t rounds, uint64_t *sink);
uint64_t ak_avx512_probe_f32(size_t rounds, uint64_t *sink);
uint64_t ak_avx512_probe_bf16(size_t rounds, uint64_t *sink);

#endif
