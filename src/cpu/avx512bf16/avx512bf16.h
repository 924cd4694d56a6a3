/* What AVX-512 with BF16 products adds to the AVX-512 bundle. These kernels round
 * otherwise than the scalar ones and are used under --relaxed alone. */
#ifndef AK_CPU_AVX512BF16_AVX512BF16_H
#define AK_CPU_AVX512BF16_AVX512BF16_H

#include "cpu/kernels.h"

ak_open_bf16_fn ak_avx512bf16_open_bf16, ak_avx512bf16_open_f16;
ak_open_rounded_fn ak_avx512bf16_open_token;
ak_dot_bf16_fn ak_avx512bf16_dot_panel;

#endif
