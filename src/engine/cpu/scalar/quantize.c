/* Quantizes activations to int8 with one scale per 32 or 256: the definition of the results. */
#include <math.h>
#include <string.h>

#include "engine/cpu/setter.h"
#include "base/half.h"

/* Magnitudes are compared as integers: they sort as the floats do, and a NaN compares larger than
 * all numbers instead of vanishing. */
static uint32_t largest_magnitude(const float *x, size_t n)
{
    uint32_t largest = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t magnitude = ak_float_bits(x[i]) & 0x7fffffffu;
        largest = magnitude > largest ? magnitude : largest;
    }
    return largest;
}

/* Quantizes n values by their largest magnitude; returns the scale. */
static float quantize_block(const float *x, size_t n, int8_t *q)
{
    uint32_t largest = largest_magnitude(x, n);
    if (largest < ak_float_bits(0x1p-100f) || largest >= 0x7f800000u) {
        memset(q, 0, n);
        return largest < 0x7f800000u ? 0.0f : ak_bits_float(0x7fc00000u);
    }
    float max = ak_bits_float(largest), inverse = 127.0f / max;
    for (size_t i = 0; i < n; i++)
        q[i] = (int8_t)lrintf(x[i] * inverse);
    return max / 127.0f;
}

static int32_t sum_of(const int8_t *q, size_t n)
{
    int32_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += q[i];
    return sum;
}

static void quantize32(const float *restrict x, size_t n, struct ak_cpu_act32 *restrict out)
{
    for (size_t i = 0; i < n; i += 32, out++) {
        out->scale = quantize_block(x + i, 32, out->q);
        int32_t sum = sum_of(out->q, 32);
        out->minus8_sum = -8 * sum;
        out->scaled_sum = out->scale * (float)sum;
        out->unused = 0;
    }
}

static void quantize256(const float *restrict x, size_t n, struct ak_cpu_act256 *restrict out)
{
    static const uint8_t pair_order[16] = { 0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15 };
    for (size_t i = 0; i < n; i += 256, out++) {
        memset(out, 0, sizeof *out);
        out->scale = quantize_block(x + i, 256, out->q);
        out->sum = sum_of(out->q, 256);
        for (size_t j = 0; j < 16; j++) {
            int32_t sum = sum_of(out->q + j * 16, 16);
            out->minus32_sum16[j] = -32 * sum;
            out->pair_sum16[pair_order[j]] = (int16_t)sum;
        }
        for (size_t j = 0; j < 8; j++)
            out->pair_sum32[pair_order[j]] = (int16_t)sum_of(out->q + j * 32, 32);
    }
}

AK_SETTER(quantize)
{
    k->quantize32 = quantize32;
    k->quantize256 = quantize256;
}
