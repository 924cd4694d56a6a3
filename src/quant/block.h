/* What the stored blocks share: halves at any address, in little-endian order. */
#ifndef AK_QUANT_BLOCK_H
#define AK_QUANT_BLOCK_H

#include <math.h>

#include "base/half.h"
#include "quant/type.h"

enum { AK_QK_K = 256 }; /* elements of a "K" block */

static inline float ak_block_f16(const uint8_t half[2])
{
    return ak_f16_to_float((uint16_t)(half[0] | half[1] << 8));
}

static inline void ak_block_put_f16(uint8_t half[2], float x)
{
    uint16_t bits = ak_float_to_f16(x);
    half[0] = (uint8_t)bits;
    half[1] = (uint8_t)(bits >> 8);
}

/* 1/x, 0 for 0: what a quantiser multiplies with. */
static inline float ak_block_inverse(float x)
{
    return x == 0.0f ? 0.0f : 1.0f / x;
}

/* Towards zero, within [low, high]; `low` for what is no number. */
static inline int ak_block_clamp(float x, int low, int high)
{
    if (!(x > (float)low))
        return low;
    return x < (float)high ? (int)x : high;
}

/* The element of largest magnitude, the first of equals. */
static inline float ak_block_extreme(const float *x, int n)
{
    float extreme = 0.0f;
    for (int i = 0; i < n; i++)
        if (fabsf(x[i]) > fabsf(extreme))
            extreme = x[i];
    return extreme;
}

/* Q5_0 and Q5_1: 16 where element i has its fifth bit. */
static inline int ak_block_fifth_bit(const uint8_t high[4], int i)
{
    return (high[i / 8] >> i % 8 & 1) << 4;
}

/* The twelve bytes of Q4_K and Q5_K that hold eight 6-bit scales and minimums:
 * those of sub-blocks 0 … 3 in the low bits of bytes 0 … 3 and 4 … 7, the others
 * with four bits in bytes 8 … 11 and their upper two above the first ones. */
static inline void ak_block_scale_min(const uint8_t packed[12], int i, int *scale, int *min)
{
    if (i < 4) {
        *scale = packed[i] & 63;
        *min = packed[i + 4] & 63;
    } else {
        *scale = (packed[i + 4] & 15) | (packed[i - 4] >> 6 << 4);
        *min = (packed[i + 4] >> 4) | (packed[i] >> 6 << 4);
    }
}

#endif
