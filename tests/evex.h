/* A bundle for tests only: the sources of AVX-VNNI's products, compiled with the
 * AVX-512 encoding (EVEX, 256 bits) of the same instructions. It proves that code on
 * machines that have AVX-512 VNNI and no AVX-VNNI; its number follows the last bundle. */
#ifndef AK_TESTS_EVEX_H
#define AK_TESTS_EVEX_H

#include "config.h"
#include "cpu/kernels.h"

enum { EVEX_BUNDLE = AK_ISA_COUNT, N_BUNDLES };

void evex_products32(struct ak_kernels *k);
void evex_products256(struct ak_kernels *k);

/* The whole table of bundle `isa` or EVEX_BUNDLE. False: not usable here. */
static inline bool fill_bundle(int isa, struct ak_kernels *k)
{
    if (isa < AK_ISA_COUNT) {
        if (!ak_isa_usable((enum ak_isa)isa))
            return false;
        ak_kernels_fill((enum ak_isa)isa, k);
        return true;
    }
#if defined(HAVE_AK_AVX512) && defined(HAVE_AK_AVXVNNI)
    if (ak_isa_usable(AK_ISA_AVX512)) {
        ak_kernels_fill(AK_ISA_AVX2, k);
        k->name = "avxvnni as AVX-512";
        evex_products32(k);
        evex_products256(k);
        return true;
    }
#endif
    return false;
}

#endif
