/* Kernels that the int8 matrix instructions (I8MM) add to NEON's: GEMM over int8 panels. Same
 * results as the scalar kernels. */
#ifndef AK_CPU_NEON_I8MM_NEON_I8MM_H
#define AK_CPU_NEON_I8MM_NEON_I8MM_H

#include "cpu/kernels.h"

ak_unpack_panel_i8_fn ak_neon_i8mm_unpack_q4_0, ak_neon_i8mm_unpack_q4_1, ak_neon_i8mm_unpack_q5_0,
    ak_neon_i8mm_unpack_q5_1, ak_neon_i8mm_unpack_q8_0, ak_neon_i8mm_unpack_iq4_nl,
    ak_neon_i8mm_unpack_mxfp4, ak_neon_i8mm_unpack_q2_k, ak_neon_i8mm_unpack_q3_k,
    ak_neon_i8mm_unpack_q4_k, ak_neon_i8mm_unpack_q5_k, ak_neon_i8mm_unpack_q6_k,
    ak_neon_i8mm_unpack_iq4_xs, ak_neon_i8mm_unpack_a4, ak_neon_i8mm_unpack_a5,
    ak_neon_i8mm_unpack_a8;
/* One kernel for all types with the same format. */
ak_dot_panel_i8_fn ak_neon_i8mm_dot_panel_i8_32, ak_neon_i8mm_dot_panel_i8_32_minimum,
    ak_neon_i8mm_dot_panel_i8_q2_k, ak_neon_i8mm_dot_panel_i8_q3_k, ak_neon_i8mm_dot_panel_i8_q45_k,
    ak_neon_i8mm_dot_panel_i8_q6_k, ak_neon_i8mm_dot_panel_i8_iq4_xs;
uint64_t ak_neon_i8mm_probe_int8(size_t rounds, uint64_t *sink);

#endif
