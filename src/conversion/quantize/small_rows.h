/* Rows of the types with few levels and one kind of scale: TQ1_0, TQ2_0, Q1_0, Q2_0, MXFP4, NVFP4.
 * Compiled once per instruction set. Layouts: files/quant/ternary.c, files/quant/iq.c. */
#ifndef AK_CONVERSION_QUANTIZE_SMALL_ROWS_H
#define AK_CONVERSION_QUANTIZE_SMALL_ROWS_H

#include "conversion/quantize/rows.h"

/* ---- Levels of a range -------------------------------------------------- */
/* Candidates let the largest element be 1/2 to 4 of a ternary type's levels. */
static const struct ak_levels levels_ternary = { .low = -1.0f, .high = 1.0f, .step = 0.4f },
                              levels_q2_0 = { .low = -1.0f, .high = 2.0f, .step = 0.3f };

/* Numbers from 0 on. */
AK_SEARCH void fit_numbers(const float *x, const float *w, int n, const struct ak_levels *levels,
                           uint8_t d[2], uint8_t *q)
{
    float inverse = fit_f16_scale(x, w, n, levels, d);
    for (int i = 0; i < n; i++)
        q[i] = (uint8_t)(ak_level(x[i] * inverse, levels) - levels->low);
}

/* The digits to the base 3, the first one being the upper, as a fraction of 256, rounded up. */
AK_SEARCH void put_digits(const uint8_t *q, int n_bytes, int n_digits, uint8_t *out)
{
    for (int i = 0; i < n_bytes; i++) {
        unsigned number = 0;
        for (int digit = 0; digit < 5; digit++)
            number = number * 3 + (digit < n_digits ? q[digit * n_bytes + i] : 0);
        out[i] = (uint8_t)((number * 256 + 242) / 243);
    }
}

AK_SEARCH void row_tq1_0(const float *x, const float *w, uint8_t *out, size_t n)
{
    uint8_t q[AK_QUANT_SUPER_BLOCK];
    for (size_t i = 0; i < n; i += 256, x += 256, w += 256, out += 54) {
        fit_numbers(x, w, 256, &levels_ternary, out + 52, q);
        put_digits(q, 32, 5, out);
        put_digits(q + 160, 16, 5, out + 32);
        put_digits(q + 240, 4, 4, out + 48);
    }
}

AK_SEARCH void row_tq2_0(const float *x, const float *w, uint8_t *out, size_t n)
{
    uint8_t q[AK_QUANT_SUPER_BLOCK];
    for (size_t i = 0; i < n; i += 256, x += 256, w += 256, out += 66) {
        fit_numbers(x, w, 256, &levels_ternary, out + 64, q);
        put_pairs_of_bits(q, 0, out);
    }
}

AK_SEARCH void row_q2_0(const float *x, const float *w, uint8_t *out, size_t n)
{
    uint8_t q[64];
    for (size_t i = 0; i < n; i += 64, x += 64, w += 64, out += 18) {
        fit_numbers(x, w, 64, &levels_q2_0, out, q);
        for (int j = 0; j < 16; j++)
            out[2 + j] =
                (uint8_t)(q[4 * j] | q[4 * j + 1] << 2 | q[4 * j + 2] << 4 | q[4 * j + 3] << 6);
    }
}

/* The best scale is the mean magnitude. */
AK_SEARCH void row_q1_0(const float *x, const float *w, uint8_t *out, size_t n)
{
    for (size_t i = 0; i < n; i += 128, x += 128, w += 128, out += 18) {
        float sum = 0.0f, all = 0.0f;
        memset(out + 2, 0, 16);
        for (int j = 0; j < 128; j++) {
            sum += w[j] * fabsf(x[j]);
            all += w[j];
            out[2 + j / 8] |= (uint8_t)((x[j] >= 0.0f) << j % 8);
        }
        ak_quant_put_f16(out, all > 0.0f ? sum / all : 0.0f);
    }
}

/* ---- 4-bit floats ------------------------------------------------------- */
static const struct ak_level_list list_e2m1 = {
    .levels = { -12.0f, -8.0f, -6.0f, -4.0f, -3.0f, -2.0f, -1.0f, 0.0f, 1.0f, 2.0f, 3.0f, 4.0f,
                6.0f, 8.0f, 12.0f, 12.0f },
    .root = 0.5f,
    .second = { -3.5f, 5.0f },
    .third = { -7.0f, -1.5f, 2.5f, 10.0f },
    .fourth = { -10.0f, -5.0f, -2.5f, -0.5f, 1.5f, 3.5f, 7.0f, INFINITY },
};
static const struct ak_levels levels_e2m1 = { -12.0f, 12.0f, 2.0f, &list_e2m1 };

/* The candidate of least error. */
AK_SEARCH int find_scale(const float *x, const float *w, int n, const float scales[AK_CANDIDATES])
{
    static const float no_minimums[AK_CANDIDATES];
    float errors[AK_CANDIDATES];
    ak_fit_errors(x, w, n, scales, no_minimums, &levels_e2m1, errors);
    int best = 0;
    for (int i = 1; i < AK_CANDIDATES; i++)
        if (errors[i] < errors[best])
            best = i;
    return best;
}

AK_SEARCH uint8_t encode_e2m1(float x, float inverse)
{
    static const uint8_t codes[15] = { 15, 14, 13, 12, 11, 10, 9, 0, 1, 2, 3, 4, 5, 6, 7 };
    return codes[ak_level_find(x * inverse, &list_e2m1)];
}

AK_SEARCH float find_largest(const float *x, int n)
{
    return fabsf(ak_quant_find_extreme(x, n));
}

/* Exponents with which the largest element is 1/8 to 2^12 of the largest level. */
AK_SEARCH void row_mxfp4(const float *x, const float *w, uint8_t *out, size_t n)
{
    uint8_t q[32];
    for (size_t i = 0; i < n; i += 32, x += 32, w += 32, out += 17) {
        int exponent, at;
        frexpf(find_largest(x, 32), &exponent);
        at = ak_super_clamp(exponent + 124 - 8, 0, 254 - 15);
        float scales[AK_CANDIDATES];
        for (int c = 0; c < AK_CANDIDATES; c++)
            scales[c] = ak_e8m0_half((uint8_t)(at + c));
        out[0] = (uint8_t)(at + find_scale(x, w, 32, scales));
        float inverse = ak_quant_inverse(ak_e8m0_half(out[0]));
        for (int j = 0; j < 32; j++)
            q[j] = encode_e2m1(x[j], inverse);
        put_nibbles(q, out + 1);
    }
}

/* Half of an E4M3 number without a sign. */
AK_SEARCH float get_half_e4m3(int bits)
{
    return 128.0f * ak_f16_to_float(ak_quant_e4m3_to_f16((uint8_t)bits));
}

/* The scale with which the largest element is the largest level, eight below it, seven above. */
AK_SEARCH void row_nvfp4(const float *x, const float *w, uint8_t *out, size_t n)
{
    for (size_t i = 0; i < n; i += 16, x += 16, w += 16) {
        uint8_t *block = out + i / 64 * 36, *numbers = block + 4 + i / 16 % 4 * 8;
        float spanning = find_largest(x, 16) / 12.0f;
        int low = 0, high = 126, first;
        while (low < high) { /* the first scale that spans the block, or the last one of all */
            int middle = (low + high) / 2;
            if (get_half_e4m3(middle) < spanning)
                low = middle + 1;
            else
                high = middle;
        }
        first = ak_super_clamp(low - 8, 0, 126 - 15);
        float scales[AK_CANDIDATES];
        for (int c = 0; c < AK_CANDIDATES; c++)
            scales[c] = get_half_e4m3(first + c);
        int scale = first + find_scale(x, w, 16, scales);
        float inverse = ak_quant_inverse(get_half_e4m3(scale));
        block[i / 16 % 4] = (uint8_t)scale;
        for (int j = 0; j < 8; j++)
            numbers[j] =
                (uint8_t)(encode_e2m1(x[j], inverse) | encode_e2m1(x[j + 8], inverse) << 4);
    }
}

#endif
