/* Setter of the AVX512-BF16 kernels, which extend the AVX-512 ISA. */
#include "engine/cpu/setter.h"

void ak_avx512bf16_set_kernels(struct ak_cpu_kernels *k)
{
    k->panel_bf16_step = 16;
    k->panel_bf16_max = AK_PANEL_ROWS_MAX;
    AK_SET(panel_bf16, k);
}
