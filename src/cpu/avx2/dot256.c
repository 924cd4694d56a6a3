#include "cpu/avx2/avx2.h"
#include "cpu/avx2/step.h"

#include "cpu/avx2/dot256.h"

void ak_avx2_products256(struct ak_kernels *k)
{
    set_kernels256(k);
}
