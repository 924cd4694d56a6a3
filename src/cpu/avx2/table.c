/* Setter of the AVX2 bundle: its overrides of the scalar kernels. */
#include "cpu/avx2/avx2.h"

void ak_avx2_set_kernels(struct ak_cpu_kernels *k)
{
    k->name = "avx2";
    ak_avx2_set_dot32(k);
    ak_avx2_set_dot256(k);
    k->dequantize[AK_QUANT_F16] = ak_avx2_dequantize_f16;
    k->dequantize[AK_QUANT_BF16] = ak_avx2_dequantize_bf16;
    k->dequantize[AK_QUANT_F8] = ak_avx2_dequantize_f8;
    k->dequantize[AK_QUANT_Q8_0] = ak_avx2_dequantize_q8_0;
    k->dequantize[AK_QUANT_Q4_0] = ak_avx2_dequantize_q4_0;
    k->dot_rows = ak_avx2_dot_rows;
    k->dot_stored[AK_QUANT_F32] = ak_avx2_dot_f32;
    k->dot_stored[AK_QUANT_F16] = ak_avx2_dot_f16;
    k->dot_stored[AK_QUANT_BF16] = ak_avx2_dot_bf16;
    k->dot_stored[AK_QUANT_F8] = ak_avx2_dot_f8;
    k->unpack_panel_f32[AK_QUANT_F32] = ak_avx2_unpack_f32;
    k->unpack_panel_f32[AK_QUANT_F16] = ak_avx2_unpack_f16;
    k->unpack_panel_f32[AK_QUANT_BF16] = ak_avx2_unpack_bf16;
    k->unpack_panel_f32[AK_QUANT_F8] = ak_avx2_unpack_f8;
    k->interleave_token_f32 = ak_avx2_interleave_token_f32;
    k->dot_panel_f32 = ak_avx2_dot_panel_f32;
    k->quantize32 = ak_avx2_quantize32;
    k->quantize256 = ak_avx2_quantize256;
    k->rms_norm = ak_avx2_rms_norm;
    k->add = ak_avx2_add;
    k->silu_mul = ak_avx2_silu_mul;
    k->layer_norm = ak_avx2_layer_norm;
    k->add_scaled = ak_avx2_add_scaled;
    k->softcap = ak_avx2_softcap;
    k->gelu_tanh = ak_avx2_gelu_tanh;
    k->gelu_tanh_mul = ak_avx2_gelu_tanh_mul;
    k->gelu_erf = ak_avx2_gelu_erf;
    k->gelu_erf_mul = ak_avx2_gelu_erf_mul;
    k->swiglu_clamped = ak_avx2_swiglu_clamped;
    k->short_conv = ak_avx2_short_conv;
    k->silu = ak_avx2_silu;
    k->sigmoid_mul = ak_avx2_sigmoid_mul;
    k->conv = ak_avx2_conv;
    k->delta_rule = ak_avx2_delta_rule;
    k->rope = ak_avx2_rope;
    k->f32_to_f16 = ak_avx2_f32_to_f16;
    k->attn_qk_f16 = ak_avx2_attn_qk_f16;
    k->attn_qk_f32 = ak_avx2_attn_qk_f32;
    k->attn_pv_f16 = ak_avx2_attn_pv_f16;
    k->attn_pv_f32 = ak_avx2_attn_pv_f32;
    k->attn_merge = ak_avx2_attn_merge;
    k->divide = ak_avx2_divide;
    k->probe_read = ak_avx2_probe_read;
    k->probe_int8 = ak_avx2_probe_int8;
    k->probe_f32 = ak_avx2_probe_f32;
}
