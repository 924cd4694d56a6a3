/* What the AMX bundle uses of the AVX-512 sources: the unpackers of tiles into int8 panels. */
#ifndef AK_CPU_AVX512_AVX512_H
#define AK_CPU_AVX512_AVX512_H

#include "cpu/kernels.h"

#define TILE32(name, NAME) ak_unpack_panel_i8_fn ak_avx512_unpack_##name;
#define TILE256(name, NAME) ak_unpack_panel_i8_fn ak_avx512_unpack_##name;
#include "cpu/types.def"

#endif
