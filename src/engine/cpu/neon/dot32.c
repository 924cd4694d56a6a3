/* Products of types with blocks of 32: GEMV straight from the tiles, everything else from unpacked
 * micropanels. */
#include "engine/cpu/slices.h"
#include "engine/cpu/setter.h"
#include "engine/cpu/neon/micropanel.h"
#include "engine/cpu/neon/tile32.h"

/* Initial value of a block's sum: −offset · Σq, so that quants are used as stored. */
AK_KERNEL int32x4_t sum_offset(enum ak_quant_type type, int32x4_t minus8_sum)
{
    switch (ak_neon_offset32(type)) {
    case 8: return minus8_sum;
    case -16: return vnegq_s32(vshlq_n_s32(minus8_sum, 1));
    default: return vdupq_n_s32(0);
    }
}

/* GEMV: one token and one tile, a block at a time, in one sequential stream. */
AK_KERNEL void add_tile(enum ak_quant_type type, const uint8_t *tile, size_t blocks,
                        const struct ak_cpu_act32 *act, float32x4_t acc[AK_NEON_GROUPS])
{
    struct ak_neon_tile32 tile32 = ak_neon_tile32(type, tile, blocks);
    for (size_t b = 0; b < blocks; b++) {
        int8x16_t a0 = vld1q_s8(act[b].q), a1 = vld1q_s8(act[b].q + 16);
        uint8x16_t terms = ak_neon_act32_terms(act + b);
        float32x4_t terms_f32 = vreinterpretq_f32_u8(terms);
        int32x4_t offset = sum_offset(type, vdupq_laneq_s32(vreinterpretq_s32_u8(terms), 1));
        float32x4_t scales[AK_NEON_GROUPS];
        uint8x16_t clear_bits[4];
        ak_neon_scales32(type, &tile32, b, scales);
        ak_neon_clear_bits(type, &tile32, b, clear_bits);
#pragma GCC unroll 4
        for (size_t g = 0; g < AK_NEON_GROUPS; g++) {
            int8x16_t w[8];
            ak_neon_quants32(type, &tile32, b, clear_bits, g, w);
            int32x4_t sum = ak_neon_dot16(ak_neon_dot16(offset, w, a0), w + 4, a1);
            float32x4_t d = vmulq_laneq_f32(scales[g], terms_f32, 0);
            acc[g] = vfmaq_f32(acc[g], d, vcvtq_f32_s32(sum));
            if (ak_neon_has_minimum(type))
                acc[g] = vfmaq_laneq_f32(acc[g], ak_neon_mins32(type, &tile32, b, g), terms_f32, 2);
            ak_neon_fence();
        }
    }
}

AK_KERNEL void dot_one(enum ak_quant_type type, const uint8_t *tiles, size_t n_tiles, size_t k,
                       const uint8_t *activations, float *y, size_t distance)
{
    for (size_t i = 0; i < n_tiles; i++) {
        const struct ak_cpu_act32 *act = ak_neon_act32(activations, 0);
        float32x4_t acc[AK_NEON_GROUPS];
#pragma GCC unroll 4
        for (size_t g = 0; g < AK_NEON_GROUPS; g++)
            acc[g] = vdupq_n_f32(0.0f);
        for (size_t at = 0; at < k; at += AK_TILE_K, act += AK_TILE_BLOCKS) {
            size_t blocks = ak_min_size(k - at, AK_TILE_K) / AK_BLOCK_K;
            if (distance)
                ak_cpu_prefetch(tiles, ak_cpu_tile_bytes(type, blocks), distance);
            add_tile(type, tiles, blocks, act, acc);
            tiles += ak_cpu_tile_bytes(type, blocks);
        }
#pragma GCC unroll 4
        for (size_t g = 0; g < AK_NEON_GROUPS; g++)
            vst1q_f32(y + i * AK_TILE_ROWS + g * 4, acc[g]);
    }
}

/* Adds the products of a tile, unpacked once into the L1 cache. */
static void add_tokens(enum ak_quant_type type, const uint8_t *tile, size_t blocks,
                       const uint8_t *activations, size_t act_bytes, size_t n, float *y,
                       size_t y_stride)
{
    struct ak_neon_micropanel32 lower[AK_TILE_BLOCKS], upper[AK_TILE_BLOCKS];
    ak_neon_unpack_tile32(type, tile, blocks, lower, upper);
    ak_neon_dot_micropanels32(type, lower, blocks, activations, act_bytes, n, y, y_stride);
    ak_neon_dot_micropanels32(type, upper, blocks, activations, act_bytes, n,
                              y + AK_NEON_MICROPANEL_ROWS, y_stride);
}

static void dot_skinny(enum ak_quant_type type, const uint8_t *tiles, size_t n_tiles, size_t k,
                       const uint8_t *activations, size_t act_bytes, size_t n, float *y,
                       size_t y_stride, size_t distance)
{
    for (size_t i = 0; i < n_tiles; i++, y += AK_TILE_ROWS) {
        ak_neon_clear(y, y_stride, n);
        for (size_t at = 0; at < k; at += AK_TILE_K) {
            size_t blocks = ak_min_size(k - at, AK_TILE_K) / AK_BLOCK_K;
            if (distance)
                ak_cpu_prefetch(tiles, ak_cpu_tile_bytes(type, blocks), distance);
            add_tokens(type, tiles, blocks,
                       (const uint8_t *)ak_neon_act32(activations, at / AK_BLOCK_K), act_bytes, n,
                       y, y_stride);
            tiles += ak_cpu_tile_bytes(type, blocks);
        }
    }
}

AK_KERNEL void dot_tiles(enum ak_quant_type type, const uint8_t *tiles, size_t n_tiles, size_t k,
                         const uint8_t *activations, size_t act_bytes, size_t n, float *y,
                         size_t y_stride, size_t distance)
{
    if (n == 1)
        dot_one(type, tiles, n_tiles, k, activations, y, distance);
    else
        dot_skinny(type, tiles, n_tiles, k, activations, act_bytes, n, y, y_stride, distance);
}

static void unpack_panel_i8(enum ak_quant_type type, const uint8_t *tiles, size_t n_tiles, size_t k,
                            uint8_t *panel)
{
    size_t n_blocks = k / AK_BLOCK_K;
    struct ak_neon_micropanel32 *panels = (struct ak_neon_micropanel32 *)(void *)panel;
    for (size_t i = 0; i < n_tiles; i++, panels += 2 * n_blocks) {
        for (size_t b = 0; b < n_blocks; b += AK_TILE_BLOCKS) {
            size_t blocks = ak_min_size(n_blocks - b, AK_TILE_BLOCKS);
            ak_neon_unpack_tile32(type, tiles, blocks, panels + b, panels + n_blocks + b);
            tiles += ak_cpu_tile_bytes(type, blocks);
        }
    }
}

static void dot_panel_i8(enum ak_quant_type type, const uint8_t *panel, size_t n_tiles, size_t k,
                         const uint8_t *activations, size_t act_bytes, size_t n, float *y,
                         size_t y_stride)
{
    /* this many tokens' activations fit the L2 cache beside the panel */
    enum { TOKENS = 16 };
    size_t n_blocks = k / AK_BLOCK_K;
    for (size_t t = 0; t < n;
         t += TOKENS, activations += TOKENS * act_bytes, y += TOKENS * y_stride) {
        const struct ak_neon_micropanel32 *panels =
            (const struct ak_neon_micropanel32 *)(const void *)panel;
        size_t tokens = ak_min_size(n - t, TOKENS);
        for (size_t i = 0; i < n_tiles; i++)
            ak_neon_clear(y + i * AK_TILE_ROWS, y_stride, tokens);
        for (size_t i = 0; i < 2 * n_tiles; i++, panels += n_blocks)
            ak_neon_dot_micropanels32(type, panels, n_blocks, activations, act_bytes, tokens,
                                      y + i * AK_NEON_MICROPANEL_ROWS, y_stride);
    }
}

/* Register g of block b's words: the low bits added to the numbers of the high slice, as unsigned
 * bytes. */
AK_KERNEL void join_words(const struct ak_neon_tile32 *high, const uint8x16_t clear_bits[4],
                          const uint8_t *low, size_t b, size_t g, uint8_t *lines)
{
    int8x16_t w[8];
    uint8x16_t pairs[2] = { vld1q_u8(low + g * 16), vld1q_u8(low + AK_LINE_BYTES + g * 16) },
               third = vld1q_u8(low + 2 * AK_LINE_BYTES + g * 16);
    ak_neon_quants32(AK_QUANT_Q5_0, high, b, clear_bits, g, w);
#pragma GCC unroll 8
    for (size_t i = 0; i < 8; i++) {
        uint8x16_t word = veorq_u8(vshlq_n_u8(vreinterpretq_u8_s8(w[i]), 3), vdupq_n_u8(0x80)),
                   pair = vshlq_u8(pairs[i / 4], vdupq_n_s8((int8_t) - (int8_t)(i % 4 * 2))),
                   bit = vshlq_u8(third, vdupq_n_s8((int8_t)(2 - (int8_t)i)));
        word = vorrq_u8(word, vandq_u8(pair, vdupq_n_u8(3)));
        vst1q_u8(lines + i * AK_LINE_BYTES + g * 16, vorrq_u8(word, vandq_u8(bit, vdupq_n_u8(4))));
    }
}

static void join_slices(const uint8_t *restrict high, const uint8_t *restrict low, size_t blocks,
                        uint8_t *restrict tile)
{
    struct ak_neon_tile32 from = ak_neon_tile32(AK_QUANT_Q5_0, high, blocks);
    size_t scale_bytes = ak_round_up(blocks * AK_TILE_ROWS * 2, AK_LINE_BYTES);
    uint8_t *lines = tile + scale_bytes;
    memcpy(tile, high, scale_bytes);
    for (size_t b = 0; b < blocks; b++) {
        uint8x16_t clear_bits[4];
        ak_neon_clear_bits(AK_QUANT_Q5_0, &from, b, clear_bits);
        for (size_t g = 0; g < AK_NEON_GROUPS; g++)
            join_words(&from, clear_bits, low, b, g, lines);
        low += AK_SLICES_LOW_BLOCK_BYTES;
        lines += 8 * AK_LINE_BYTES;
    }
}

static void dot_slices(const struct ak_cpu_slices *slices, const struct ak_cpu_slices *next,
                       size_t k, const uint8_t *restrict activations, size_t act_bytes, size_t n,
                       float *restrict y, size_t y_stride)
{
    uint8_t tile[AK_TILE_ROWS * AK_TILE_BLOCKS * 34] __attribute__((aligned(AK_LINE_BYTES)));
    const uint8_t *high = slices->high, *low = slices->low;
    ak_neon_clear(y, y_stride, n);
    for (size_t at = 0; at < k; at += AK_TILE_K) {
        size_t blocks = ak_min_size(k - at, AK_TILE_K) / AK_BLOCK_K,
               high_bytes = ak_cpu_tile_bytes(AK_QUANT_Q5_0, blocks),
               low_bytes = blocks * AK_SLICES_LOW_BLOCK_BYTES;
        ak_cpu_prefetch(high, high_bytes, (size_t)(next->high - slices->high));
        ak_cpu_prefetch(low, low_bytes, (size_t)(next->low - slices->low));
        join_slices(high, low, blocks, tile);
        add_tokens(AK_QUANT_Q8_0, tile, blocks,
                   (const uint8_t *)ak_neon_act32(activations, at / AK_BLOCK_K), act_bytes, n, y,
                   y_stride);
        high += high_bytes;
        low += low_bytes;
    }
}

#define TILE32(name, NAME)                                                                         \
    static AK_DOT_TILES(dot_##name, AK_QUANT_##NAME);                                              \
    static AK_UNPACK_PANEL_I8(unpack_##name, AK_QUANT_##NAME);                                     \
    static AK_DOT_PANEL_I8(dot_panel_##name, AK_QUANT_##NAME);
#include "engine/cpu/types.def"

AK_SETTER(dot32)
{
    k->dot_slices = dot_slices;
    k->join_slices = join_slices;
#define TILE32(name, NAME)                                                                         \
    k->tile[AK_QUANT_##NAME] =                                                                     \
        (struct ak_cpu_tile_kernels){ dot_##name, unpack_##name, dot_panel_##name };
#include "engine/cpu/types.def"
}
