#include "cpu/avxvnni/step.h"

#include "cpu/avx2/dot32.h"
#include "evex.h"

void evex_products32(struct ak_kernels *k)
{
    set_kernels32(k);
}
