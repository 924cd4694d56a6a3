/* AVX2's instance of dot32.h: products of types with blocks of 32. */
#include "cpu/avx2/avx2.h"
#include "cpu/avx2/step.h"

#include "cpu/avx2/dot32.h"

void ak_avx2_set_dot32(struct ak_cpu_kernels *k)
{
    set_dot32(k);
}
