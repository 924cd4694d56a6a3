#include "cpu/avx2/avx2.h"
#include "cpu/avx2/step.h"

#include "cpu/avx2/dot32.h"

void ak_avx2_products32(struct ak_kernels *k)
{
    set_kernels32(k);
}
