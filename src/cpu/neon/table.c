/* Setter of the NEON bundle: its overrides of the scalar kernels. */
#include "cpu/neon/neon.h"

void ak_neon_set_kernels(struct ak_cpu_kernels *k)
{
    k->name = "neon";
    k->tile[AK_QUANT_Q4_0] = (struct ak_cpu_tile_kernels){ ak_neon_dot_q4_0, ak_neon_unpack_q4_0,
                                                           ak_neon_dot_panel_i8_q4_0 };
    k->tile[AK_QUANT_Q4_1] = (struct ak_cpu_tile_kernels){ ak_neon_dot_q4_1, ak_neon_unpack_q4_1,
                                                           ak_neon_dot_panel_i8_q4_1 };
    k->tile[AK_QUANT_Q5_0] = (struct ak_cpu_tile_kernels){ ak_neon_dot_q5_0, ak_neon_unpack_q5_0,
                                                           ak_neon_dot_panel_i8_q5_0 };
    k->tile[AK_QUANT_Q5_1] = (struct ak_cpu_tile_kernels){ ak_neon_dot_q5_1, ak_neon_unpack_q5_1,
                                                           ak_neon_dot_panel_i8_q5_1 };
    k->tile[AK_QUANT_Q8_0] = (struct ak_cpu_tile_kernels){ ak_neon_dot_q8_0, ak_neon_unpack_q8_0,
                                                           ak_neon_dot_panel_i8_q8_0 };
    k->tile[AK_QUANT_IQ4_NL] =
        (struct ak_cpu_tile_kernels){ ak_neon_dot_iq4_nl, ak_neon_unpack_iq4_nl,
                                      ak_neon_dot_panel_i8_iq4_nl };
    k->tile[AK_QUANT_MXFP4] = (struct ak_cpu_tile_kernels){ ak_neon_dot_mxfp4, ak_neon_unpack_mxfp4,
                                                            ak_neon_dot_panel_i8_mxfp4 };
    k->tile[AK_QUANT_Q2_K] = (struct ak_cpu_tile_kernels){ ak_neon_dot_q2_k, ak_neon_unpack_q2_k,
                                                           ak_neon_dot_panel_i8_q2_k };
    k->tile[AK_QUANT_Q3_K] = (struct ak_cpu_tile_kernels){ ak_neon_dot_q3_k, ak_neon_unpack_q3_k,
                                                           ak_neon_dot_panel_i8_q3_k };
    k->tile[AK_QUANT_Q4_K] = (struct ak_cpu_tile_kernels){ ak_neon_dot_q4_k, ak_neon_unpack_q4_k,
                                                           ak_neon_dot_panel_i8_q4_k };
    k->tile[AK_QUANT_Q5_K] = (struct ak_cpu_tile_kernels){ ak_neon_dot_q5_k, ak_neon_unpack_q5_k,
                                                           ak_neon_dot_panel_i8_q5_k };
    k->tile[AK_QUANT_Q6_K] = (struct ak_cpu_tile_kernels){ ak_neon_dot_q6_k, ak_neon_unpack_q6_k,
                                                           ak_neon_dot_panel_i8_q6_k };
    k->tile[AK_QUANT_IQ4_XS] =
        (struct ak_cpu_tile_kernels){ ak_neon_dot_iq4_xs, ak_neon_unpack_iq4_xs,
                                      ak_neon_dot_panel_i8_iq4_xs };
    k->tile[AK_QUANT_A4] =
        (struct ak_cpu_tile_kernels){ ak_neon_dot_a4, ak_neon_unpack_a4, ak_neon_dot_panel_i8_a4 };
    k->tile[AK_QUANT_A5] =
        (struct ak_cpu_tile_kernels){ ak_neon_dot_a5, ak_neon_unpack_a5, ak_neon_dot_panel_i8_a5 };
    k->tile[AK_QUANT_A8] =
        (struct ak_cpu_tile_kernels){ ak_neon_dot_a8, ak_neon_unpack_a8, ak_neon_dot_panel_i8_a8 };
    k->dequantize[AK_QUANT_F16] = ak_neon_dequantize_f16;
    k->dequantize[AK_QUANT_BF16] = ak_neon_dequantize_bf16;
    k->dequantize[AK_QUANT_F8] = ak_neon_dequantize_f8;
    k->dot_rows = ak_neon_dot_rows;
    k->unpack_panel_f32[AK_QUANT_F32] = ak_neon_unpack_f32;
    k->unpack_panel_f32[AK_QUANT_F16] = ak_neon_unpack_f16;
    k->unpack_panel_f32[AK_QUANT_BF16] = ak_neon_unpack_bf16;
    k->unpack_panel_f32[AK_QUANT_F8] = ak_neon_unpack_f8;
    k->interleave_token_f32 = ak_neon_interleave_token_f32;
    k->dot_panel_f32 = ak_neon_dot_panel_f32;
    k->quantize32 = ak_neon_quantize32;
    k->quantize256 = ak_neon_quantize256;
    k->rms_norm = ak_neon_rms_norm;
    k->add = ak_neon_add;
    k->silu_mul = ak_neon_silu_mul;
    k->layer_norm = ak_neon_layer_norm;
    k->add_scaled = ak_neon_add_scaled;
    k->softcap = ak_neon_softcap;
    k->gelu_tanh = ak_neon_gelu_tanh;
    k->gelu_tanh_mul = ak_neon_gelu_tanh_mul;
    k->gelu_erf = ak_neon_gelu_erf;
    k->gelu_erf_mul = ak_neon_gelu_erf_mul;
    k->swiglu_clamped = ak_neon_swiglu_clamped;
    k->short_conv = ak_neon_short_conv;
    k->silu = ak_neon_silu;
    k->sigmoid_mul = ak_neon_sigmoid_mul;
    k->conv = ak_neon_conv;
    k->delta_rule = ak_neon_delta_rule;
    k->rope = ak_neon_rope;
    k->f32_to_f16 = ak_neon_f32_to_f16;
    k->attn_qk_f16 = ak_neon_attn_qk_f16;
    k->attn_qk_f32 = ak_neon_attn_qk_f32;
    k->attn_pv_f16 = ak_neon_attn_pv_f16;
    k->attn_pv_f32 = ak_neon_attn_pv_f32;
    k->attn_merge = ak_neon_attn_merge;
    k->divide = ak_neon_divide;
    k->probe_read = ak_neon_probe_read;
    k->probe_int8 = ak_neon_probe_int8;
    k->probe_f32 = ak_neon_probe_f32;
}
