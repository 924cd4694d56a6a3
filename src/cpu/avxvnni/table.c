/* Setter of the AVX-VNNI bundle: its overrides of the AVX2 kernels. */
#include "cpu/avxvnni/avxvnni.h"

void ak_avxvnni_set_kernels(struct ak_cpu_kernels *k)
{
    k->name = "avxvnni";
    ak_avxvnni_set_dot32(k);
    ak_avxvnni_set_dot256(k);
    k->probe_int8 = ak_avxvnni_probe_int8;
}
