/* Setters of the AMX bundle: int8 GEMM of all packed types, and the optional BF16 kernels. */
#include "cpu/amx/amx.h"

void ak_amx_set_kernels(struct ak_cpu_kernels *k)
{
    static const struct {
        ak_unpack_panel_i8_fn *unpack;
        ak_dot_panel_i8_fn *dot;
    } panel[AK_QUANT_COUNT] = {
        [AK_QUANT_Q4_0] = { ak_amx_unpack_q4_0, ak_amx_dot_panel_i8_32 },
        [AK_QUANT_Q4_1] = { ak_amx_unpack_q4_1, ak_amx_dot_panel_i8_32_minimum },
        [AK_QUANT_Q5_0] = { ak_amx_unpack_q5_0, ak_amx_dot_panel_i8_32 },
        [AK_QUANT_Q5_1] = { ak_amx_unpack_q5_1, ak_amx_dot_panel_i8_32_minimum },
        [AK_QUANT_Q8_0] = { ak_amx_unpack_q8_0, ak_amx_dot_panel_i8_32 },
        [AK_QUANT_IQ4_NL] = { ak_amx_unpack_iq4_nl, ak_amx_dot_panel_i8_32 },
        [AK_QUANT_MXFP4] = { ak_amx_unpack_mxfp4, ak_amx_dot_panel_i8_32 },
        [AK_QUANT_A4] = { ak_amx_unpack_a4, ak_amx_dot_panel_i8_32_minimum },
        [AK_QUANT_A5] = { ak_amx_unpack_a5, ak_amx_dot_panel_i8_32_minimum },
        [AK_QUANT_A8] = { ak_amx_unpack_a8, ak_amx_dot_panel_i8_32_minimum },
        [AK_QUANT_Q2_K] = { ak_amx_unpack_q2_k, ak_amx_dot_panel_i8_k_minimum16 },
        [AK_QUANT_Q3_K] = { ak_amx_unpack_q3_k, ak_amx_dot_panel_i8_k_124 },
        [AK_QUANT_Q4_K] = { ak_amx_unpack_q4_k, ak_amx_dot_panel_i8_k_minimum32 },
        [AK_QUANT_Q5_K] = { ak_amx_unpack_q5_k, ak_amx_dot_panel_i8_k_minimum32 },
        [AK_QUANT_Q6_K] = { ak_amx_unpack_q6_k, ak_amx_dot_panel_i8_k },
        [AK_QUANT_IQ4_XS] = { ak_amx_unpack_iq4_xs, ak_amx_dot_panel_i8_k },
    };
    for (int type = 0; type < AK_QUANT_COUNT; type++) {
        if (panel[type].unpack) {
            k->tile[type].unpack_panel_i8 = panel[type].unpack;
            k->tile[type].dot_panel_i8 = panel[type].dot;
        }
    }
    k->probe_int8 = ak_amx_probe_int8;
}

void ak_amx_bf16_set_kernels(struct ak_cpu_kernels *k)
{
    k->unpack_panel_bf16[AK_QUANT_BF16] = ak_amx_unpack_bf16;
    k->unpack_panel_bf16[AK_QUANT_F16] = ak_amx_unpack_f16;
    k->interleave_token_bf16 = ak_amx_interleave_token_bf16;
    k->dot_panel_bf16 = ak_amx_dot_panel_bf16;
    k->panel_bf16_step = AK_PANEL_I8_TILES_MAX * AK_TILE_ROWS;
    k->panel_bf16_max = 2 * AK_PANEL_ROWS_MAX;
    k->probe_bf16 = ak_amx_probe_bf16;
}
