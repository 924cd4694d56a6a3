/* The AMX kernels (tile, int8): products of many tokens over AVX-512's open slabs.
 * Everything else is AVX-512's. */
#ifndef AK_CPU_AMX_AMX_H
#define AK_CPU_AMX_AMX_H

#include "cpu/kernels.h"

ak_dot_slab_fn ak_amx_dot_slab_8, ak_amx_dot_slab_16, ak_amx_dot_slab_128, ak_amx_dot_slab_minimum, ak_amx_dot_slab_k32_minimum,
    ak_amx_dot_slab_k32_128, ak_amx_dot_slab_k16_32, ak_amx_dot_slab_k_minimum16, ak_amx_dot_slab_k_124;

#endif
