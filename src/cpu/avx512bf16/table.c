#include "cpu/avx512bf16/avx512bf16.h"

void ak_kernels_avx512bf16(struct ak_kernels *k)
{
    k->open_bf16[AK_QUANT_BF16] = ak_avx512bf16_open_bf16;
    k->open_bf16[AK_QUANT_F16] = ak_avx512bf16_open_f16;
    k->open_rounded = ak_avx512bf16_open_token;
    k->dot_bf16 = ak_avx512bf16_dot_panel;
    k->bf16_step = 16;
    k->bf16_most = AK_PANEL_ROWS;
}
