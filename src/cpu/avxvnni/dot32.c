#include "cpu/avxvnni/avxvnni.h"
#include "cpu/avxvnni/step.h"

#include "cpu/avx2/dot32.h"

void ak_avxvnni_products32(struct ak_kernels *k)
{
    set_kernels32(k);
}
