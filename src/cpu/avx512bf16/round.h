/* Rounding to BF16, for units that are compiled with its instructions. */
#ifndef AK_CPU_AVX512BF16_ROUND_H
#define AK_CPU_AVX512BF16_ROUND_H

#include <immintrin.h>

#include "cpu/avx512/lanes.h"

AK_KERNEL __m512i round_floats(__m512 low, __m512 high)
{
    return (__m512i)_mm512_cvtne2ps_pbh(high, low);
}

/* AK_LANES stored numbers of BF16 or F16 as BF16. */
AK_KERNEL __m512i load_rounded(enum ak_quant_type type, const uint8_t *stored)
{
    if (type == AK_QUANT_BF16)
        return load_line(stored);
    return round_floats(load_halves(stored), load_halves(stored + AK_LINE_BYTES / 2));
}

#endif
