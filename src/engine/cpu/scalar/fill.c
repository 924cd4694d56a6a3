/* Setter of the scalar ISA: fills the whole table, so that every slot has a kernel unless it is
 * optional. */
#include "engine/cpu/setter.h"

void ak_scalar_set_kernels(struct ak_cpu_kernels *k)
{
    k->dot_tiles_tokens_max = AK_SKINNY_MAX;
    for (int type = 0; type < AK_QUANT_COUNT; type++)
        k->dequantize[type] = ak_quant_info((enum ak_quant_type)type)->dequantize;
    k->rms_norm = ak_generic_rms_norm;
    k->add = ak_generic_add;
    k->silu_mul = ak_generic_silu_mul;
    k->layer_norm = ak_generic_layer_norm;
    k->add_scaled = ak_generic_add_scaled;
    k->softcap = ak_generic_softcap;
    k->gelu_tanh = ak_generic_gelu_tanh;
    k->gelu_tanh_mul = ak_generic_gelu_tanh_mul;
    k->gelu_erf = ak_generic_gelu_erf;
    k->gelu_erf_mul = ak_generic_gelu_erf_mul;
    k->swiglu_clamped = ak_generic_swiglu_clamped;
    k->short_conv = ak_generic_short_conv;
    k->silu = ak_generic_silu;
    k->sigmoid_mul = ak_generic_sigmoid_mul;
    k->conv = ak_generic_conv;
    k->delta_rule = ak_generic_delta_rule;
    k->rope = ak_generic_rope;
    k->f32_to_f16 = ak_generic_f32_to_f16;
    k->attn_merge = ak_generic_attn_merge;
    k->divide = ak_generic_divide;
    AK_SET(dot_tiles, k);
    AK_SET(attn, k);
    AK_SET(dot_rows, k);
    AK_SET(quantize, k);
    AK_SET(probe, k);
}
