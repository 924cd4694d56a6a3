/* Setter of the I8MM ISA: its overrides of the NEON kernels. Only GEMM is overridden: GEMV is
 * bound by memory, skinny GEMM by unpacking its tiles. */
#include "engine/cpu/setter.h"

void ak_neon_i8mm_set_kernels(struct ak_cpu_kernels *k)
{
    AK_SET(panel_i8_32, k);
    AK_SET(panel_i8_256, k);
    AK_SET(probe_int8, k);
}
