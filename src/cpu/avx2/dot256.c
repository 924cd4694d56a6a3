/* AVX2's instance of dot256.h: products of types with blocks of 256. */
#include "cpu/avx2/avx2.h"
#include "cpu/avx2/step.h"

#include "cpu/avx2/dot256.h"

void ak_avx2_set_dot256(struct ak_cpu_kernels *k)
{
    set_dot256(k);
}
