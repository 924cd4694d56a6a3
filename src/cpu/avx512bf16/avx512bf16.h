/* Kernels that AVX512-BF16 adds to the AVX-512 bundle. They round differently from the scalar ones
 * and are used under --relaxed only. */
#ifndef AK_CPU_AVX512BF16_AVX512BF16_H
#define AK_CPU_AVX512BF16_AVX512BF16_H

#include "cpu/kernels.h"

ak_unpack_panel_bf16_fn ak_avx512bf16_unpack_bf16, ak_avx512bf16_unpack_f16;
ak_interleave_token_bf16_fn ak_avx512bf16_interleave_token_bf16;
ak_dot_panel_bf16_fn ak_avx512bf16_dot_panel_bf16;

#endif
