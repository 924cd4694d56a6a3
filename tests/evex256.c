#include "cpu/avxvnni/step.h"

#include "cpu/avx2/dot256.h"
#include "evex.h"

void evex_products256(struct ak_kernels *k)
{
    set_kernels256(k);
}
