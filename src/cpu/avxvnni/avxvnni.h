/* The AVX-VNNI kernels, which override AVX2's products of packed types: the same sources with
 * another step.h. Same results as the scalar kernels. */
#ifndef AK_CPU_AVXVNNI_AVXVNNI_H
#define AK_CPU_AVXVNNI_AVXVNNI_H

#include "cpu/kernels.h"

/* Set the kernels of packed types: blocks of 32, of 256. */
void ak_avxvnni_set_dot32(struct ak_cpu_kernels *k);
void ak_avxvnni_set_dot256(struct ak_cpu_kernels *k);

uint64_t ak_avxvnni_probe_int8(size_t rounds, uint64_t *sink);

#endif
