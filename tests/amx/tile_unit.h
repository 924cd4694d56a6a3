/* A model of the tile unit in plain C, in place of src/cpu/amx/tile_unit.h: what the
 * instructions do, for machines that do not have them. */
#ifndef TESTS_AMX_TILE_UNIT_H
#define TESTS_AMX_TILE_UNIT_H

#include <stdint.h>
#include <string.h>

struct ak_tile_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
};

static struct ak_tile_config ak_tile_shape;
static uint8_t ak_tile_data[8][16][64];

static inline void ak_tile_configure(const struct ak_tile_config *config)
{
    ak_tile_shape = *config;
    memset(ak_tile_data, 0, sizeof ak_tile_data);
}

static inline void ak_tile_release(void)
{
    memset(&ak_tile_shape, 0, sizeof ak_tile_shape);
}

static inline void ak_tile_zero(int t)
{
    memset(ak_tile_data[t], 0, sizeof ak_tile_data[t]);
}

static inline void ak_tile_load(int t, const void *p, size_t stride)
{
    ak_tile_zero(t);
    for (size_t i = 0; i < ak_tile_shape.rows[t]; i++)
        memcpy(ak_tile_data[t][i], (const uint8_t *)p + i * stride, ak_tile_shape.row_bytes[t]);
}

static inline void ak_tile_store(int t, void *p, size_t stride)
{
    for (size_t i = 0; i < ak_tile_shape.rows[t]; i++)
        memcpy((uint8_t *)p + i * stride, ak_tile_data[t][i], ak_tile_shape.row_bytes[t]);
}

static inline void ak_tile_dot(int c, int a, int b)
{
    for (size_t m = 0; m < ak_tile_shape.rows[c]; m++) {
        for (size_t n = 0; n < ak_tile_shape.row_bytes[c] / 4u; n++) {
            int32_t sum;
            memcpy(&sum, &ak_tile_data[c][m][4 * n], sizeof sum);
            for (size_t k = 0; k < ak_tile_shape.row_bytes[a] / 4u; k++)
                for (size_t j = 0; j < 4; j++)
                    sum += (int8_t)ak_tile_data[a][m][4 * k + j] * (int32_t)ak_tile_data[b][k][4 * n + j];
            memcpy(&ak_tile_data[c][m][4 * n], &sum, sizeof sum);
        }
    }
}

#endif
