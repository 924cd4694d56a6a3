/* Rows of the types with codebooks of vectors: IQ1, IQ2 and IQ3. Compiled once per instruction
 * set. Layouts: files/quant/vector.c. */
#ifndef AK_CONVERSION_QUANTIZE_GRID_ROWS_H
#define AK_CONVERSION_QUANTIZE_GRID_ROWS_H

#include <string.h>

#include "conversion/quantize/grid.h"

/* IQ1: ternary numbers and a shift. IQ2 and IQ3: magnitudes, and signs. */
#define IQ1_NUMBERS                                                                                \
    .n_dims = 8, .bits = 2, .numbers = { -1.0f, 0.0f, 1.0f }, .first = -1.0f, .spacing = 1.0f,     \
    .n_scales = 8, .unit = 1.0f, .reach = 1.2f
#define IQ2_NUMBERS                                                                                \
    .n_dims = 8, .bits = 2, .numbers = { 8.0f, 25.0f, 43.0f }, .first = 8.0f, .spacing = 17.5f,    \
    .n_scales = 16, .unit = 0.125f, .reach = 2.0f
#define IQ3_SCALES .n_dims = 4, .bits = 3, .group = 32, .n_scales = 16, .reach = 2.5f

static const struct ak_grid_shape
    shape_iq1_s = { IQ1_NUMBERS, .group = 32, .shift = AK_GRID_SHIFT_GROUP },
    shape_iq1_m = { IQ1_NUMBERS, .group = 16, .shift = AK_GRID_SHIFT_VECTOR },
    shape_iq2_xxs = { IQ2_NUMBERS, .group = 32, .is_even = true },
    shape_iq2_xs = { IQ2_NUMBERS, .group = 16, .is_even = true },
    shape_iq2_s = { IQ2_NUMBERS, .group = 16 },
    shape_iq3_xxs = { IQ3_SCALES,
                      .numbers = { 4.0f, 12.0f, 20.0f, 28.0f, 36.0f, 44.0f, 52.0f, 62.0f },
                      .first = 4.0f,
                      .spacing = 8.0f,
                      .unit = 0.25f,
                      .is_even = true },
    shape_iq3_s = { IQ3_SCALES, .numbers = { 1.0f, 3.0f, 5.0f, 7.0f, 9.0f, 11.0f, 13.0f, 15.0f },
                    .first = 1.0f, .spacing = 2.0f, .unit = 1.0f };
#undef IQ1_NUMBERS
#undef IQ2_NUMBERS
#undef IQ3_SCALES

/* ---- IQ1 ---------------------------------------------------------------- */
AK_SEARCH void row_iq1_s(const struct ak_near *near, const float *x, const float *w, uint8_t *out,
                         size_t n)
{
    struct ak_grid grid;
    for (size_t i = 0; i < n; i += 256, x += 256, w += 256, out += 50) {
        ak_grid_fit(&shape_iq1_s, near, x, w, &grid);
        ak_quant_put_f16(out, grid.d);
        for (int g = 0; g < 8; g++) {
            unsigned word = (unsigned)grid.scale[g] << 12 | (unsigned)grid.is_down[g * 4] << 15;
            for (int v = 0; v < 4; v++) {
                out[2 + g * 4 + v] = (uint8_t)grid.code[g * 4 + v];
                word |= (unsigned)grid.code[g * 4 + v] >> 8 << 3 * v;
            }
            out[34 + g * 2] = (uint8_t)word;
            out[35 + g * 2] = (uint8_t)(word >> 8);
        }
    }
}

AK_SEARCH void row_iq1_m(const struct ak_near *near, const float *x, const float *w, uint8_t *out,
                         size_t n)
{
    struct ak_grid grid;
    for (size_t i = 0; i < n; i += 256, x += 256, w += 256, out += 56) {
        ak_grid_fit(&shape_iq1_m, near, x, w, &grid);
        memset(out + 32, 0, 24);
        for (int v = 0; v < 32; v++) {
            unsigned high = (unsigned)grid.code[v] >> 8 | (unsigned)grid.is_down[v] << 3;
            out[v] = (uint8_t)grid.code[v];
            out[32 + v / 2] |= (uint8_t)(high << v % 2 * 4);
        }
        for (int word = 0; word < 4; word++) {
            unsigned bits = (unsigned)(ak_float_to_f16(grid.d) >> 4 * word & 15) << 12;
            for (int g = 0; g < 4; g++)
                bits |= (unsigned)grid.scale[word * 4 + g] << 3 * g;
            out[48 + word * 2] = (uint8_t)bits;
            out[49 + word * 2] = (uint8_t)(bits >> 8);
        }
    }
}

/* ---- IQ2 ---------------------------------------------------------------- */
/* Four times seven signs and a scale. */
AK_SEARCH void put_signs_scale(const uint8_t signs[4], int scale, uint8_t out[4])
{
    uint32_t word = (uint32_t)scale << 28;
    for (int i = 0; i < 4; i++)
        word |= (uint32_t)(signs[i] & 127) << 7 * i;
    for (int i = 0; i < 4; i++)
        out[i] = (uint8_t)(word >> 8 * i);
}

AK_SEARCH void put_scale_nibbles(const int *scales, int n, uint8_t *out)
{
    for (int i = 0; i < n; i += 2)
        out[i / 2] = (uint8_t)(scales[i] | scales[i + 1] << 4);
}

AK_SEARCH void row_iq2_xxs(const struct ak_near *near, const float *x, const float *w, uint8_t *out,
                           size_t n)
{
    struct ak_grid grid;
    for (size_t i = 0; i < n; i += 256, x += 256, w += 256, out += 66) {
        ak_grid_fit(&shape_iq2_xxs, near, x, w, &grid);
        ak_quant_put_f16(out, grid.d);
        for (int g = 0; g < 8; g++) {
            for (int v = 0; v < 4; v++)
                out[2 + g * 8 + v] = (uint8_t)grid.code[g * 4 + v];
            put_signs_scale(grid.signs + g * 4, grid.scale[g], out + 6 + g * 8);
        }
    }
}

AK_SEARCH void row_iq2_xs(const struct ak_near *near, const float *x, const float *w, uint8_t *out,
                          size_t n)
{
    struct ak_grid grid;
    for (size_t i = 0; i < n; i += 256, x += 256, w += 256, out += 74) {
        ak_grid_fit(&shape_iq2_xs, near, x, w, &grid);
        ak_quant_put_f16(out, grid.d);
        for (int v = 0; v < 32; v++) {
            out[2 + v * 2] = (uint8_t)grid.code[v];
            out[3 + v * 2] = (uint8_t)(grid.code[v] >> 8 | (grid.signs[v] & 127) << 1);
        }
        put_scale_nibbles(grid.scale, 16, out + 66);
    }
}

AK_SEARCH void row_iq2_s(const struct ak_near *near, const float *x, const float *w, uint8_t *out,
                         size_t n)
{
    struct ak_grid grid;
    for (size_t i = 0; i < n; i += 256, x += 256, w += 256, out += 82) {
        ak_grid_fit(&shape_iq2_s, near, x, w, &grid);
        ak_quant_put_f16(out, grid.d);
        memset(out + 66, 0, 8);
        for (int v = 0; v < 32; v++) {
            out[2 + v] = (uint8_t)grid.code[v];
            out[34 + v] = grid.signs[v];
            out[66 + v / 4] |= (uint8_t)(grid.code[v] >> 8 << v % 4 * 2);
        }
        put_scale_nibbles(grid.scale, 16, out + 74);
    }
}

/* ---- IQ3 ---------------------------------------------------------------- */
AK_SEARCH void row_iq3_xxs(const struct ak_near *near, const float *x, const float *w, uint8_t *out,
                           size_t n)
{
    struct ak_grid grid;
    for (size_t i = 0; i < n; i += 256, x += 256, w += 256, out += 98) {
        ak_grid_fit(&shape_iq3_xxs, near, x, w, &grid);
        ak_quant_put_f16(out, grid.d);
        for (int v = 0; v < 64; v++)
            out[2 + v] = (uint8_t)grid.code[v];
        for (int g = 0; g < 8; g++)
            put_signs_scale(grid.signs + g * 4, grid.scale[g], out + 66 + g * 4);
    }
}

AK_SEARCH void row_iq3_s(const struct ak_near *near, const float *x, const float *w, uint8_t *out,
                         size_t n)
{
    struct ak_grid grid;
    for (size_t i = 0; i < n; i += 256, x += 256, w += 256, out += 110) {
        ak_grid_fit(&shape_iq3_s, near, x, w, &grid);
        ak_quant_put_f16(out, grid.d);
        memset(out + 66, 0, 8);
        for (int v = 0; v < 64; v++) {
            out[2 + v] = (uint8_t)grid.code[v];
            out[66 + v / 8] |= (uint8_t)(grid.code[v] >> 8 << v % 8);
        }
        memcpy(out + 74, grid.signs, 32);
        put_scale_nibbles(grid.scale, 8, out + 106);
    }
}

#endif
