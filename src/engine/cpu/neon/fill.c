/* Setter of the NEON ISA (with the dot-product instructions): its overrides of the scalar
 * kernels. */
#include "engine/cpu/setter.h"

void ak_neon_set_kernels(struct ak_cpu_kernels *k)
{
    AK_SET(dot32, k);
    AK_SET(dot256, k);
    AK_SET(elementwise, k);
    AK_SET(delta, k);
    AK_SET(attn, k);
    AK_SET(dot_rows, k);
    AK_SET(panel_f32, k);
    AK_SET(quantize, k);
    AK_SET(probe_int8, k);
    AK_SET(probe, k);
}
