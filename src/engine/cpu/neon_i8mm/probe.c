/* Roofline probe of I8MM: int8 products. The others are NEON's. */
#include <arm_neon.h>

#include "engine/cpu/probe.h"
#include "engine/cpu/setter.h"

AK_PROBE_INT8(vmmlaq_s32, int32x4_t, int8x16_t, 32 * 2);

AK_SETTER(probe_int8)
{
    k->probe_int8 = probe_int8;
}
