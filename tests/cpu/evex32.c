/* The test bundle's instance of cpu/avx2/dot32.h: products of types with blocks of 32. */
#include "cpu/avxvnni/step.h"

#include "cpu/avx2/dot32.h"
#include "tests/cpu/evex.h"

void evex_set_dot32(struct ak_cpu_kernels *k)
{
    set_dot32(k);
}
