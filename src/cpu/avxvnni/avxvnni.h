/* The AVX-VNNI kernels, which override those of the AVX2 bundle: the products of packed types are
 * the same sources with another step. Each gives the bits of its scalar counterpart. */
#ifndef AK_CPU_AVXVNNI_AVXVNNI_H
#define AK_CPU_AVXVNNI_AVXVNNI_H

#include "cpu/kernels.h"

/* Set the products of packed types: blocks of 32, of 256. */
void ak_avxvnni_set_dot32(struct ak_cpu_kernels *k);
void ak_avxvnni_set_dot256(struct ak_cpu_kernels *k);

uint64_t ak_avxvnni_probe_int8(size_t rounds, uint64_t *sink);

#endif
