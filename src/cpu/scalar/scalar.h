/* The scalar kernels, one function per slot of struct ak_cpu_kernels. They define every kernel's
 * result and run on any machine. */
#ifndef AK_CPU_SCALAR_SCALAR_H
#define AK_CPU_SCALAR_SCALAR_H

#include "cpu/kernels.h"

/* Kernels of packed weights, per type. */
extern const struct ak_cpu_tile_kernels ak_scalar_tile[AK_QUANT_COUNT];

ak_attn_qk_fn ak_scalar_attn_qk_f16, ak_scalar_attn_qk_f32;
ak_attn_pv_fn ak_scalar_attn_pv_f16, ak_scalar_attn_pv_f32;

void ak_scalar_dot_rows(const float *restrict w, size_t w_stride, size_t n_rows,
                        const float *restrict x, size_t x_stride, size_t n, size_t k,
                        float *restrict y, size_t y_stride);
void ak_scalar_quantize32(const float *restrict x, size_t n, struct ak_cpu_act32 *restrict out);
void ak_scalar_quantize256(const float *restrict x, size_t n, struct ak_cpu_act256 *restrict out);
void ak_scalar_rms_norm(const float *restrict x, const float *restrict weight, size_t n, float eps,
                        float *restrict out);
void ak_scalar_add(float *restrict y, const float *restrict x, size_t n);
void ak_scalar_silu_mul(const float *restrict gate, const float *restrict up, float *restrict out,
                        size_t n);
void ak_scalar_layer_norm(const float *restrict x, const float *restrict weight,
                          const float *restrict bias, size_t n, float eps, float *restrict out);
void ak_scalar_add_scaled(float *restrict y, const float *restrict x, float scale, size_t n);
void ak_scalar_softcap(float *restrict x, float cap, size_t n);
void ak_scalar_gelu_tanh(const float *restrict x, float *restrict out, size_t n);
void ak_scalar_gelu_tanh_mul(const float *restrict gate, const float *restrict up,
                             float *restrict out, size_t n);
void ak_scalar_gelu_erf(const float *restrict x, float *restrict out, size_t n);
void ak_scalar_gelu_erf_mul(const float *restrict gate, const float *restrict up,
                            float *restrict out, size_t n);
void ak_scalar_swiglu_clamped(const float *restrict gate, const float *restrict up,
                              float *restrict out, size_t n);
void ak_scalar_short_conv(const float *restrict b, const float *restrict c, const float *restrict x,
                          const float *restrict kernel, size_t taps, float *restrict state,
                          size_t stride, float *restrict out, size_t n);
void ak_scalar_silu(float *restrict x, size_t n);
void ak_scalar_sigmoid_mul(float *restrict y, const float *restrict gate, size_t n);
void ak_scalar_conv(const float *restrict x, const float *restrict kernel, size_t taps,
                    float *restrict state, size_t stride, float *restrict out, size_t n);
void ak_scalar_delta_rule(const float *restrict q, const float *restrict k, size_t rows,
                          const float *restrict v, float decay, float beta, float *restrict state,
                          size_t stride, float *restrict out, size_t n);
void ak_scalar_rope(float *restrict x, const float *restrict cos, const float *restrict sin,
                    size_t n_dims, bool interleaved);
void ak_scalar_f32_to_f16(const float *restrict x, uint16_t *restrict out, size_t n);
void ak_scalar_attn_merge(float *restrict max, float *restrict sum, float *restrict out,
                          float page_max, float page_sum, const float *restrict page_out,
                          size_t head_dim);
void ak_scalar_divide(float *restrict x, float divisor, size_t n);
uint64_t ak_scalar_probe_read(const uint8_t *restrict p, size_t bytes);
uint64_t ak_scalar_probe_int8(size_t rounds, uint64_t *sink);
uint64_t ak_scalar_probe_f32(size_t rounds, uint64_t *sink);

#endif
