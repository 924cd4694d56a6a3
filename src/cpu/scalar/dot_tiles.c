/* Products of packed weights, one row and one token at a time.
 *
 * A row's sum starts at 0 and takes its blocks in ascending k. Block sums are
 * exact integers. For the types with blocks of 32:
 *
 *     acc = fma(d_w · d_a, Σ q_w·q_a, acc)
 *     acc = fma(m_w, d_a·Σq_a, acc)          where the type has a minimum
 *
 * For the K-types, whose activations have one scale per 256, the scales of the
 * sub-blocks are applied in integers:
 *
 *     acc = fma(d_w · d_a, Σ_j scale_j · Σ q_w·q_a, acc)
 *     acc = fma(−(dmin_w · d_a), Σ_j min_j · Σq_a, acc)      Q4_K
 */
#include <math.h>
#include <string.h>

#include "base/half.h"
#include "base/mem.h"
#include "cpu/scalar/scalar.h"

static float f16_at(const uint8_t *p)
{
    uint16_t h;
    memcpy(&h, p, sizeof h);
    return ak_f16_to_float(h);
}

static float block_q4_0(const uint8_t *w, const struct ak_act32 *a, float acc)
{
    int32_t sum = 0;
    for (size_t i = 0; i < 16; i++) {
        sum += ((w[2 + i] & 15) - 8) * a->q[i];
        sum += ((w[2 + i] >> 4) - 8) * a->q[16 + i];
    }
    return fmaf(f16_at(w) * a->scale, (float)sum, acc);
}

static float block_q4_1(const uint8_t *w, const struct ak_act32 *a, float acc)
{
    int32_t sum = 0;
    for (size_t i = 0; i < 16; i++) {
        sum += (w[4 + i] & 15) * a->q[i];
        sum += (w[4 + i] >> 4) * a->q[16 + i];
    }
    acc = fmaf(f16_at(w) * a->scale, (float)sum, acc);
    return fmaf(f16_at(w + 2), a->scaled_sum, acc);
}

static float block_q5_0(const uint8_t *w, const struct ak_act32 *a, float acc)
{
    int32_t sum = 0;
    for (size_t i = 0; i < 16; i++) {
        int low_bit = (w[2 + i / 8] >> (i % 8)) & 1, high_bit = (w[4 + i / 8] >> (i % 8)) & 1;
        sum += ((w[6 + i] & 15) + low_bit * 16 - 16) * a->q[i];
        sum += ((w[6 + i] >> 4) + high_bit * 16 - 16) * a->q[16 + i];
    }
    return fmaf(f16_at(w) * a->scale, (float)sum, acc);
}

static float block_q8_0(const uint8_t *w, const struct ak_act32 *a, float acc)
{
    int32_t sum = 0;
    for (size_t i = 0; i < 32; i++)
        sum += (int8_t)w[2 + i] * a->q[i];
    return fmaf(f16_at(w) * a->scale, (float)sum, acc);
}

static float block_q4_k(const uint8_t *w, const struct ak_act256 *a, float acc)
{
    static const uint8_t pair_order[8] = { 0, 2, 1, 3, 4, 6, 5, 7 };
    const uint8_t *packed = w + 4, *quants = w + 16;
    int32_t scaled = 0, minimum = 0;
    for (size_t j = 0; j < 8; j++) {
        int scale, min;
        if (j < 4) {
            scale = packed[j] & 63;
            min = packed[j + 4] & 63;
        } else {
            scale = (packed[j + 4] & 15) | ((packed[j - 4] >> 6) << 4);
            min = (packed[j + 4] >> 4) | ((packed[j] >> 6) << 4);
        }
        int32_t dot = 0;
        for (size_t i = 0; i < 32; i++)
            dot += ((quants[j / 2 * 32 + i] >> (j % 2 * 4)) & 15) * a->q[j * 32 + i];
        scaled += scale * dot;
        minimum += min * a->pair_sum32[pair_order[j]];
    }
    acc = fmaf(f16_at(w) * a->scale, (float)scaled, acc);
    return fmaf(-(f16_at(w + 2) * a->scale), (float)minimum, acc);
}

static float block_q6_k(const uint8_t *w, const struct ak_act256 *a, float acc)
{
    const uint8_t *low = w, *high = w + 128, *scales = w + 192;
    int32_t scaled = 0;
    for (size_t j = 0; j < 16; j++) {
        size_t half = j / 8, quarter = j % 8 / 2, first = j % 2 * 16;
        int32_t dot = 0;
        for (size_t i = first; i < first + 16; i++) {
            int l = (low[half * 64 + quarter % 2 * 32 + i] >> (quarter / 2 * 4)) & 15;
            int h = (high[half * 32 + i] >> (quarter * 2)) & 3;
            dot += ((l | h << 4) - 32) * a->q[half * 128 + quarter * 32 + i];
        }
        scaled += (int8_t)scales[j] * dot;
    }
    return fmaf(f16_at(w + 208) * a->scale, (float)scaled, acc);
}

typedef float block32_fn(const uint8_t *w, const struct ak_act32 *a, float acc);
typedef float block256_fn(const uint8_t *w, const struct ak_act256 *a, float acc);

/* Walks tiles, rows and tokens; a row is first gathered into its stored form. */
static void dot_tiles(enum ak_type type, block32_fn *block32, block256_fn *block256, const uint8_t *tiles, size_t n_tiles, size_t k,
                      const uint8_t *acts, size_t act_bytes, size_t n, float *y, size_t y_stride)
{
    const struct ak_type_info *info = ak_type_info(type);
    uint8_t stored[8 * 34];
    for (size_t i = 0; i < n_tiles; i++) {
        for (size_t t = 0; t < n; t++)
            memset(y + t * y_stride + i * AK_TILE_ROWS, 0, AK_TILE_ROWS * sizeof *y);
        for (size_t at = 0; at < k; at += AK_TILE_K) {
            size_t elems = ak_min_size(k - at, AK_TILE_K);
            for (size_t r = 0; r < AK_TILE_ROWS; r++) {
                ak_gather_row(type, tiles, elems / AK_BLOCK_K, r, stored);
                for (size_t t = 0; t < n; t++) {
                    const uint8_t *act = acts + t * act_bytes;
                    float acc = y[t * y_stride + i * AK_TILE_ROWS + r];
                    if (block256) {
                        acc = block256(stored, (const struct ak_act256 *)(const void *)act + at / AK_TILE_K, acc);
                    } else {
                        const struct ak_act32 *a = (const struct ak_act32 *)(const void *)act + at / AK_BLOCK_K;
                        for (size_t b = 0; b < elems / AK_BLOCK_K; b++)
                            acc = block32(stored + b * info->block_bytes, a + b, acc);
                    }
                    y[t * y_stride + i * AK_TILE_ROWS + r] = acc;
                }
            }
            tiles += ak_tile_bytes(type, elems / AK_BLOCK_K);
        }
    }
}

/* The scalar slab is the tiles themselves. */
static void open_slab(enum ak_type type, const uint8_t *tiles, size_t n_tiles, size_t k, uint8_t *slab)
{
    memcpy(slab, tiles, n_tiles * ak_tile_row_bytes(type, k));
}

void ak_scalar_dot_q4_0(const uint8_t *restrict tiles, size_t n_tiles, size_t k, const uint8_t *restrict acts, size_t act_bytes, size_t n,
                        float *restrict y, size_t y_stride)
{
    dot_tiles(AK_Q4_0, block_q4_0, NULL, tiles, n_tiles, k, acts, act_bytes, n, y, y_stride);
}

void ak_scalar_dot_q4_1(const uint8_t *restrict tiles, size_t n_tiles, size_t k, const uint8_t *restrict acts, size_t act_bytes, size_t n,
                        float *restrict y, size_t y_stride)
{
    dot_tiles(AK_Q4_1, block_q4_1, NULL, tiles, n_tiles, k, acts, act_bytes, n, y, y_stride);
}

void ak_scalar_dot_q5_0(const uint8_t *restrict tiles, size_t n_tiles, size_t k, const uint8_t *restrict acts, size_t act_bytes, size_t n,
                        float *restrict y, size_t y_stride)
{
    dot_tiles(AK_Q5_0, block_q5_0, NULL, tiles, n_tiles, k, acts, act_bytes, n, y, y_stride);
}

void ak_scalar_dot_q8_0(const uint8_t *restrict tiles, size_t n_tiles, size_t k, const uint8_t *restrict acts, size_t act_bytes, size_t n,
                        float *restrict y, size_t y_stride)
{
    dot_tiles(AK_Q8_0, block_q8_0, NULL, tiles, n_tiles, k, acts, act_bytes, n, y, y_stride);
}

void ak_scalar_dot_q4_k(const uint8_t *restrict tiles, size_t n_tiles, size_t k, const uint8_t *restrict acts, size_t act_bytes, size_t n,
                        float *restrict y, size_t y_stride)
{
    dot_tiles(AK_Q4_K, NULL, block_q4_k, tiles, n_tiles, k, acts, act_bytes, n, y, y_stride);
}

void ak_scalar_dot_q6_k(const uint8_t *restrict tiles, size_t n_tiles, size_t k, const uint8_t *restrict acts, size_t act_bytes, size_t n,
                        float *restrict y, size_t y_stride)
{
    dot_tiles(AK_Q6_K, NULL, block_q6_k, tiles, n_tiles, k, acts, act_bytes, n, y, y_stride);
}

void ak_scalar_open_q4_0(const uint8_t *restrict tiles, size_t n_tiles, size_t k, uint8_t *restrict slab)
{
    open_slab(AK_Q4_0, tiles, n_tiles, k, slab);
}

void ak_scalar_open_q4_1(const uint8_t *restrict tiles, size_t n_tiles, size_t k, uint8_t *restrict slab)
{
    open_slab(AK_Q4_1, tiles, n_tiles, k, slab);
}

void ak_scalar_open_q5_0(const uint8_t *restrict tiles, size_t n_tiles, size_t k, uint8_t *restrict slab)
{
    open_slab(AK_Q5_0, tiles, n_tiles, k, slab);
}

void ak_scalar_open_q8_0(const uint8_t *restrict tiles, size_t n_tiles, size_t k, uint8_t *restrict slab)
{
    open_slab(AK_Q8_0, tiles, n_tiles, k, slab);
}

void ak_scalar_open_q4_k(const uint8_t *restrict tiles, size_t n_tiles, size_t k, uint8_t *restrict slab)
{
    open_slab(AK_Q4_K, tiles, n_tiles, k, slab);
}

void ak_scalar_open_q6_k(const uint8_t *restrict tiles, size_t n_tiles, size_t k, uint8_t *restrict slab)
{
    open_slab(AK_Q6_K, tiles, n_tiles, k, slab);
}
