/* Rows of signed integers with a scale per group: the arrays of docs/npy-directory.md. Compiled by
 * conversion/quantize/row_table.h once per instruction set. */
#ifndef AK_CONVERSION_QUANTIZE_GROUPS_H
#define AK_CONVERSION_QUANTIZE_GROUPS_H

#include <string.h>

#include "files/quant/block.h"
#include "conversion/quantize/fit.h"
#include "conversion/quantize/quantize.h"

static const struct ak_levels levels_int4 = { .low = -8.0f, .high = 7.0f, .step = 0.2f },
                              levels_int3 = { .low = -4.0f, .high = 3.0f, .step = 0.2f };

/* The number of F16 that is `x` or the next above; x >= 0. INFINITY: there is none. */
AK_SEARCH float round_up_f16(float x)
{
    uint16_t half = ak_float_to_f16(x);
    return ak_f16_to_float(half) < x ? ak_f16_to_float((uint16_t)(half + 1)) :
                                       ak_f16_to_float(half);
}

/* No element is off by more than half a step. The elements are divided: a product with the inverse
 * may round a half the other way. */
AK_SEARCH void group_int8(const float *x, uint32_t n, uint8_t *out, float *scale)
{
    float largest = 0.0f;
    for (uint32_t i = 0; i < n; i++)
        largest = fabsf(x[i]) > largest ? fabsf(x[i]) : largest;
    *scale = round_up_f16(largest / 127.0f);
    float divisor = *scale > 0.0f ? *scale : 1.0f;
    for (uint32_t i = 0; i < n; i++) {
        float level = (x[i] / divisor + 12582912.0f) - 12582912.0f; /* 1.5 · 2^23 */
        /* NaN, which the caller refuses, becomes -127: no int8 holds it */
        out[i] = (uint8_t)(int8_t)(level > 127.0f ? 127.0f : level > -127.0f ? level : -127.0f);
    }
}

/* Numbers from 0 on, for 4 and 3 bits. */
AK_SEARCH void group_searched(const float *x, const float *w, uint32_t n,
                              const struct ak_levels *levels, uint8_t *q, float *scale)
{
    *scale = ak_quant_round_f16(ak_fit_scale(x, w, (int)n, levels));
    float inverse = ak_quant_inverse(*scale);
    for (uint32_t i = 0; i < n; i++)
        q[i] = (uint8_t)(ak_level(x[i] * inverse, levels) - levels->low);
}

AK_SEARCH void pack_int4(const uint8_t *q, uint32_t n, uint8_t *out)
{
    for (uint32_t i = 0; i < n; i += 2)
        out[i / 2] = (uint8_t)(q[i] | q[i + 1] << 4);
}

/* Eight numbers in three bytes, the lowest bits first. */
AK_SEARCH void pack_int3(const uint8_t *q, uint32_t n, uint8_t *out)
{
    for (uint32_t i = 0; i < n; i += 8, out += 3) {
        uint32_t word = 0;
        for (int j = 0; j < 8; j++)
            word |= (uint32_t)q[i + (uint32_t)j] << 3 * j;
        for (int j = 0; j < 3; j++)
            out[j] = (uint8_t)(word >> 8 * j);
    }
}

AK_SEARCH void row_groups(unsigned bits, uint32_t group, const float *x, const float *w,
                          uint8_t *out, float *scales, size_t n)
{
    uint8_t q[AK_QUANTIZE_GROUP_MAX];
    for (size_t at = 0; at < n; at += group, scales++) {
        if (bits == 8) {
            group_int8(x + at, group, out + at, scales);
            continue;
        }
        group_searched(x + at, w + at, group, bits == 4 ? &levels_int4 : &levels_int3, q, scales);
        if (bits == 4)
            pack_int4(q, group, out + at / 2);
        else
            pack_int3(q, group, out + at * 3 / 8);
    }
}

#endif
