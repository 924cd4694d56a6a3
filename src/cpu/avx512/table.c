/* Setter of the AVX-512 bundle: its overrides of the AVX2 kernels. */
#include "cpu/avx512/avx512.h"

/* The quantizers are not overridden: AVX2's are as fast. */
void ak_avx512_set_kernels(struct ak_cpu_kernels *k)
{
    k->name = "avx512";
    k->tile[AK_QUANT_Q4_0] =
        (struct ak_cpu_tile_kernels){ ak_avx512_dot_q4_0, ak_avx512_unpack_q4_0,
                                      ak_avx512_dot_panel_i8_8 };
    k->tile[AK_QUANT_Q4_1] =
        (struct ak_cpu_tile_kernels){ ak_avx512_dot_q4_1, ak_avx512_unpack_q4_1,
                                      ak_avx512_dot_panel_i8_minimum };
    k->tile[AK_QUANT_Q5_0] =
        (struct ak_cpu_tile_kernels){ ak_avx512_dot_q5_0, ak_avx512_unpack_q5_0,
                                      ak_avx512_dot_panel_i8_16 };
    k->tile[AK_QUANT_Q5_1] =
        (struct ak_cpu_tile_kernels){ ak_avx512_dot_q5_1, ak_avx512_unpack_q5_1,
                                      ak_avx512_dot_panel_i8_minimum };
    k->tile[AK_QUANT_Q8_0] =
        (struct ak_cpu_tile_kernels){ ak_avx512_dot_q8_0, ak_avx512_unpack_q8_0,
                                      ak_avx512_dot_panel_i8_128 };
    k->tile[AK_QUANT_Q2_K] =
        (struct ak_cpu_tile_kernels){ ak_avx512_dot_q2_k, ak_avx512_unpack_q2_k,
                                      ak_avx512_dot_panel_i8_k_minimum16 };
    k->tile[AK_QUANT_Q3_K] =
        (struct ak_cpu_tile_kernels){ ak_avx512_dot_q3_k, ak_avx512_unpack_q3_k,
                                      ak_avx512_dot_panel_i8_k_124 };
    k->tile[AK_QUANT_Q4_K] =
        (struct ak_cpu_tile_kernels){ ak_avx512_dot_q4_k, ak_avx512_unpack_q4_k,
                                      ak_avx512_dot_panel_i8_k32_minimum };
    k->tile[AK_QUANT_Q5_K] =
        (struct ak_cpu_tile_kernels){ ak_avx512_dot_q5_k, ak_avx512_unpack_q5_k,
                                      ak_avx512_dot_panel_i8_k32_minimum };
    k->tile[AK_QUANT_Q6_K] =
        (struct ak_cpu_tile_kernels){ ak_avx512_dot_q6_k, ak_avx512_unpack_q6_k,
                                      ak_avx512_dot_panel_i8_k16_32 };
    k->tile[AK_QUANT_IQ4_NL] =
        (struct ak_cpu_tile_kernels){ ak_avx512_dot_iq4_nl, ak_avx512_unpack_iq4_nl,
                                      ak_avx512_dot_panel_i8_128 };
    k->tile[AK_QUANT_IQ4_XS] =
        (struct ak_cpu_tile_kernels){ ak_avx512_dot_iq4_xs, ak_avx512_unpack_iq4_xs,
                                      ak_avx512_dot_panel_i8_k32_128 };
    k->tile[AK_QUANT_MXFP4] =
        (struct ak_cpu_tile_kernels){ ak_avx512_dot_mxfp4, ak_avx512_unpack_mxfp4,
                                      ak_avx512_dot_panel_i8_16 };
    k->tile[AK_QUANT_A4] = (struct ak_cpu_tile_kernels){ ak_avx512_dot_a4, ak_avx512_unpack_a4,
                                                         ak_avx512_dot_panel_i8_minimum };
    k->tile[AK_QUANT_A5] = (struct ak_cpu_tile_kernels){ ak_avx512_dot_a5, ak_avx512_unpack_a5,
                                                         ak_avx512_dot_panel_i8_minimum };
    k->tile[AK_QUANT_A8] = (struct ak_cpu_tile_kernels){ ak_avx512_dot_a8, ak_avx512_unpack_a8,
                                                         ak_avx512_dot_panel_i8_128_minimum };
    k->dequantize[AK_QUANT_F16] = ak_avx512_dequantize_f16;
    k->dequantize[AK_QUANT_BF16] = ak_avx512_dequantize_bf16;
    k->dequantize[AK_QUANT_Q8_0] = ak_avx512_dequantize_q8_0;
    k->dequantize[AK_QUANT_Q4_0] = ak_avx512_dequantize_q4_0;
    k->dot_rows = ak_avx512_dot_rows;
    k->dot_stored[AK_QUANT_F32] = ak_avx512_dot_f32;
    k->dot_stored[AK_QUANT_F16] = ak_avx512_dot_f16;
    k->dot_stored[AK_QUANT_BF16] = ak_avx512_dot_bf16;
    k->dot_stored[AK_QUANT_F8] = ak_avx512_dot_f8;
    k->unpack_panel_f32[AK_QUANT_F32] = ak_avx512_unpack_f32;
    k->unpack_panel_f32[AK_QUANT_F16] = ak_avx512_unpack_f16;
    k->unpack_panel_f32[AK_QUANT_BF16] = ak_avx512_unpack_bf16;
    k->unpack_panel_f32[AK_QUANT_F8] = ak_avx512_unpack_f8;
    k->interleave_token_f32 = ak_avx512_interleave_token_f32;
    k->dot_panel_f32 = ak_avx512_dot_panel_f32;
    k->rms_norm = ak_avx512_rms_norm;
    k->add = ak_avx512_add;
    k->silu_mul = ak_avx512_silu_mul;
    k->layer_norm = ak_avx512_layer_norm;
    k->add_scaled = ak_avx512_add_scaled;
    k->softcap = ak_avx512_softcap;
    k->gelu_tanh = ak_avx512_gelu_tanh;
    k->gelu_tanh_mul = ak_avx512_gelu_tanh_mul;
    k->gelu_erf = ak_avx512_gelu_erf;
    k->gelu_erf_mul = ak_avx512_gelu_erf_mul;
    k->swiglu_clamped = ak_avx512_swiglu_clamped;
    k->short_conv = ak_avx512_short_conv;
    k->silu = ak_avx512_silu;
    k->sigmoid_mul = ak_avx512_sigmoid_mul;
    k->conv = ak_avx512_conv;
    k->delta_rule = ak_avx512_delta_rule;
    k->rope = ak_avx512_rope;
    k->f32_to_f16 = ak_avx512_f32_to_f16;
    k->attn_qk_f16 = ak_avx512_attn_qk_f16;
    k->attn_qk_f32 = ak_avx512_attn_qk_f32;
    k->attn_pv_f16 = ak_avx512_attn_pv_f16;
    k->attn_pv_f32 = ak_avx512_attn_pv_f32;
    k->attn_pv_q8_0 = ak_avx512_attn_pv_q8_0;
    k->attn_merge = ak_avx512_attn_merge;
    k->divide = ak_avx512_divide;
    k->probe_read = ak_avx512_probe_read;
    k->probe_int8 = ak_avx512_probe_int8;
    k->probe_f32 = ak_avx512_probe_f32;
    k->probe_bf16 = ak_avx512_probe_bf16;
}
