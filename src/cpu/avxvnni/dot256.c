/* AVX-VNNI's instance of cpu/avx2/dot256.h: products of types with blocks of 256. */
#include "cpu/avxvnni/avxvnni.h"
#include "cpu/avxvnni/step.h"

#include "cpu/avx2/dot256.h"

void ak_avxvnni_set_dot256(struct ak_cpu_kernels *k)
{
    set_dot256(k);
}
