/* Setters of the AMX ISA: int8 GEMM of all packed types, and BF16 GEMM, which rounds differently
 * from the scalar kernels, under --relaxed if the CPU has AMX-BF16. */
#include "engine/cpu/setter.h"

void ak_amx_set_kernels(struct ak_cpu_kernels *k)
{
    k->dot_tiles_tokens_max = AK_SKINNY_MAX;
    AK_SET(unpack, k);
    AK_SET(panel_i8_32, k);
    AK_SET(panel_i8_256, k);
    AK_SET(probe_int8, k);
}

void ak_amx_bf16_set_kernels(struct ak_cpu_kernels *k)
{
    AK_SET(panel_bf16, k);
    AK_SET(probe_bf16, k);
}
