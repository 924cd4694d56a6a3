/* A model of AMX's tile unit in plain C, so that machines without AMX can test the kernels of
 * src/engine/cpu/amx: test_amx.c runs them built with it in place of
 * src/engine/cpu/amx/tile_unit.h. It follows the description of the instructions (Intel SDM, volume
 * 2). A shape that they reject ends the program. */
#ifndef AK_TESTS_ENGINE_CPU_AMX_TILE_UNIT_H
#define AK_TESTS_ENGINE_CPU_AMX_TILE_UNIT_H

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"

struct ak_amx_tile_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
};

/* Each thread has its own registers. */
static _Thread_local struct ak_amx_tile_config ak_amx_tile_shape;
static _Thread_local uint8_t ak_amx_tile_data[8][16][64];

static inline void ak_amx_tile_configure(const struct ak_amx_tile_config *config)
{
    ak_amx_tile_shape = *config;
    memset(ak_amx_tile_data, 0, sizeof ak_amx_tile_data);
}

static inline void ak_amx_tile_release(void)
{
    memset(&ak_amx_tile_shape, 0, sizeof ak_amx_tile_shape);
}

static inline void ak_amx_tile_zero(int t)
{
    memset(ak_amx_tile_data[t], 0, sizeof ak_amx_tile_data[t]);
}

static inline void ak_amx_tile_load(int t, const void *p, size_t stride)
{
    ak_amx_tile_zero(t);
    for (size_t i = 0; i < ak_amx_tile_shape.rows[t]; i++)
        memcpy(ak_amx_tile_data[t][i], (const uint8_t *)p + i * stride,
               ak_amx_tile_shape.row_bytes[t]);
}

static inline void ak_amx_tile_store(int t, void *p, size_t stride)
{
    for (size_t i = 0; i < ak_amx_tile_shape.rows[t]; i++)
        memcpy((uint8_t *)p + i * stride, ak_amx_tile_data[t][i], ak_amx_tile_shape.row_bytes[t]);
}

static inline void ak_amx_tile_check(int c, int a, int b)
{
    const struct ak_amx_tile_config *s = &ak_amx_tile_shape;
    if (s->palette != 1 || s->rows[c] != s->rows[a] || s->row_bytes[c] != s->row_bytes[b] ||
        s->row_bytes[a] != 4 * s->rows[b])
        abort();
}

static inline void ak_amx_tile_dot_bytes(int c, int a, int b, bool b_signed)
{
    ak_amx_tile_check(c, a, b);
    for (size_t m = 0; m < ak_amx_tile_shape.rows[c]; m++) {
        for (size_t n = 0; n < ak_amx_tile_shape.row_bytes[c] / 4u; n++) {
            int32_t sum;
            memcpy(&sum, &ak_amx_tile_data[c][m][4 * n], sizeof sum);
            for (size_t k = 0; k < ak_amx_tile_shape.row_bytes[a] / 4u; k++)
                for (size_t j = 0; j < 4; j++)
                    sum += (int8_t)ak_amx_tile_data[a][m][4 * k + j] *
                           (b_signed ? (int8_t)ak_amx_tile_data[b][k][4 * n + j] :
                                       (int32_t)ak_amx_tile_data[b][k][4 * n + j]);
            memcpy(&ak_amx_tile_data[c][m][4 * n], &sum, sizeof sum);
        }
    }
}

static inline void ak_amx_tile_dot(int c, int a, int b)
{
    ak_amx_tile_dot_bytes(c, a, b, false);
}

static inline void ak_amx_tile_dot_signed(int c, int a, int b)
{
    ak_amx_tile_dot_bytes(c, a, b, true);
}

/* Replaces subnormals by zeros of the same sign. */
static inline float ak_amx_tile_flush(float x)
{
    return fabsf(x) < FLT_MIN ? copysignf(0.0f, x) : x;
}

static inline float ak_amx_tile_bf16(int t, size_t row, size_t column)
{
    uint16_t half;
    memcpy(&half, &ak_amx_tile_data[t][row][2 * column], sizeof half);
    return ak_amx_tile_flush(ak_bf16_to_float(half));
}

/* "TDPBF16PS": the first and the second products of the pairs have separate sums, from 0 on, one
 * fma per step; these are added, then added to the accumulator. Every step is rounded to nearest,
 * ties to even, and subnormals are flushed to zero. */
static inline void ak_amx_tile_dot_bf16(int c, int a, int b)
{
    ak_amx_tile_check(c, a, b);
    for (size_t m = 0; m < ak_amx_tile_shape.rows[c]; m++) {
        for (size_t n = 0; n < ak_amx_tile_shape.row_bytes[c] / 4u; n++) {
            float sum, pair[2] = { 0.0f, 0.0f };
            memcpy(&sum, &ak_amx_tile_data[c][m][4 * n], sizeof sum);
            for (size_t k = 0; k < ak_amx_tile_shape.row_bytes[a] / 4u; k++)
                for (size_t j = 0; j < 2; j++)
                    pair[j] = ak_amx_tile_flush(fmaf(ak_amx_tile_bf16(a, m, 2 * k + j),
                                                     ak_amx_tile_bf16(b, k, 2 * n + j), pair[j]));
            sum = ak_amx_tile_flush(ak_amx_tile_flush(sum) + ak_amx_tile_flush(pair[0] + pair[1]));
            memcpy(&ak_amx_tile_data[c][m][4 * n], &sum, sizeof sum);
        }
    }
}

#endif
