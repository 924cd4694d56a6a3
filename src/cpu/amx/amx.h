/* The AMX kernels: int8 GEMM, and BF16 GEMM under --relaxed if the CPU has AMX-BF16. All other
 * kernels are AVX-512's. Used by kernels.c and the sources of this folder. */
#ifndef AK_CPU_AMX_AMX_H
#define AK_CPU_AMX_AMX_H

#include "cpu/kernels.h"

ak_unpack_panel_i8_fn ak_amx_unpack_q4_0, ak_amx_unpack_q4_1, ak_amx_unpack_q5_0,
    ak_amx_unpack_q5_1, ak_amx_unpack_q8_0, ak_amx_unpack_q2_k, ak_amx_unpack_q3_k,
    ak_amx_unpack_q4_k, ak_amx_unpack_q5_k, ak_amx_unpack_q6_k, ak_amx_unpack_iq4_nl,
    ak_amx_unpack_iq4_xs, ak_amx_unpack_mxfp4, ak_amx_unpack_a4, ak_amx_unpack_a5, ak_amx_unpack_a8;

/* One kernel per kind of scaling left over after unpacking: blocks of 32 with and without a
 * minimum; K-types without minimums (Q6_K, IQ4_XS), with minimums per 32 (Q4_K, Q5_K) or per 16
 * (Q2_K), and with an offset of 124 (Q3_K). */
ak_dot_panel_i8_fn ak_amx_dot_panel_i8_32, ak_amx_dot_panel_i8_32_minimum, ak_amx_dot_panel_i8_k,
    ak_amx_dot_panel_i8_k_minimum32, ak_amx_dot_panel_i8_k_minimum16, ak_amx_dot_panel_i8_k_124;

/* These round differently from the scalar kernels. */
ak_unpack_panel_bf16_fn ak_amx_unpack_bf16, ak_amx_unpack_f16;
ak_interleave_token_bf16_fn ak_amx_interleave_token_bf16;
ak_dot_panel_bf16_fn ak_amx_dot_panel_bf16;

/* Roofline probes: int8 and BF16 products of the tile unit. */
uint64_t ak_amx_probe_int8(size_t rounds, uint64_t *sink);
uint64_t ak_amx_probe_bf16(size_t rounds, uint64_t *sink);

#endif
