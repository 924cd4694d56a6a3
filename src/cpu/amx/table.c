#include "cpu/amx/amx.h"

void ak_kernels_amx(struct ak_kernels *k)
{
    static const struct {
        ak_open_slab_fn *open;
        ak_dot_slab_fn *dot;
    } slab[AK_QUANT_COUNT] = {
        [AK_QUANT_Q4_0] = { ak_amx_open_q4_0, ak_amx_dot_slab_32 },
        [AK_QUANT_Q4_1] = { ak_amx_open_q4_1, ak_amx_dot_slab_32_minimum },
        [AK_QUANT_Q5_0] = { ak_amx_open_q5_0, ak_amx_dot_slab_32 },
        [AK_QUANT_Q5_1] = { ak_amx_open_q5_1, ak_amx_dot_slab_32_minimum },
        [AK_QUANT_Q8_0] = { ak_amx_open_q8_0, ak_amx_dot_slab_32 },
        [AK_QUANT_IQ4_NL] = { ak_amx_open_iq4_nl, ak_amx_dot_slab_32 },
        [AK_QUANT_MXFP4] = { ak_amx_open_mxfp4, ak_amx_dot_slab_32 },
        [AK_QUANT_A4] = { ak_amx_open_a4, ak_amx_dot_slab_32_minimum },
        [AK_QUANT_A5] = { ak_amx_open_a5, ak_amx_dot_slab_32_minimum },
        [AK_QUANT_A8] = { ak_amx_open_a8, ak_amx_dot_slab_32_minimum },
        [AK_QUANT_Q2_K] = { ak_amx_open_q2_k, ak_amx_dot_slab_k_minimum16 },
        [AK_QUANT_Q3_K] = { ak_amx_open_q3_k, ak_amx_dot_slab_k_124 },
        [AK_QUANT_Q4_K] = { ak_amx_open_q4_k, ak_amx_dot_slab_k_minimum32 },
        [AK_QUANT_Q5_K] = { ak_amx_open_q5_k, ak_amx_dot_slab_k_minimum32 },
        [AK_QUANT_Q6_K] = { ak_amx_open_q6_k, ak_amx_dot_slab_k },
        [AK_QUANT_IQ4_XS] = { ak_amx_open_iq4_xs, ak_amx_dot_slab_k },
    };
    k->name = "amx";
    for (int type = 0; type < AK_QUANT_COUNT; type++) {
        if (slab[type].open) {
            k->tile[type].open_slab = slab[type].open;
            k->tile[type].dot_slab = slab[type].dot;
        }
    }
    k->probe_int8 = ak_amx_probe_int8;
}

void ak_kernels_amx_bf16(struct ak_kernels *k)
{
    k->open_bf16[AK_QUANT_BF16] = ak_amx_open_bf16;
    k->open_bf16[AK_QUANT_F16] = ak_amx_open_f16;
    k->open_rounded = ak_amx_open_rounded;
    k->dot_bf16 = ak_amx_dot_bf16;
    k->bf16_step = AK_SLAB_TILES * AK_TILE_ROWS;
    k->bf16_most = 2 * AK_PANEL_ROWS;
    k->probe_bf16 = ak_amx_probe_bf16;
}
