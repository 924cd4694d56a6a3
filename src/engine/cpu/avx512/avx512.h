/* Unpackers of tiles into AVX-512's int8 panels, declared here because two ISAs call them: AVX-512
 * through the kernel table, and amx/unpack.c, which converts the panels for the AMX tile unit.
 * panel_i8_32.c and panel_i8_256.c define them. */
#ifndef AK_ENGINE_CPU_AVX512_AVX512_H
#define AK_ENGINE_CPU_AVX512_AVX512_H

#include "engine/cpu/kernels.h"

#define TILE32(name, NAME) ak_unpack_panel_i8_fn ak_avx512_unpack_##name;
#define TILE256(name, NAME) ak_unpack_panel_i8_fn ak_avx512_unpack_##name;
#include "engine/cpu/types.def"

#endif
