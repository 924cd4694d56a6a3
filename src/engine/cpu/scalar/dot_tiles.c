/* Products of packed weights, one row and one token at a time: the definition of their results.
 *
 * A row's sum starts at 0 and adds its blocks in ascending k. Block sums are exact integers. For
 * types with blocks of 32:
 *
 *     acc = fma(d_w · d_a, Σ q_w·q_a, acc)
 *     acc = fma(m_w, d_a·Σq_a, acc)          if the type has a minimum
 *
 * K-types have activations with one scale per 256, and the scales of sub-blocks are applied in
 * integers:
 *
 *     acc = fma(d_w · d_a, Σ_j scale_j · Σ q_w·q_a, acc)
 *     acc = fma(−(dmin_w · d_a), Σ_j min_j · Σq_a, acc)      Q2_K, Q4_K, Q5_K
 *
 * In V3 and V4, d_w is d times the factor of the table, and q_w the table's number.
 *
 * Integers never overflow, in any order of addition: a number times an activation is at most
 * 128 · 127, its scale at most 128 (Q6_K), so the sum of 256 is below 2^29. Kernels that multiply
 * unsigned numbers (at most 255, scale 63) and subtract the offset separately stay below 2^30 in
 * both. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "engine/cpu/slices.h"
#include "engine/cpu/setter.h"
#include "files/quant/block.h"

static int nibble(const uint8_t *quants, size_t i)
{
    return i < 16 ? quants[i] & 15 : quants[i - 16] >> 4;
}

/* Σ of 32 products of the values that 4-bit quants stand for. */
static int32_t dot_values(const int8_t values[16], const uint8_t *quants, const int8_t *a)
{
    int32_t sum = 0;
    for (size_t i = 0; i < 32; i++)
        sum += values[nibble(quants, i)] * a[i];
    return sum;
}

static float block_q4_0(const uint8_t *w, const struct ak_cpu_act32 *a, float acc)
{
    int32_t sum = 0;
    for (size_t i = 0; i < 32; i++)
        sum += (nibble(w + 2, i) - 8) * a->q[i];
    return fmaf(ak_quant_get_f16(w) * a->scale, (float)sum, acc);
}

static float block_q4_1(const uint8_t *w, const struct ak_cpu_act32 *a, float acc)
{
    int32_t sum = 0;
    for (size_t i = 0; i < 32; i++)
        sum += nibble(w + 4, i) * a->q[i];
    acc = fmaf(ak_quant_get_f16(w) * a->scale, (float)sum, acc);
    return fmaf(ak_quant_get_f16(w + 2), a->scaled_sum, acc);
}

static float block_q5_0(const uint8_t *w, const struct ak_cpu_act32 *a, float acc)
{
    int32_t sum = 0;
    for (size_t i = 0; i < 32; i++)
        sum += ((nibble(w + 6, i) | ak_quant_fifth_bit(w + 2, (int)i)) - 16) * a->q[i];
    return fmaf(ak_quant_get_f16(w) * a->scale, (float)sum, acc);
}

static float block_q5_1(const uint8_t *w, const struct ak_cpu_act32 *a, float acc)
{
    int32_t sum = 0;
    for (size_t i = 0; i < 32; i++)
        sum += (nibble(w + 8, i) | ak_quant_fifth_bit(w + 4, (int)i)) * a->q[i];
    acc = fmaf(ak_quant_get_f16(w) * a->scale, (float)sum, acc);
    return fmaf(ak_quant_get_f16(w + 2), a->scaled_sum, acc);
}

static float block_q8_0(const uint8_t *w, const struct ak_cpu_act32 *a, float acc)
{
    int32_t sum = 0;
    for (size_t i = 0; i < 32; i++)
        sum += (int8_t)w[2 + i] * a->q[i];
    return fmaf(ak_quant_get_f16(w) * a->scale, (float)sum, acc);
}

static float block_a4(const uint8_t *w, const struct ak_cpu_act32 *a, float acc)
{
    int32_t sum = 0;
    for (size_t i = 0; i < 32; i++)
        sum += nibble(w + 4, i) * a->q[i];
    acc = fmaf(ak_quant_get_bf16(w) * a->scale, (float)sum, acc);
    return fmaf(ak_quant_get_bf16(w + 2), a->scaled_sum, acc);
}

static float block_a5(const uint8_t *w, const struct ak_cpu_act32 *a, float acc)
{
    int32_t sum = 0;
    for (size_t i = 0; i < 32; i++)
        sum += (nibble(w + 8, i) | ak_quant_fifth_bit(w + 4, (int)i)) * a->q[i];
    acc = fmaf(ak_quant_get_bf16(w) * a->scale, (float)sum, acc);
    return fmaf(ak_quant_get_bf16(w + 2), a->scaled_sum, acc);
}

static float block_a8(const uint8_t *w, const struct ak_cpu_act32 *a, float acc)
{
    struct ak_quant_block_a8 b;
    int32_t sum = 0;
    memcpy(&b, w, sizeof b);
    for (size_t i = 0; i < 32; i++)
        sum += b.q[i] * a->q[i];
    acc = fmaf(b.d * a->scale, (float)sum, acc);
    return fmaf(b.m, a->scaled_sum, acc);
}

static float block_iq4_nl(const uint8_t *w, const struct ak_cpu_act32 *a, float acc)
{
    return fmaf(ak_quant_get_f16(w) * a->scale, (float)dot_values(ak_quant_iq4_values, w + 2, a->q),
                acc);
}

static float block_mxfp4(const uint8_t *w, const struct ak_cpu_act32 *a, float acc)
{
    return fmaf(ak_e8m0_half(w[0]) * a->scale,
                (float)dot_values(ak_quant_mxfp4_values, w + 1, a->q), acc);
}

static float block_v2(const uint8_t *w, const struct ak_cpu_act32 *a, float acc)
{
    int32_t sum = 0;
    for (size_t i = 0; i < 32; i++)
        sum += ak_quant_get_v2(w + 2, i) * a->q[i];
    return fmaf(ak_quant_get_f16(w) * a->scale, (float)sum, acc);
}

static int32_t sum16(const struct ak_cpu_act256 *a, size_t j)
{
    return a->minus32_sum16[j] / -32;
}

/* Σ of 16 products of 2-bit numbers at bit `shift`. */
static int32_t dot_two_bits(const uint8_t *quants, size_t shift, const int8_t *a)
{
    int32_t sum = 0;
    for (size_t i = 0; i < 16; i++)
        sum += (quants[i] >> shift & 3) * a[i];
    return sum;
}

static float block_q2_k(const uint8_t *w, const struct ak_cpu_act256 *a, float acc)
{
    int32_t scaled = 0, minimum = 0;
    for (size_t j = 0; j < 16; j++) {
        const uint8_t *quants = w + 16 + j / 8 * 32 + j % 2 * 16;
        scaled += (w[j] & 15) * dot_two_bits(quants, j % 8 / 2 * 2, a->q + j * 16);
        minimum += (w[j] >> 4) * sum16(a, j);
    }
    acc = fmaf(ak_quant_get_f16(w + 80) * a->scale, (float)scaled, acc);
    return fmaf(-(ak_quant_get_f16(w + 82) * a->scale), (float)minimum, acc);
}

static float block_q3_k(const uint8_t *w, const struct ak_cpu_act256 *a, float acc)
{
    const uint8_t *scales = w + 96;
    int32_t scaled = 0;
    for (size_t j = 0; j < 16; j++) {
        int scale = (scales[j % 8] >> j / 8 * 4 & 15) | (scales[8 + j % 4] >> j / 4 * 2 & 3) << 4;
        const uint8_t *low = w + 32 + j / 8 * 32 + j % 2 * 16, *high = w + j % 2 * 16;
        int32_t dot = dot_two_bits(low, j % 8 / 2 * 2, a->q + j * 16) - 4 * sum16(a, j);
        for (size_t i = 0; i < 16; i++)
            dot += (high[i] >> j / 2 & 1) * 4 * a->q[j * 16 + i];
        scaled += (scale - 32) * dot;
    }
    return fmaf(ak_quant_get_f16(w + 108) * a->scale, (float)scaled, acc);
}

/* Q4_K; Q5_K if `high`, its fifth bits, is given. */
static float block_q45_k(const uint8_t *w, const uint8_t *high, const uint8_t *quants,
                         const struct ak_cpu_act256 *a, float acc)
{
    int32_t scaled = 0, minimum = 0;
    for (size_t j = 0; j < 8; j++) {
        int scale, min;
        int32_t dot = 0;
        ak_quant_get_scale_min(w + 4, (int)j, &scale, &min);
        for (size_t i = 0; i < 32; i++) {
            int q = quants[j / 2 * 32 + i] >> (j % 2 * 4) & 15;
            if (high)
                q |= (high[i] >> j & 1) << 4;
            dot += q * a->q[j * 32 + i];
        }
        scaled += scale * dot;
        minimum += min * (sum16(a, 2 * j) + sum16(a, 2 * j + 1));
    }
    acc = fmaf(ak_quant_get_f16(w) * a->scale, (float)scaled, acc);
    return fmaf(-(ak_quant_get_f16(w + 2) * a->scale), (float)minimum, acc);
}

static float block_q4_k(const uint8_t *w, const struct ak_cpu_act256 *a, float acc)
{
    return block_q45_k(w, NULL, w + 16, a, acc);
}

static float block_q5_k(const uint8_t *w, const struct ak_cpu_act256 *a, float acc)
{
    return block_q45_k(w, w + 16, w + 48, a, acc);
}

static float block_q6_k(const uint8_t *w, const struct ak_cpu_act256 *a, float acc)
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
    return fmaf(ak_quant_get_f16(w + 208) * a->scale, (float)scaled, acc);
}

static float block_iq4_xs(const uint8_t *w, const struct ak_cpu_act256 *a, float acc)
{
    int32_t scaled = 0;
    for (size_t j = 0; j < 8; j++) {
        int scale = (w[4 + j / 2] >> j % 2 * 4 & 15) | (w[2 + j / 4] >> j % 4 * 2 & 3) << 4;
        scaled += (scale - 32) * dot_values(ak_quant_iq4_values, w + 8 + j * 16, a->q + j * 32);
    }
    return fmaf(ak_quant_get_f16(w) * a->scale, (float)scaled, acc);
}

/* One number of V3. */
static int value_v3(const struct ak_quant_block_v3 *w, const struct ak_quant_table *table, size_t i)
{
    unsigned low = w->low[i / 128 * 32 + i % 32] >> i / 32 % 4 * 2 & 3u;
    return table->values[low | (w->high[i % 32] >> i / 32 & 1u) << 2];
}

static float block_v3(const uint8_t *stored, const struct ak_cpu_act256 *a, float acc)
{
    const struct ak_quant_block_v3 *w = (const void *)stored;
    struct ak_quant_table table;
    int32_t scaled = 0;
    memcpy(&table, w->table, sizeof table);
    for (size_t j = 0; j < 16; j++) {
        int32_t dot = 0;
        for (size_t i = j * 16; i < j * 16 + 16; i++)
            dot += value_v3(w, &table, i) * a->q[i];
        scaled += (int32_t)(2 * ak_quant_nibble_scale(w->scales, j) + 1) * dot;
    }
    return fmaf(ak_quant_get_f16(w->d) * table.factor * a->scale, (float)scaled, acc);
}

static float block_v4(const uint8_t *stored, const struct ak_cpu_act256 *a, float acc)
{
    const struct ak_quant_block_v4 *w = (const void *)stored;
    struct ak_quant_table table;
    int32_t scaled = 0;
    memcpy(&table, w->table, sizeof table);
    for (size_t j = 0; j < 8; j++)
        scaled += (int32_t)(2 * ak_quant_nibble_scale(w->scales, j) + 1) *
                  dot_values(table.values, w->q + j * 16, a->q + j * 32);
    return fmaf(ak_quant_get_f16(w->d) * table.factor * a->scale, (float)scaled, acc);
}

typedef float block32_fn(const uint8_t *w, const struct ak_cpu_act32 *a, float acc);
typedef float block256_fn(const uint8_t *w, const struct ak_cpu_act256 *a, float acc);

/* Adds the products of a tile of `elems` columns to y; each row is first gathered into blocks. */
static void add_tile(enum ak_quant_type type, block32_fn *block32, block256_fn *block256,
                     const uint8_t *tile, size_t elems, const uint8_t *activations,
                     size_t act_bytes, size_t n, float *y, size_t y_stride)
{
    const struct ak_quant_info *info = ak_quant_info(type);
    uint8_t stored[8 * 40];
    for (size_t r = 0; r < AK_TILE_ROWS; r++) {
        ak_cpu_gather_row(type, tile, elems / AK_BLOCK_K, r, stored);
        for (size_t t = 0; t < n; t++) {
            const void *act = activations + t * act_bytes;
            const struct ak_cpu_act32 *a = act;
            float *acc = y + t * y_stride + r;
            if (block256)
                *acc = block256(stored, act, *acc);
            for (size_t b = 0; !block256 && b < elems / AK_BLOCK_K; b++)
                *acc = block32(stored + b * info->block_bytes, a + b, *acc);
        }
    }
}

static void zero_rows(float *y, size_t y_stride, size_t n)
{
    for (size_t t = 0; t < n; t++)
        memset(y + t * y_stride, 0, AK_TILE_ROWS * sizeof *y);
}

/* Activations from column k on. */
static const uint8_t *act_from(const uint8_t *activations, size_t k, bool is_256)
{
    return activations + (is_256 ? k / AK_TILE_K * sizeof(struct ak_cpu_act256) :
                                   k / AK_BLOCK_K * sizeof(struct ak_cpu_act32));
}

static void dot_tiles(enum ak_quant_type type, block32_fn *block32, block256_fn *block256,
                      const uint8_t *tiles, size_t n_tiles, size_t k, const uint8_t *activations,
                      size_t act_bytes, size_t n, float *y, size_t y_stride)
{
    for (size_t i = 0; i < n_tiles; i++, y += AK_TILE_ROWS) {
        zero_rows(y, y_stride, n);
        for (size_t at = 0, elems; at < k; at += elems) {
            elems = ak_min_size(k - at, AK_TILE_K);
            add_tile(type, block32, block256, tiles, elems, act_from(activations, at, block256),
                     act_bytes, n, y, y_stride);
            tiles += ak_cpu_tile_bytes(type, elems / AK_BLOCK_K);
        }
    }
}

/* The kernels of each type; a scalar panel is a copy of the tiles. */
#define KERNELS(dot, unpack, type, block32, block256)                                              \
    static void dot##_panel(const uint8_t *restrict tiles, size_t n_tiles, size_t k,               \
                            const uint8_t *restrict activations, size_t act_bytes, size_t n,       \
                            float *restrict y, size_t y_stride)                                    \
    {                                                                                              \
        dot_tiles(type, block32, block256, tiles, n_tiles, k, activations, act_bytes, n, y,        \
                  y_stride);                                                                       \
    }                                                                                              \
    static void dot(const uint8_t *restrict tiles, size_t n_tiles, size_t k,                       \
                    const uint8_t *restrict activations, size_t act_bytes, size_t n,               \
                    float *restrict y, size_t y_stride, size_t distance)                           \
    {                                                                                              \
        (void)distance; /* arithmetic takes longer than memory */                                  \
        dot##_panel(tiles, n_tiles, k, activations, act_bytes, n, y, y_stride);                    \
    }                                                                                              \
    static void unpack(const uint8_t *restrict tiles, size_t n_tiles, size_t k,                    \
                       uint8_t *restrict panel)                                                    \
    {                                                                                              \
        size_t bytes = ak_cpu_tile_row_bytes(type, k);                                             \
        memcpy(panel, tiles, n_tiles *bytes);                                                      \
    }

#define TILE32(name, NAME) KERNELS(dot_##name, unpack_##name, AK_QUANT_##NAME, block_##name, NULL)
#define TILE256(name, NAME) KERNELS(dot_##name, unpack_##name, AK_QUANT_##NAME, NULL, block_##name)
#include "engine/cpu/types.def"

/* Byte p of word i of a block: its number in the high slice, and its low bits. */
static unsigned high_number(const uint8_t *fifth_bits, const uint8_t *lines, size_t i, size_t p)
{
    unsigned fifth = fifth_bits[i * 8 + p / 8] >> p % 8 & 1u,
             others = lines[i % 4 * AK_LINE_BYTES + p] >> i / 4 * 4 & 15u;
    return fifth << 4 | others;
}

static unsigned low_number(const uint8_t *lines, size_t i, size_t p)
{
    return (lines[i / 4 * AK_LINE_BYTES + p] >> i % 4 * 2 & 3u) |
           (lines[2 * AK_LINE_BYTES + p] >> i & 1u) << 2;
}

static void join_slices(const uint8_t *restrict high, const uint8_t *restrict low, size_t blocks,
                        uint8_t *restrict tile)
{
    size_t scale_bytes = ak_round_up(blocks * AK_TILE_ROWS * 2, AK_LINE_BYTES);
    const uint8_t *fifth_bits = high + scale_bytes, *lines = fifth_bits + blocks * AK_LINE_BYTES;
    uint8_t *to = tile + scale_bytes;
    memcpy(tile, high, scale_bytes);
    for (size_t b = 0; b < blocks; b++) {
        for (size_t i = 0; i < AK_BLOCK_K / 4; i++, to += AK_LINE_BYTES)
            for (size_t p = 0; p < AK_LINE_BYTES; p++)
                to[p] =
                    (uint8_t)(high_number(fifth_bits, lines, i, p) << 3 | low_number(low, i, p));
        fifth_bits += AK_LINE_BYTES;
        lines += 4 * AK_LINE_BYTES;
        low += AK_SLICES_LOW_BLOCK_BYTES;
    }
}

static void dot_slices(const struct ak_cpu_slices *slices, const struct ak_cpu_slices *next,
                       size_t k, const uint8_t *restrict activations, size_t act_bytes, size_t n,
                       float *restrict y, size_t y_stride)
{
    uint8_t tile[AK_TILE_ROWS * AK_TILE_BLOCKS * 34];
    const uint8_t *high = slices->high, *low = slices->low;
    (void)next; /* arithmetic takes longer than memory */
    zero_rows(y, y_stride, n);
    for (size_t at = 0, elems; at < k; at += elems) {
        elems = ak_min_size(k - at, AK_TILE_K);
        join_slices(high, low, elems / AK_BLOCK_K, tile);
        add_tile(AK_QUANT_Q8_0, block_q8_0, NULL, tile, elems, act_from(activations, at, false),
                 act_bytes, n, y, y_stride);
        high += ak_cpu_tile_bytes(AK_QUANT_Q5_0, elems / AK_BLOCK_K);
        low += elems / AK_BLOCK_K * AK_SLICES_LOW_BLOCK_BYTES;
    }
}

AK_SETTER(dot_tiles)
{
    k->dot_slices = dot_slices;
    k->join_slices = join_slices;
#define SET(name, NAME)                                                                            \
    k->tile[AK_QUANT_##NAME] =                                                                     \
        (struct ak_cpu_tile_kernels){ dot_##name, unpack_##name, dot_##name##_panel };
#define TILE32 SET
#define TILE256 SET
#include "engine/cpu/types.def"
}
