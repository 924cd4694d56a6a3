/* Roofline probes of the tile unit: four accumulators, so that no product waits for the one before
 * it. */
#include "engine/cpu/setter.h"
#include <tile_unit.h> /* of this folder, or the model of it in tests/engine/cpu/amx */

enum { SUMS = 4, WORDS = 16, ROW_BYTES = 64 };

static void start(void)
{
    struct ak_amx_tile_config config = { .palette = 1 };
    for (size_t i = 0; i < 8; i++) {
        config.rows[i] = WORDS;
        config.row_bytes[i] = ROW_BYTES;
    }
    ak_amx_tile_configure(&config);
    ak_amx_tile_zero(0);
    ak_amx_tile_zero(1);
    ak_amx_tile_zero(2);
    ak_amx_tile_zero(3);
    ak_amx_tile_zero(4);
    ak_amx_tile_zero(5);
}

static void keep_result(uint64_t *sink)
{
    uint64_t sum[WORDS * ROW_BYTES / sizeof(uint64_t)];
    ak_amx_tile_store(0, sum, ROW_BYTES);
    ak_amx_tile_release();
    *sink = sum[0];
}

static uint64_t probe_int8(size_t rounds, uint64_t *sink)
{
    start();
    for (size_t i = 0; i < rounds; i++) {
        ak_amx_tile_dot(0, 4, 5);
        ak_amx_tile_dot(1, 4, 5);
        ak_amx_tile_dot(2, 4, 5);
        ak_amx_tile_dot(3, 4, 5);
    }
    keep_result(sink);
    return (uint64_t)rounds * SUMS * 2 * WORDS * WORDS * ROW_BYTES;
}

static uint64_t probe_bf16(size_t rounds, uint64_t *sink)
{
    start();
    for (size_t i = 0; i < rounds; i++) {
        ak_amx_tile_dot_bf16(0, 4, 5);
        ak_amx_tile_dot_bf16(1, 4, 5);
        ak_amx_tile_dot_bf16(2, 4, 5);
        ak_amx_tile_dot_bf16(3, 4, 5);
    }
    keep_result(sink);
    return (uint64_t)rounds * SUMS * 2 * WORDS * WORDS * (ROW_BYTES / 2);
}

AK_SETTER(probe_int8)
{
    k->probe_int8 = probe_int8;
}

AK_SETTER(probe_bf16)
{
    k->probe_bf16 = probe_bf16;
}
