/* A bundle for tests only: the sources of AVX-VNNI's products, compiled with the
 * AVX-512 encoding (EVEX, 256 bits) of the same instructions. It proves that code on
 * machines that have AVX-512 VNNI and no AVX-VNNI; its number follows the last bundle. */
#ifndef AK_TESTS_EVEX_H
#define AK_TESTS_EVEX_H

#include "config.h"
#include "cpu/kernels.h"

enum { EVEX_BUNDLE = AK_CPU_ISA_COUNT, N_BUNDLES };

void evex_set_dot32(struct ak_cpu_kernels *k);
void evex_set_dot256(struct ak_cpu_kernels *k);

/* The whole table of bundle `isa` or EVEX_BUNDLE. False: not usable here. */
static inline bool fill_bundle(int isa, struct ak_cpu_kernels *k)
{
    if (isa < AK_CPU_ISA_COUNT) {
        if (!ak_cpu_isa_is_usable((enum ak_cpu_isa)isa))
            return false;
        ak_cpu_fill_kernels((enum ak_cpu_isa)isa, k);
        return true;
    }
#if defined(HAVE_AK_AVX512) && defined(HAVE_AK_AVXVNNI)
    if (ak_cpu_isa_is_usable(AK_CPU_ISA_AVX512)) {
        ak_cpu_fill_kernels(AK_CPU_ISA_AVX2, k);
        k->name = "avxvnni as AVX-512";
        evex_set_dot32(k);
        evex_set_dot256(k);
        return true;
    }
#endif
    return false;
}

#endif
