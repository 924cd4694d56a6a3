/* Roofline probe of AVX-512: int8 products. */
#include <immintrin.h>

#include "engine/cpu/probe.h"
#include "engine/cpu/setter.h"

AK_PROBE_INT8(_mm512_dpbusd_epi32, __m512i, __m512i, 64 * 2);

AK_SETTER(probe_int8)
{
    k->probe_int8 = probe_int8;
}
