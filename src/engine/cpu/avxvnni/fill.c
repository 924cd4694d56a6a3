/* Setter of the AVX-VNNI ISA: its overrides of the AVX2 kernels. */
#include "engine/cpu/setter.h"

void ak_avxvnni_set_kernels(struct ak_cpu_kernels *k)
{
    AK_SET(dot32, k);
    AK_SET(dot256, k);
    AK_SET(probe_int8, k);
}
