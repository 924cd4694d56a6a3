/* The AVX-VNNI kernels, on top of the AVX2 bundle: the products of packed types are
 * the same sources with another step. Each gives the bits of its scalar counterpart. */
#ifndef AK_CPU_AVXVNNI_AVXVNNI_H
#define AK_CPU_AVXVNNI_AVXVNNI_H

#include "cpu/kernels.h"

/* Set the products of packed types: blocks of 32, of 256. */
void ak_avxvnni_products32(struct ak_kernels *k);
void ak_avxvnni_products256(struct ak_kernels *k);

uint64_t ak_avxvnni_probe_int8(size_t rounds, uint64_t *sink);

#endif
