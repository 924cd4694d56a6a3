/* The test bundle's instance of cpu/avx2/dot256.h: products of types with blocks of 256. */
#include "cpu/avxvnni/step.h"

#include "cpu/avx2/dot256.h"
#include "tests/cpu/evex.h"

void evex_set_dot256(struct ak_cpu_kernels *k)
{
    set_dot256(k);
}
