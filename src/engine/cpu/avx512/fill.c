/* Setter of the AVX-512 ISA (F, BW, DQ, VL, VNNI): its overrides of the AVX2 kernels. */
#include "engine/cpu/setter.h"

/* The quantizers are not overridden: AVX2's are as fast. */
void ak_avx512_set_kernels(struct ak_cpu_kernels *k)
{
    k->dot_tiles_tokens_max = 64;
    AK_SET(dot32, k);
    AK_SET(dot256, k);
    AK_SET(panel_i8_32, k);
    AK_SET(panel_i8_256, k);
    AK_SET(elementwise, k);
    AK_SET(delta, k);
    AK_SET(attn, k);
    AK_SET(dot_rows, k);
    AK_SET(dot_stored, k);
    AK_SET(panel_f32, k);
    AK_SET(rope, k);
    AK_SET(probe_int8, k);
    AK_SET(probe, k);
}
