/* Setter of the AVX512-BF16 kernels, which extend the AVX-512 bundle. */
#include "cpu/avx512bf16/avx512bf16.h"

void ak_avx512bf16_set_kernels(struct ak_cpu_kernels *k)
{
    k->unpack_panel_bf16[AK_QUANT_BF16] = ak_avx512bf16_unpack_bf16;
    k->unpack_panel_bf16[AK_QUANT_F16] = ak_avx512bf16_unpack_f16;
    k->interleave_token_bf16 = ak_avx512bf16_interleave_token_bf16;
    k->dot_panel_bf16 = ak_avx512bf16_dot_panel_bf16;
    k->panel_bf16_step = 16;
    k->panel_bf16_max = AK_PANEL_ROWS_MAX;
}
