/* Helpers for stored blocks: little-endian 16-bit floats at any address, arithmetic of quantizers,
 * packed scales. Also the blocks of quantized KV caches (Q8_0, Q4_0), of composed tensors (A4, A5,
 * A8, F8) and of recoded types (V2, V3, V4). */
#ifndef AK_FILES_QUANT_BLOCK_H
#define AK_FILES_QUANT_BLOCK_H

#include <math.h>

#include "base/half.h"
#include "files/quant/type.h"

enum { AK_QUANT_SUPER_BLOCK = 256 }; /* elements of a block of Q2_K … Q6_K and IQ4_XS */

static inline float ak_quant_get_f16(const uint8_t half[2])
{
    return ak_f16_to_float((uint16_t)(half[0] | half[1] << 8));
}

static inline void ak_quant_put_f16(uint8_t half[2], float x)
{
    uint16_t bits = ak_float_to_f16(x);
    half[0] = (uint8_t)bits;
    half[1] = (uint8_t)(bits >> 8);
}

/* x as FP16 has it. */
static inline float ak_quant_round_f16(float x)
{
    return ak_f16_to_float(ak_float_to_f16(x));
}

static inline float ak_quant_get_bf16(const uint8_t half[2])
{
    return ak_bf16_to_float((uint16_t)(half[0] | half[1] << 8));
}

/* 1/x, or 0 if x is 0: the factor of a quantizer with scale x. */
static inline float ak_quant_inverse(float x)
{
    return x == 0.0f ? 0.0f : 1.0f / x;
}

/* Truncates x to an integer in [low, high]; NaN gives `low`. */
static inline int ak_quant_clamp(float x, int low, int high)
{
    if (!(x > (float)low))
        return low;
    return x < (float)high ? (int)x : high;
}

/* The element of largest magnitude, with its sign; the first one of several. */
static inline float ak_quant_find_extreme(const float *x, int n)
{
    float extreme = 0.0f;
    for (int i = 0; i < n; i++)
        if (fabsf(x[i]) > fabsf(extreme))
            extreme = x[i];
    return extreme;
}

/* Q5_0, Q5_1, A5: the fifth bit of element i, as 0 or 16. */
static inline int ak_quant_fifth_bit(const uint8_t high[4], int i)
{
    return (high[i / 8] >> i % 8 & 1) << 4;
}

/* Q4_K, Q5_K: scale and minimum of sub-block i. Twelve bytes hold eight 6-bit scales and eight
 * 6-bit minimums. Sub-blocks 0 … 3: the low six bits of bytes 0 … 3 (scales) and 4 … 7
 * (minimums). Sub-blocks 4 … 7: the low four bits are in bytes 8 … 11, the upper two in the top
 * bits of bytes 0 … 7. */
static inline void ak_quant_get_scale_min(const uint8_t packed[12], int i, int *scale, int *min)
{
    if (i < 4) {
        *scale = packed[i] & 63;
        *min = packed[i + 4] & 63;
    } else {
        *scale = (packed[i + 4] & 15) | (packed[i - 4] >> 6 << 4);
        *min = (packed[i + 4] >> 4) | (packed[i] >> 6 << 4);
    }
}

/* x = d · q + m. As Q4_1, but d and m are BF16. */
struct ak_quant_block_a4 {
    uint8_t d[2];
    uint8_t m[2];
    uint8_t q[16];
};
_Static_assert(sizeof(struct ak_quant_block_a4) == 20, "A4 is 20 bytes for 32 elements");

/* x = d · q + m. As Q5_1, but d and m are BF16. */
struct ak_quant_block_a5 {
    uint8_t d[2];
    uint8_t m[2];
    uint8_t high[4];
    uint8_t q[16];
};
_Static_assert(sizeof(struct ak_quant_block_a5) == 24, "A5 is 24 bytes for 32 elements");

/* x = d · q + m with d and m in float32. */
struct ak_quant_block_a8 {
    float d, m;
    int8_t q[32];
};
_Static_assert(sizeof(struct ak_quant_block_a8) == 40, "A8 is 40 bytes for 32 elements");

/* x = d · (q − 1). Element 4·j + i, of j < 8 and i < 4, has its two bits at bit j / 2 · 2 of byte
 * j % 2 · 4 + i. */
struct ak_quant_block_v2 {
    uint8_t d[2];
    uint8_t q[8];
};
_Static_assert(sizeof(struct ak_quant_block_v2) == 10, "V2 is 10 bytes for 32 elements");

static inline int ak_quant_get_v2(const uint8_t q[8], size_t i)
{
    return (q[i / 4 % 2 * 4 + i % 4] >> i / 8 * 2 & 3) - 1;
}

/* What the indices of V3 and V4 stand for. Kernels rely on values of −64 … 63 in V3, −32 … 31 in
 * V4. */
struct ak_quant_table {
    int8_t values[16]; /* V3: eight values, twice */
    float factor;
};

/* x = d · factor · (2 · scale + 1) · value[q], with a 4-bit scale per 16 elements. The three bits
 * of q are laid out as in Q3_K: `high`, then `low`. Scale j is a nibble of byte j / 8 · 4 + j % 4:
 * the low one if j % 8 < 4. */
struct ak_quant_block_v3 {
    uint8_t d[2];
    uint8_t scales[8];
    uint8_t high[32];
    uint8_t low[64];
    uint8_t table[sizeof(struct ak_quant_table)];
};
_Static_assert(sizeof(struct ak_quant_block_v3) == 126, "V3 is 126 bytes for 256 elements");

/* The same with a scale per 32 elements. The q of each 32 elements are laid out as in Q4_0. */
struct ak_quant_block_v4 {
    uint8_t d[2];
    uint8_t scales[4];
    uint8_t q[128];
    uint8_t table[sizeof(struct ak_quant_table)];
};
_Static_assert(sizeof(struct ak_quant_block_v4) == 154, "V4 is 154 bytes for 256 elements");

/* V3, V4: the nibble of scale j. */
static inline unsigned ak_quant_nibble_scale(const uint8_t *scales, size_t j)
{
    return scales[j / 8 * 4 + j % 4] >> j / 4 % 2 * 4 & 15u;
}

/* x = d · e. q is an E4M3 number; e is q · 2^-8, because then the bits of q, shifted, are those
 * of an F16, subnormals included. A NaN q (0x7f, 0xff) needs a NaN d. */
struct ak_quant_block_f8 {
    float d;
    uint8_t q[128];
};
_Static_assert(sizeof(struct ak_quant_block_f8) == 132, "F8 is 132 bytes for 128 elements");

/* The bits of e as an F16. */
static inline uint16_t ak_quant_e4m3_to_f16(uint8_t q)
{
    return (uint16_t)((q & 0x80) << 8 | (q & 0x7f) << 7);
}

static inline void ak_quant_dequantize_f8(const void *restrict blocks, float *restrict out,
                                          size_t n)
{
    const uint8_t *at = blocks;
    for (size_t i = 0; i < n; i += 128, at += sizeof(struct ak_quant_block_f8), out += 128) {
        struct ak_quant_block_f8 b;
        memcpy(&b, at, sizeof b);
        for (int j = 0; j < 128; j++)
            out[j] = b.d * ak_f16_to_float(ak_quant_e4m3_to_f16(b.q[j]));
    }
}

/* x = d · q */
struct ak_quant_block_q8_0 {
    uint8_t d[2];
    int8_t q[32];
};
_Static_assert(sizeof(struct ak_quant_block_q8_0) == 34, "Q8_0 is 34 bytes for 32 elements");

static inline void ak_quant_dequantize_q8_0(const void *restrict blocks, float *restrict out,
                                            size_t n)
{
    const struct ak_quant_block_q8_0 *b = blocks;
    for (size_t i = 0; i < n; i += 32, b++, out += 32) {
        float d = ak_quant_get_f16(b->d);
        for (int j = 0; j < 32; j++)
            out[j] = d * (float)b->q[j];
    }
}

/* x = d · (q − 8). Elements 0 … 15 are the low nibbles, 16 … 31 the high ones. */
struct ak_quant_block_q4_0 {
    uint8_t d[2];
    uint8_t q[16];
};
_Static_assert(sizeof(struct ak_quant_block_q4_0) == 18, "Q4_0 is 18 bytes for 32 elements");

static inline void ak_quant_dequantize_q4_0(const void *restrict blocks, float *restrict out,
                                            size_t n)
{
    const struct ak_quant_block_q4_0 *b = blocks;
    for (size_t i = 0; i < n; i += 32, b++, out += 32) {
        float d = ak_quant_get_f16(b->d);
        for (int j = 0; j < 16; j++) {
            out[j] = d * (float)((b->q[j] & 15) - 8);
            out[j + 16] = d * (float)((b->q[j] >> 4) - 8);
        }
    }
}

#endif
