#include "cpu/neon_i8mm/neon_i8mm.h"

static void set_slab(struct ak_tile_kernels *k, ak_open_slab_fn *open, ak_dot_slab_fn *dot)
{
    k->open_slab = open;
    k->dot_slab = dot;
}

/* One token is bound by memory, and a few by opening their tiles: those stay as they are. */
void ak_kernels_neon_i8mm(struct ak_kernels *k)
{
    k->name = "neon_i8mm";
    set_slab(&k->tile[AK_QUANT_Q4_0], ak_neon_i8mm_open_q4_0, ak_neon_i8mm_dot_slab_32);
    set_slab(&k->tile[AK_QUANT_Q4_1], ak_neon_i8mm_open_q4_1, ak_neon_i8mm_dot_slab_32_minimum);
    set_slab(&k->tile[AK_QUANT_Q5_0], ak_neon_i8mm_open_q5_0, ak_neon_i8mm_dot_slab_32);
    set_slab(&k->tile[AK_QUANT_Q5_1], ak_neon_i8mm_open_q5_1, ak_neon_i8mm_dot_slab_32_minimum);
    set_slab(&k->tile[AK_QUANT_Q8_0], ak_neon_i8mm_open_q8_0, ak_neon_i8mm_dot_slab_32);
    set_slab(&k->tile[AK_QUANT_IQ4_NL], ak_neon_i8mm_open_iq4_nl, ak_neon_i8mm_dot_slab_32);
    set_slab(&k->tile[AK_QUANT_MXFP4], ak_neon_i8mm_open_mxfp4, ak_neon_i8mm_dot_slab_32);
    set_slab(&k->tile[AK_QUANT_A4], ak_neon_i8mm_open_a4, ak_neon_i8mm_dot_slab_32_minimum);
    set_slab(&k->tile[AK_QUANT_A5], ak_neon_i8mm_open_a5, ak_neon_i8mm_dot_slab_32_minimum);
    set_slab(&k->tile[AK_QUANT_A8], ak_neon_i8mm_open_a8, ak_neon_i8mm_dot_slab_32_minimum);
    set_slab(&k->tile[AK_QUANT_Q2_K], ak_neon_i8mm_open_q2_k, ak_neon_i8mm_dot_slab_q2_k);
    set_slab(&k->tile[AK_QUANT_Q3_K], ak_neon_i8mm_open_q3_k, ak_neon_i8mm_dot_slab_q3_k);
    set_slab(&k->tile[AK_QUANT_Q4_K], ak_neon_i8mm_open_q4_k, ak_neon_i8mm_dot_slab_q45_k);
    set_slab(&k->tile[AK_QUANT_Q5_K], ak_neon_i8mm_open_q5_k, ak_neon_i8mm_dot_slab_q45_k);
    set_slab(&k->tile[AK_QUANT_Q6_K], ak_neon_i8mm_open_q6_k, ak_neon_i8mm_dot_slab_q6_k);
    set_slab(&k->tile[AK_QUANT_IQ4_XS], ak_neon_i8mm_open_iq4_xs, ak_neon_i8mm_dot_slab_iq4_xs);
    k->probe_int8 = ak_neon_i8mm_probe_int8;
}
