#include "cpu/amx/amx.h"

void ak_kernels_amx(struct ak_kernels *k)
{
    static ak_dot_slab_fn *const dot_slab[AK_TYPE_COUNT] = {
        [AK_Q4_0] = ak_amx_dot_slab_8,           [AK_Q4_1] = ak_amx_dot_slab_minimum,
        [AK_Q5_0] = ak_amx_dot_slab_16,          [AK_Q5_1] = ak_amx_dot_slab_minimum,
        [AK_Q8_0] = ak_amx_dot_slab_128,         [AK_IQ4_NL] = ak_amx_dot_slab_128,
        [AK_MXFP4] = ak_amx_dot_slab_16,         [AK_Q2_K] = ak_amx_dot_slab_k_minimum16,
        [AK_Q3_K] = ak_amx_dot_slab_k_124,       [AK_Q4_K] = ak_amx_dot_slab_k32_minimum,
        [AK_Q5_K] = ak_amx_dot_slab_k32_minimum, [AK_Q6_K] = ak_amx_dot_slab_k16_32,
        [AK_IQ4_XS] = ak_amx_dot_slab_k32_128,
    };
    k->name = "amx";
    for (int type = 0; type < AK_TYPE_COUNT; type++)
        if (dot_slab[type])
            k->tile[type].dot_slab = dot_slab[type];
}

void ak_kernels_amx_bf16(struct ak_kernels *k)
{
    k->open_bf16 = ak_amx_open_bf16;
    k->open_rounded = ak_amx_open_rounded;
    k->dot_bf16 = ak_amx_dot_bf16;
    k->bf16_step = AK_SLAB_TILES * AK_TILE_ROWS;
    k->bf16_most = 2 * AK_PANEL_ROWS;
}
