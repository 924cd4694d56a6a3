/* The AMX kernels: products of many tokens, of int8 over AVX-512's open slabs, and of
 * BF16 under --relaxed where the unit has them. Everything else is AVX-512's. */
#ifndef AK_CPU_AMX_AMX_H
#define AK_CPU_AMX_AMX_H

#include "cpu/kernels.h"

ak_dot_slab_fn ak_amx_dot_slab_8, ak_amx_dot_slab_16, ak_amx_dot_slab_128, ak_amx_dot_slab_minimum, ak_amx_dot_slab_k32_minimum,
    ak_amx_dot_slab_k32_128, ak_amx_dot_slab_k16_32, ak_amx_dot_slab_k_minimum16, ak_amx_dot_slab_k_124;

/* These round otherwise than the scalar kernels. */
ak_open_bf16_fn ak_amx_open_bf16;
ak_open_rounded_fn ak_amx_open_rounded;
ak_dot_bf16_fn ak_amx_dot_bf16;

#endif
