/* Conversions between float and float16 or bfloat16, rounded to nearest even, and of MXFP4's scale.
 * They use bit operations and exact products of floats, so every machine gives the same bits. */
#ifndef AK_BASE_HALF_H
#define AK_BASE_HALF_H

#include <stdint.h>
#include <string.h>

static inline uint32_t ak_float_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float ak_bits_float(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline float ak_bf16_to_float(uint16_t h)
{
    return ak_bits_float((uint32_t)h << 16);
}

static inline uint16_t ak_float_to_bf16(float x)
{
    uint32_t u = ak_float_bits(x);
    if ((u & 0x7fffffffu) > 0x7f800000u) /* NaN stays NaN, made quiet */
        return (uint16_t)((u >> 16) | 0x40u);
    return (uint16_t)((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}

/* IEEE 754 binary16. A signaling NaN becomes quiet, as with vcvtph2ps. */
static inline float ak_f16_to_float(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16;
    uint32_t exponent = (h >> 10) & 0x1fu;
    uint32_t mantissa = h & 0x3ffu;
    if (exponent == 0x1fu)
        return ak_bits_float(sign | 0x7f800000u | (mantissa << 13) | (mantissa ? 0x400000u : 0u));
    if (exponent != 0)
        return ak_bits_float(sign | ((exponent + 112u) << 23) | (mantissa << 13));
    /* zero and subnormals: mantissa × 2^-24, exact in float */
    float value = (float)mantissa * 0x1p-24f;
    return ak_bits_float(sign | ak_float_bits(value));
}

static inline uint16_t ak_float_to_f16(float x)
{
    uint32_t u = ak_float_bits(x);
    uint32_t sign = (u >> 16) & 0x8000u;
    uint32_t magnitude = u & 0x7fffffffu;
    if (magnitude > 0x7f800000u) /* NaN: keeps the top bits, quiet */
        return (uint16_t)(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
    if (magnitude >= 0x477ff000u) /* 65520 and more round to infinity */
        return (uint16_t)(sign | 0x7c00u);
    if (magnitude < 0x38800000u) {   /* below 2^-14: subnormal or zero */
        if (magnitude < 0x33000000u) /* below 2^-25 */
            return (uint16_t)sign;
        uint32_t shift = 126u - (magnitude >> 23);
        uint32_t m = (magnitude & 0x7fffffu) | 0x800000u;
        uint32_t half = 1u << (shift - 1u);
        uint32_t result = m >> shift;
        uint32_t rest = m & ((1u << shift) - 1u);
        if (rest > half || (rest == half && (result & 1u)))
            result++;
        return (uint16_t)(sign | result);
    }
    uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
    return (uint16_t)(sign | ((rounded - 0x38000000u) >> 13));
}

/* 2^(e − 128), half of the scale that MXFP4's exponent byte e stands for. 0 and 1 give
 * subnormals. */
static inline float ak_e8m0_half(uint8_t e)
{
    return ak_bits_float(e < 2 ? 0x200000u << e : (uint32_t)(e - 1) << 23);
}

#endif
