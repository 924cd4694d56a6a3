/* Packs output matrices of Q8_0 into slices. */
#include "engine/cpu/slices.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "files/quant/block.h"
#include "files/weights/composed.h"

enum { TILE_BLOCKS = AK_TILE_K / AK_BLOCK_K, STORED_BYTES = 34, HIGH_BYTES = 22 };

/* Bytes of a tile row's high slice, and of its low slice. */
static size_t high_bytes(size_t k)
{
    return ak_cpu_tile_row_bytes(AK_QUANT_Q5_0, k);
}

static size_t low_bytes(size_t k)
{
    return k / AK_BLOCK_K * AK_SLICES_LOW_BLOCK_BYTES;
}

static size_t group_bytes(size_t k)
{
    return AK_SLICES_TILES * (AK_LINE_BYTES + high_bytes(k) + low_bytes(k));
}

uint64_t ak_cpu_slices_bytes(uint32_t rows, size_t k)
{
    return ((uint64_t)rows + AK_SLICES_ROWS - 1) / AK_SLICES_ROWS * group_bytes(k);
}

struct ak_cpu_slices ak_cpu_get_slices(const uint8_t *packed, size_t k, size_t tile)
{
    const uint8_t *bounds = packed + tile / AK_SLICES_TILES * group_bytes(k),
                  *high = bounds + AK_SLICES_TILES * AK_LINE_BYTES,
                  *low = high + AK_SLICES_TILES * high_bytes(k);
    size_t i = tile % AK_SLICES_TILES;
    return (struct ak_cpu_slices){ (const float *)(const void *)(bounds + i * AK_LINE_BYTES),
                                   high + i * high_bytes(k), low + i * low_bytes(k) };
}

/* A stored block of Q8_0 as one of Q5_0: the scale, the fifth bits of h, their other bits. */
static void take_high(const uint8_t stored[STORED_BYTES], uint8_t high[HIGH_BYTES])
{
    memset(high, 0, HIGH_BYTES);
    memcpy(high, stored, 2);
    for (size_t i = 0; i < AK_BLOCK_K; i++) {
        unsigned h = (stored[2 + i] ^ 0x80u) >> 3;
        high[2 + i / 8] |= (uint8_t)(h >> 4 << i % 8);
        high[6 + i % 16] |= (uint8_t)((h & 15u) << (i < 16 ? 0 : 4));
    }
}

/* The low bits of a block of one row, into the block's three lines. */
static void take_low(const uint8_t stored[STORED_BYTES], size_t row, uint8_t *lines)
{
    for (size_t j = 0; j < 4; j++) {
        uint8_t *to = lines + row * 4 + j;
        to[0] = to[AK_LINE_BYTES] = to[2 * AK_LINE_BYTES] = 0;
        for (size_t i = 0; i < AK_BLOCK_K / 4; i++) {
            unsigned l = stored[2 + 4 * i + j] & 7u;
            to[i / 4 * AK_LINE_BYTES] |= (uint8_t)((l & 3u) << i % 4 * 2);
            to[2 * AK_LINE_BYTES] |= (uint8_t)(l >> 2 << i);
        }
    }
}

/* The largest sum of rounding errors of both products, relative to ‖w‖·‖x‖: each of n blocks
 * rounds its scale and its sum, in two terms of x. The norms of the terms add up to at most
 * 1.1·‖x‖. */
static double rounding(size_t n_blocks)
{
    return 1.1 * 2.0 * (2.0 * (double)n_blocks + 4.0) * 0x1p-24;
}

static float bound(const uint8_t *stored, size_t n_blocks)
{
    double low = 0.0, scales = 0.0, all = 0.0;
    for (size_t b = 0; b < n_blocks; b++, stored += STORED_BYTES) {
        double d = (double)ak_quant_get_f16(stored), centred = 0.0, squares = 0.0;
        for (size_t i = 0; i < AK_BLOCK_K; i++) {
            double l = (double)(stored[2 + i] & 7u) - 3.5, q = (double)(int8_t)stored[2 + i];
            centred += l * l;
            squares += q * q;
        }
        low += d * d * centred;
        scales += d * d;
        all += d * d * squares;
    }
    double x = sqrt(low) + rounding(n_blocks) * sqrt(all),
           s = 3.5 * sqrt(scales) / AK_SLICES_SUM_WEIGHT, max = x > s ? x : s;
    float out = (float)(max * (1.0 + 0x1p-20));
    return out <= 0x1p120f ? out : INFINITY;
}

/* Packs 16 stored rows; NULL is a row of zeros. */
static void pack_tile_row(const uint8_t *const rows[AK_TILE_ROWS], size_t k, uint8_t *bounds,
                          uint8_t *high, uint8_t *low)
{
    static const uint8_t zeros[TILE_BLOCKS * STORED_BYTES];
    size_t n_blocks = k / AK_BLOCK_K;
    for (size_t r = 0; r < AK_TILE_ROWS; r++) {
        float row_bound = rows[r] ? bound(rows[r], n_blocks) : 0.0f;
        memcpy(bounds + r * sizeof row_bound, &row_bound, sizeof row_bound);
    }
    for (size_t first = 0, n; first < n_blocks; first += n) {
        uint8_t blocks[AK_TILE_ROWS][TILE_BLOCKS * HIGH_BYTES];
        const void *high_rows[AK_TILE_ROWS];
        n = ak_min_size(n_blocks - first, TILE_BLOCKS);
        for (size_t r = 0; r < AK_TILE_ROWS; r++) {
            const uint8_t *stored = rows[r] ? rows[r] + first * STORED_BYTES : zeros;
            high_rows[r] = blocks[r];
            for (size_t b = 0; b < n; b++) {
                take_high(stored + b * STORED_BYTES, blocks[r] + b * HIGH_BYTES);
                take_low(stored + b * STORED_BYTES, r,
                         low + (first + b) * AK_SLICES_LOW_BLOCK_BYTES);
            }
        }
        ak_cpu_pack_tiles(AK_QUANT_Q5_0, high_rows, n * AK_BLOCK_K, high);
        high += ak_cpu_tile_bytes(AK_QUANT_Q5_0, n);
    }
}

/* Where a tile row goes. */
struct slice {
    size_t k;
    uint8_t *bounds, *highs, *lows;
};

static void pack_made(const void *const *rows, void *user)
{
    const struct slice *s = user;
    const uint8_t *at[AK_TILE_ROWS];
    for (int r = 0; r < AK_TILE_ROWS; r++)
        at[r] = rows[r];
    pack_tile_row(at, s->k, s->bounds, s->highs, s->lows);
}

static void pack_rows(const struct ak_view *view, uint32_t first, struct slice *s)
{
    const size_t row_bytes = s->k / AK_BLOCK_K * STORED_BYTES;
    const void *rows[AK_TILE_ROWS];
    uint32_t left = first < view->rows ? view->rows - first : 0;
    if (left > 0 && view->composed_tensor) {
        ak_composed_make_rows(view, first, left < AK_TILE_ROWS ? left : AK_TILE_ROWS, pack_made, s);
        return;
    }
    for (uint32_t r = 0; r < AK_TILE_ROWS; r++)
        rows[r] = r < left ? (const uint8_t *)view->plane[0].data + (first + r) * row_bytes : NULL;
    pack_made(rows, s);
}

void ak_cpu_pack_slices(const struct ak_view *view, uint32_t first, uint32_t n, uint8_t *packed)
{
    size_t k = view->cols;
    uint32_t n_tiles = (uint32_t)ak_round_up(n, AK_SLICES_ROWS) / AK_TILE_ROWS;
    for (uint32_t i = 0; i < n_tiles; i++) {
        uint8_t *group = packed + i / AK_SLICES_TILES * group_bytes(k),
                *highs = group + AK_SLICES_TILES * AK_LINE_BYTES,
                *lows = highs + AK_SLICES_TILES * high_bytes(k);
        size_t at = i % AK_SLICES_TILES;
        struct slice slice = { k, group + at * AK_LINE_BYTES, highs + at * high_bytes(k),
                               lows + at * low_bytes(k) };
        pack_rows(view, first + i * (uint32_t)AK_TILE_ROWS, &slice);
    }
}
