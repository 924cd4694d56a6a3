/* Setter of the scalar bundle: fills the whole table, so that every slot has a kernel unless it is
 * optional. */
#include "cpu/scalar/scalar.h"

#include <string.h>

void ak_scalar_set_kernels(struct ak_cpu_kernels *k)
{
    k->name = "scalar";
    memcpy(k->tile, ak_scalar_tile, sizeof k->tile);
    for (int type = 0; type < AK_QUANT_COUNT; type++)
        k->dequantize[type] = ak_quant_info((enum ak_quant_type)type)->dequantize;
    k->dot_rows = ak_scalar_dot_rows;
    k->quantize32 = ak_scalar_quantize32;
    k->quantize256 = ak_scalar_quantize256;
    k->rms_norm = ak_scalar_rms_norm;
    k->add = ak_scalar_add;
    k->silu_mul = ak_scalar_silu_mul;
    k->layer_norm = ak_scalar_layer_norm;
    k->add_scaled = ak_scalar_add_scaled;
    k->softcap = ak_scalar_softcap;
    k->gelu_tanh = ak_scalar_gelu_tanh;
    k->gelu_tanh_mul = ak_scalar_gelu_tanh_mul;
    k->gelu_erf = ak_scalar_gelu_erf;
    k->gelu_erf_mul = ak_scalar_gelu_erf_mul;
    k->swiglu_clamped = ak_scalar_swiglu_clamped;
    k->short_conv = ak_scalar_short_conv;
    k->silu = ak_scalar_silu;
    k->sigmoid_mul = ak_scalar_sigmoid_mul;
    k->conv = ak_scalar_conv;
    k->delta_rule = ak_scalar_delta_rule;
    k->rope = ak_scalar_rope;
    k->f32_to_f16 = ak_scalar_f32_to_f16;
    k->attn_qk_f16 = ak_scalar_attn_qk_f16;
    k->attn_qk_f32 = ak_scalar_attn_qk_f32;
    k->attn_pv_f16 = ak_scalar_attn_pv_f16;
    k->attn_pv_f32 = ak_scalar_attn_pv_f32;
    k->attn_merge = ak_scalar_attn_merge;
    k->divide = ak_scalar_divide;
    k->probe_read = ak_scalar_probe_read;
    k->probe_int8 = ak_scalar_probe_int8;
    k->probe_f32 = ak_scalar_probe_f32;
}
