/* An ISA for tests only: AVX-VNNI's products of packed types, compiled with the AVX-512 encoding
 * (EVEX, 256 bits) of the same instructions. It tests that code on machines that have AVX-512 VNNI
 * but no AVX-VNNI. EVEX_ISA follows the last ISA's number. */
#ifndef AK_TESTS_ENGINE_CPU_EVEX_H
#define AK_TESTS_ENGINE_CPU_EVEX_H

#include "config.h"
#include "engine/cpu/kernels.h"

enum { EVEX_ISA = AK_CPU_ISA_COUNT, N_ISAS };

void ak_evex_set_dot32(struct ak_cpu_kernels *k);
void ak_evex_set_dot256(struct ak_cpu_kernels *k);

/* Fills the whole table of ISA `isa` or EVEX_ISA. Returns false if it is not usable here. */
static inline bool fill_isa(int isa, struct ak_cpu_kernels *k)
{
    if (isa < AK_CPU_ISA_COUNT) {
        if (!ak_cpu_isa_is_usable((enum ak_cpu_isa)isa))
            return false;
        ak_cpu_fill_kernels((enum ak_cpu_isa)isa, k);
        return true;
    }
#if HAVE_AK_AVX512 && HAVE_AK_AVXVNNI
    if (ak_cpu_isa_is_usable(AK_CPU_ISA_AVX512)) {
        ak_cpu_fill_kernels(AK_CPU_ISA_AVX2, k);
        k->name = "avxvnni as AVX-512";
        ak_evex_set_dot32(k);
        ak_evex_set_dot256(k);
        return true;
    }
#endif
    return false;
}

#endif
