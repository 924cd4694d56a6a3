#include "cpu/avxvnni/avxvnni.h"
#include "cpu/avxvnni/step.h"

#include "cpu/avx2/dot256.h"

void ak_avxvnni_products256(struct ak_kernels *k)
{
    set_kernels256(k);
}
