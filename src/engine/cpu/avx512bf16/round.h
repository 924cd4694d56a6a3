/* Rounding of stored rows and tokens to BF16, for BF16 GEMM. */
#ifndef AK_ENGINE_CPU_AVX512BF16_ROUND_H
#define AK_ENGINE_CPU_AVX512BF16_ROUND_H

#include <immintrin.h>

#include "engine/cpu/avx512/lanes.h"

AK_KERNEL __m512i round_floats(__m512 low, __m512 high)
{
    return (__m512i)_mm512_cvtne2ps_pbh(high, low);
}

/* Loads AK_LANES stored BF16 or F16 numbers as BF16. */
AK_KERNEL __m512i load_rounded(enum ak_quant_type type, const uint8_t *stored)
{
    if (type == AK_QUANT_BF16)
        return load_line(stored);
    return round_floats(load_halves(stored), load_halves(stored + AK_LINE_BYTES / 2));
}

#endif
