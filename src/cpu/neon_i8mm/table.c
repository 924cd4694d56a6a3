/* Setter of the neon_i8mm bundle: its overrides of the NEON kernels. */
#include "cpu/neon_i8mm/neon_i8mm.h"

static void set_panel_i8(struct ak_cpu_tile_kernels *k, ak_unpack_panel_i8_fn *unpack,
                         ak_dot_panel_i8_fn *dot)
{
    k->unpack_panel_i8 = unpack;
    k->dot_panel_i8 = dot;
}

/* Only GEMM is overridden. GEMV is bound by memory, skinny GEMM by unpacking its tiles. */
void ak_neon_i8mm_set_kernels(struct ak_cpu_kernels *k)
{
    k->name = "neon_i8mm";
    set_panel_i8(&k->tile[AK_QUANT_Q4_0], ak_neon_i8mm_unpack_q4_0, ak_neon_i8mm_dot_panel_i8_32);
    set_panel_i8(&k->tile[AK_QUANT_Q4_1], ak_neon_i8mm_unpack_q4_1,
                 ak_neon_i8mm_dot_panel_i8_32_minimum);
    set_panel_i8(&k->tile[AK_QUANT_Q5_0], ak_neon_i8mm_unpack_q5_0, ak_neon_i8mm_dot_panel_i8_32);
    set_panel_i8(&k->tile[AK_QUANT_Q5_1], ak_neon_i8mm_unpack_q5_1,
                 ak_neon_i8mm_dot_panel_i8_32_minimum);
    set_panel_i8(&k->tile[AK_QUANT_Q8_0], ak_neon_i8mm_unpack_q8_0, ak_neon_i8mm_dot_panel_i8_32);
    set_panel_i8(&k->tile[AK_QUANT_IQ4_NL], ak_neon_i8mm_unpack_iq4_nl,
                 ak_neon_i8mm_dot_panel_i8_32);
    set_panel_i8(&k->tile[AK_QUANT_MXFP4], ak_neon_i8mm_unpack_mxfp4, ak_neon_i8mm_dot_panel_i8_32);
    set_panel_i8(&k->tile[AK_QUANT_A4], ak_neon_i8mm_unpack_a4,
                 ak_neon_i8mm_dot_panel_i8_32_minimum);
    set_panel_i8(&k->tile[AK_QUANT_A5], ak_neon_i8mm_unpack_a5,
                 ak_neon_i8mm_dot_panel_i8_32_minimum);
    set_panel_i8(&k->tile[AK_QUANT_A8], ak_neon_i8mm_unpack_a8,
                 ak_neon_i8mm_dot_panel_i8_32_minimum);
    set_panel_i8(&k->tile[AK_QUANT_Q2_K], ak_neon_i8mm_unpack_q2_k, ak_neon_i8mm_dot_panel_i8_q2_k);
    set_panel_i8(&k->tile[AK_QUANT_Q3_K], ak_neon_i8mm_unpack_q3_k, ak_neon_i8mm_dot_panel_i8_q3_k);
    set_panel_i8(&k->tile[AK_QUANT_Q4_K], ak_neon_i8mm_unpack_q4_k,
                 ak_neon_i8mm_dot_panel_i8_q45_k);
    set_panel_i8(&k->tile[AK_QUANT_Q5_K], ak_neon_i8mm_unpack_q5_k,
                 ak_neon_i8mm_dot_panel_i8_q45_k);
    set_panel_i8(&k->tile[AK_QUANT_Q6_K], ak_neon_i8mm_unpack_q6_k, ak_neon_i8mm_dot_panel_i8_q6_k);
    set_panel_i8(&k->tile[AK_QUANT_IQ4_XS], ak_neon_i8mm_unpack_iq4_xs,
                 ak_neon_i8mm_dot_panel_i8_iq4_xs);
    k->probe_int8 = ak_neon_i8mm_probe_int8;
}
