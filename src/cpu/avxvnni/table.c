#include "cpu/avxvnni/avxvnni.h"

void ak_kernels_avxvnni(struct ak_kernels *k)
{
    k->name = "avxvnni";
    ak_avxvnni_products32(k);
    ak_avxvnni_products256(k);
    k->probe_int8 = ak_avxvnni_probe_int8;
}
