/* Rows of each type: fits the blocks and packs their numbers. Compiled once per instruction
 * set. Layouts: files/quant/. */
#ifndef AK_CONVERSION_QUANTIZE_ROWS_H
#define AK_CONVERSION_QUANTIZE_ROWS_H

#include <string.h>

#include "conversion/quantize/super.h"

/* ---- Blocks with a scale ------------------------------------------------ */
static const struct ak_levels levels_q4_0 = { .low = -8.0f, .high = 7.0f, .step = 0.2f },
                              levels_q5_0 = { .low = -16.0f, .high = 15.0f, .step = 0.2f },
                              levels_q8_0 = { .low = -127.0f, .high = 127.0f, .step = 0.2f };

AK_SEARCH float fit_f16_scale(const float *x, const float *w, int n, const struct ak_levels *levels,
                              uint8_t d[2])
{
    ak_quant_put_f16(d, ak_fit_scale(x, w, n, levels));
    return ak_quant_inverse(ak_quant_get_f16(d));
}

/* The fifth bits of 32 numbers, after their nibbles: elements i and i + 16 share a byte. */
AK_SEARCH void put_nibbles(const uint8_t *q, uint8_t *out)
{
    for (int i = 0; i < 16; i++)
        out[i] = (uint8_t)((q[i] & 15) | (q[i + 16] & 15) << 4);
}

AK_SEARCH void put_fifth_bits(const uint8_t *q, uint8_t out[4])
{
    memset(out, 0, 4);
    for (int i = 0; i < 32; i++)
        out[i / 8] |= (uint8_t)((q[i] >> 4 & 1) << i % 8);
}

AK_SEARCH void row_q4_0(const float *x, const float *w, uint8_t *out, size_t n)
{
    uint8_t q[32];
    for (size_t i = 0; i < n; i += 32, x += 32, w += 32, out += 18) {
        float inverse = fit_f16_scale(x, w, 32, &levels_q4_0, out);
        for (int j = 0; j < 32; j++)
            q[j] = (uint8_t)(ak_level(x[j] * inverse, &levels_q4_0) + 8.0f);
        put_nibbles(q, out + 2);
    }
}

AK_SEARCH void row_q5_0(const float *x, const float *w, uint8_t *out, size_t n)
{
    uint8_t q[32];
    for (size_t i = 0; i < n; i += 32, x += 32, w += 32, out += 22) {
        float inverse = fit_f16_scale(x, w, 32, &levels_q5_0, out);
        for (int j = 0; j < 32; j++)
            q[j] = (uint8_t)(ak_level(x[j] * inverse, &levels_q5_0) + 16.0f);
        put_fifth_bits(q, out + 2);
        put_nibbles(q, out + 6);
    }
}

AK_SEARCH void row_q8_0(const float *x, const float *w, uint8_t *out, size_t n)
{
    for (size_t i = 0; i < n; i += 32, x += 32, w += 32, out += 34) {
        float inverse = fit_f16_scale(x, w, 32, &levels_q8_0, out);
        for (int j = 0; j < 32; j++)
            out[2 + j] = (uint8_t)(int8_t)ak_level(x[j] * inverse, &levels_q8_0);
    }
}

/* ---- Blocks with a scale and a minimum ---------------------------------- */
static const struct ak_levels levels_q4_1 = { .low = 0.0f, .high = 15.0f, .step = 0.15f },
                              levels_q5_1 = { .low = 0.0f, .high = 31.0f, .step = 0.15f };

AK_SEARCH void fit_f16_line(const float *x, const float *w, const struct ak_levels *levels,
                            uint8_t *out, uint8_t q[32])
{
    struct ak_fit_line line = ak_fit_line(x, w, 32, levels, INFINITY);
    ak_quant_put_f16(out, line.scale);
    ak_quant_put_f16(out + 2, line.minimum);
    float inverse = ak_quant_inverse(ak_quant_get_f16(out)), minimum = ak_quant_get_f16(out + 2);
    for (int j = 0; j < 32; j++)
        q[j] = (uint8_t)ak_level((x[j] - minimum) * inverse, levels);
}

AK_SEARCH void row_q4_1(const float *x, const float *w, uint8_t *out, size_t n)
{
    uint8_t q[32];
    for (size_t i = 0; i < n; i += 32, x += 32, w += 32, out += 20) {
        fit_f16_line(x, w, &levels_q4_1, out, q);
        put_nibbles(q, out + 4);
    }
}

AK_SEARCH void row_q5_1(const float *x, const float *w, uint8_t *out, size_t n)
{
    uint8_t q[32];
    for (size_t i = 0; i < n; i += 32, x += 32, w += 32, out += 24) {
        fit_f16_line(x, w, &levels_q5_1, out, q);
        put_fifth_bits(q, out + 4);
        put_nibbles(q, out + 8);
    }
}

/* ---- K types ------------------------------------------------------------ */
static const struct ak_super_shape shape_q2_k = { .group = 16,
                                                  .scale_high = 15,
                                                  .minimum_high = 15,
                                                  .rounds = 3,
                                                  .levels = { 0.0f, 3.0f, .step = 0.15f } },
                                   shape_q3_k = { .group = 16,
                                                  .scale_low = -32,
                                                  .scale_high = 31,
                                                  .rounds = 2,
                                                  .levels = { -4.0f, 3.0f, .step = 0.2f } },
                                   shape_q4_k = { .group = 32,
                                                  .scale_high = 63,
                                                  .minimum_high = 63,
                                                  .rounds = 3,
                                                  .levels = { 0.0f, 15.0f, .step = 0.15f } },
                                   shape_q5_k = { .group = 32,
                                                  .scale_high = 63,
                                                  .minimum_high = 63,
                                                  .rounds = 3,
                                                  .levels = { 0.0f, 31.0f, .step = 0.15f } },
                                   shape_q6_k = { .group = 16,
                                                  .scale_low = -128,
                                                  .scale_high = 127,
                                                  .rounds = 2,
                                                  .levels = { -32.0f, 31.0f, .step = 0.2f } };

/* Numbers of a super-block, shifted so that the least level is 0. */
AK_SEARCH void fit_super(const struct ak_super_shape *s, const float *x, const float *w,
                         struct ak_super *fitted, uint8_t q[AK_QUANT_SUPER_BLOCK])
{
    ak_super_fit(s, x, w, fitted);
    for (int i = 0; i < AK_QUANT_SUPER_BLOCK; i++)
        q[i] = (uint8_t)(ak_super_level(s, fitted, i / s->group, x[i]) - s->levels.low);
}

/* Two bits of each number: element 128·h + 32·s + i is at bit 2·s of byte 32·h + i. */
AK_SEARCH void put_pairs_of_bits(const uint8_t *q, int shift, uint8_t out[64])
{
    for (int i = 0; i < 64; i++) {
        const uint8_t *at = q + i / 32 * 128 + i % 32;
        out[i] = (uint8_t)((at[0] >> shift & 3) | (at[32] >> shift & 3) << 2 |
                           (at[64] >> shift & 3) << 4 | (at[96] >> shift & 3) << 6);
    }
}

AK_SEARCH void row_q2_k(const float *x, const float *w, uint8_t *out, size_t n)
{
    struct ak_super fitted;
    uint8_t q[AK_QUANT_SUPER_BLOCK];
    for (size_t i = 0; i < n; i += 256, x += 256, w += 256, out += 84) {
        fit_super(&shape_q2_k, x, w, &fitted, q);
        for (int g = 0; g < 16; g++)
            out[g] = (uint8_t)(fitted.scale[g] | fitted.minimum[g] << 4);
        put_pairs_of_bits(q, 0, out + 16);
        ak_quant_put_f16(out + 80, fitted.d);
        ak_quant_put_f16(out + 82, fitted.dmin);
    }
}

AK_SEARCH void row_q3_k(const float *x, const float *w, uint8_t *out, size_t n)
{
    struct ak_super fitted;
    uint8_t q[AK_QUANT_SUPER_BLOCK];
    for (size_t i = 0; i < n; i += 256, x += 256, w += 256, out += 110) {
        fit_super(&shape_q3_k, x, w, &fitted, q);
        memset(out, 0, 32);
        for (int j = 0; j < AK_QUANT_SUPER_BLOCK; j++)
            out[j % 32] |= (uint8_t)((q[j] >> 2) << j / 32);
        put_pairs_of_bits(q, 0, out + 32);
        memset(out + 96, 0, 12);
        for (int g = 0; g < 16; g++) {
            int scale = fitted.scale[g] + 32;
            out[96 + g % 8] |= (uint8_t)((scale & 15) << (g < 8 ? 0 : 4));
            out[104 + g % 4] |= (uint8_t)(scale >> 4 << g / 4 * 2);
        }
        ak_quant_put_f16(out + 108, fitted.d);
    }
}

/* As ak_quant_get_scale_min reads them. */
AK_SEARCH void put_scales_minimums(const struct ak_super *fitted, uint8_t out[12])
{
    for (int g = 0; g < 4; g++) {
        int scale = fitted->scale[g + 4], minimum = fitted->minimum[g + 4];
        out[g] = (uint8_t)(fitted->scale[g] | scale >> 4 << 6);
        out[g + 4] = (uint8_t)(fitted->minimum[g] | minimum >> 4 << 6);
        out[g + 8] = (uint8_t)((scale & 15) | (minimum & 15) << 4);
    }
}

/* Nibbles of pairs of 32 elements: those of the first are the low ones. */
AK_SEARCH void put_nibbles_32(const uint8_t *q, uint8_t *out)
{
    for (int i = 0; i < AK_QUANT_SUPER_BLOCK / 2; i++) {
        const uint8_t *at = q + i / 32 * 64 + i % 32;
        out[i] = (uint8_t)((at[0] & 15) | (at[32] & 15) << 4);
    }
}

AK_SEARCH void row_q4_k(const float *x, const float *w, uint8_t *out, size_t n)
{
    struct ak_super fitted;
    uint8_t q[AK_QUANT_SUPER_BLOCK];
    for (size_t i = 0; i < n; i += 256, x += 256, w += 256, out += 144) {
        fit_super(&shape_q4_k, x, w, &fitted, q);
        ak_quant_put_f16(out, fitted.d);
        ak_quant_put_f16(out + 2, fitted.dmin);
        put_scales_minimums(&fitted, out + 4);
        put_nibbles_32(q, out + 16);
    }
}

AK_SEARCH void row_q5_k(const float *x, const float *w, uint8_t *out, size_t n)
{
    struct ak_super fitted;
    uint8_t q[AK_QUANT_SUPER_BLOCK];
    for (size_t i = 0; i < n; i += 256, x += 256, w += 256, out += 176) {
        fit_super(&shape_q5_k, x, w, &fitted, q);
        ak_quant_put_f16(out, fitted.d);
        ak_quant_put_f16(out + 2, fitted.dmin);
        put_scales_minimums(&fitted, out + 4);
        memset(out + 16, 0, 32);
        for (int j = 0; j < AK_QUANT_SUPER_BLOCK; j++)
            out[16 + j % 32] |= (uint8_t)((q[j] >> 4) << j / 32);
        put_nibbles_32(q, out + 48);
    }
}

AK_SEARCH void row_q6_k(const float *x, const float *w, uint8_t *out, size_t n)
{
    struct ak_super fitted;
    uint8_t q[AK_QUANT_SUPER_BLOCK];
    for (size_t i = 0; i < n; i += 256, x += 256, w += 256, out += 210) {
        fit_super(&shape_q6_k, x, w, &fitted, q);
        for (int j = 0; j < 128; j++) {
            const uint8_t *at = q + j / 64 * 128 + j % 64;
            out[j] = (uint8_t)((at[0] & 15) | (at[64] & 15) << 4);
        }
        put_pairs_of_bits(q, 4, out + 128);
        for (int g = 0; g < 16; g++)
            out[192 + g] = (uint8_t)(int8_t)fitted.scale[g];
        ak_quant_put_f16(out + 208, fitted.d);
    }
}

/* ---- Codebooks of 16 numbers -------------------------------------------- */
static const struct ak_level_list list_iq4 = {
    .levels = { -127.0f, -104.0f, -83.0f, -65.0f, -49.0f, -35.0f, -22.0f, -10.0f, 1.0f, 13.0f,
                25.0f, 38.0f, 53.0f, 69.0f, 89.0f, 113.0f },
    .root = -4.5f,
    .second = { -57.0f, 45.5f },
    .third = { -93.5f, -28.5f, 19.0f, 79.0f },
    .fourth = { -115.5f, -74.0f, -42.0f, -16.0f, 7.0f, 31.5f, 61.0f, 101.0f },
};
static const struct ak_levels levels_iq4_nl = { -127.0f, 113.0f, 2.0f, &list_iq4 };
static const struct ak_super_shape shape_iq4_xs = { .group = 32,
                                                    .scale_low = -32,
                                                    .scale_high = 31,
                                                    .rounds = 1,
                                                    .levels = { -127.0f, 113.0f, 2.0f,
                                                                &list_iq4 } };

AK_SEARCH void row_iq4_nl(const float *x, const float *w, uint8_t *out, size_t n)
{
    uint8_t q[32];
    for (size_t i = 0; i < n; i += 32, x += 32, w += 32, out += 18) {
        float inverse = fit_f16_scale(x, w, 32, &levels_iq4_nl, out);
        for (int j = 0; j < 32; j++)
            q[j] = (uint8_t)ak_level_find(x[j] * inverse, &list_iq4);
        put_nibbles(q, out + 2);
    }
}

AK_SEARCH void row_iq4_xs(const float *x, const float *w, uint8_t *out, size_t n)
{
    struct ak_super fitted;
    uint8_t q[32];
    for (size_t i = 0; i < n; i += 256, x += 256, w += 256, out += 136) {
        ak_super_fit(&shape_iq4_xs, x, w, &fitted);
        ak_quant_put_f16(out, fitted.d);
        memset(out + 2, 0, 6);
        for (int g = 0; g < 8; g++) {
            int scale = fitted.scale[g] + 32;
            float inverse = ak_quant_inverse(fitted.d * (float)fitted.scale[g]);
            out[2 + g / 4] |= (uint8_t)(scale >> 4 << g % 4 * 2);
            out[4 + g / 2] |= (uint8_t)((scale & 15) << g % 2 * 4);
            for (int j = 0; j < 32; j++)
                q[j] = (uint8_t)ak_level_find(x[g * 32 + j] * inverse, &list_iq4);
            put_nibbles(q, out + 8 + g * 16);
        }
    }
}

#endif
