/* Roofline probe of AVX-VNNI: int8 products. The others are AVX2's. */
#include <immintrin.h>

#include "engine/cpu/probe.h"
#include "engine/cpu/setter.h"

AK_PROBE_INT8(_mm256_dpbusd_epi32, __m256i, __m256i, 32 * 2);

AK_SETTER(probe_int8)
{
    k->probe_int8 = probe_int8;
}
