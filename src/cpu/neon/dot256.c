/* Products of the K-types: one token straight from the tiles, more by way of
 * panels. */
#include "base/mem.h"
#include "cpu/neon/neon.h"
#include "cpu/neon/panel.h"
#include "cpu/neon/tile256.h"

/* One token and one tile of Q4_K. The groups of rows are a loop: unrolled, they
 * want more registers than there are. */
AK_KERNEL void add_q4_k(const uint8_t *tile, const struct ak_act256 *act, float32x4_t acc[AK_NEON_GROUPS])
{
    uint8x16_t scales[AK_NEON_GROUPS][2];
    int8x16_t mins[AK_NEON_GROUPS][2];
    int32x4_t scaled[AK_NEON_GROUPS];
#pragma GCC unroll 4
    for (size_t g = 0; g < AK_NEON_GROUPS; g++) {
        ak_neon_scales_q4_k(tile, g, scales[g], mins[g]);
        scaled[g] = vdupq_n_s32(0);
    }
#pragma GCC unroll 1
    for (size_t c = 0; c < 4; c++) {
        const uint8_t *lines = tile + AK_NEON_Q4_K_QUANTS + c * 8 * AK_LINE_BYTES;
        const int8_t *q = act->q + c * 64;
        int8x16_t a0 = vld1q_s8(q), a1 = vld1q_s8(q + 16), b0 = vld1q_s8(q + 32), b1 = vld1q_s8(q + 48);
#pragma GCC unroll 1
        for (size_t g = 0; g < AK_NEON_GROUPS; g++) {
            int8x16_t low[8], high[8];
#pragma GCC unroll 8
            for (size_t i = 0; i < 8; i++) {
                uint8x16_t v = vld1q_u8(lines + i * AK_LINE_BYTES + g * 16);
                low[i] = vreinterpretq_s8_u8(vandq_u8(v, vdupq_n_u8(15)));
                high[i] = vreinterpretq_s8_u8(vshrq_n_u8(v, 4));
            }
            int32x4_t a = ak_neon_dot16(ak_neon_dot16(vdupq_n_s32(0), low, a0), low + 4, a1);
            int32x4_t b = ak_neon_dot16(ak_neon_dot16(vdupq_n_s32(0), high, b0), high + 4, b1);
            int32x4_t sum = vmlaq_s32(scaled[g], a, ak_neon_byte_u8(scales[g][c / 2], c % 2 * 2));
            scaled[g] = vmlaq_s32(sum, b, ak_neon_byte_u8(scales[g][c / 2], c % 2 * 2 + 1));
        }
    }
    float32x4_t act_scale = vdupq_n_f32(act->scale);
    int8x16_t split = ak_neon_split_sums(act);
#pragma GCC unroll 4
    for (size_t g = 0; g < AK_NEON_GROUPS; g++) {
        float32x4_t min, scale = ak_neon_super_q4_k(tile, g, &min);
        acc[g] = vfmaq_f32(acc[g], vmulq_f32(scale, act_scale), vcvtq_f32_s32(scaled[g]));
        acc[g] = vfmsq_f32(acc[g], vmulq_f32(min, act_scale), vcvtq_f32_s32(ak_neon_dot_mins(mins[g], split)));
    }
}

/* One token and one tile of Q6_K: 16 k of four blocks at a time. */
AK_KERNEL void add_q6_k(const uint8_t *tile, const struct ak_act256 *act, float32x4_t acc[AK_NEON_GROUPS])
{
    int32x4_t scaled[AK_NEON_GROUPS];
#pragma GCC unroll 4
    for (size_t g = 0; g < AK_NEON_GROUPS; g++)
        scaled[g] = vdupq_n_s32(0);
#pragma GCC unroll 1
    for (size_t part = 0; part < 4; part++) {
        size_t h = part / 2, s = part % 2;
        const int8_t *q = act->q + h * 128 + s * 16;
        int8x16_t a[4] = { vld1q_s8(q), vld1q_s8(q + 32), vld1q_s8(q + 64), vld1q_s8(q + 96) };
#pragma GCC unroll 1
        for (size_t g = 0; g < AK_NEON_GROUPS; g++) {
            const uint8_t *scales = tile + AK_NEON_Q6_K_SCALES + 2 * h * AK_LINE_BYTES + g * 16;
            int32x4_t sum = scaled[g];
            int8x16_t w[4][4];
            ak_neon_quants_q6_k(tile, h, s, g, w);
#pragma GCC unroll 4
            for (size_t i = 0; i < 4; i++) {
                int32x4_t scale = ak_neon_byte_s8(vld1q_u8(scales + i / 2 * AK_LINE_BYTES), i % 2 * 2 + s);
                sum = vmlaq_s32(sum, ak_neon_dot16(vdupq_n_s32(0), w[i], a[i]), scale);
            }
            scaled[g] = sum;
        }
    }
    float32x4_t act_scale = vdupq_n_f32(act->scale);
#pragma GCC unroll 4
    for (size_t g = 0; g < AK_NEON_GROUPS; g++) /* four times the quants: two bits of the sum are a fraction */
        acc[g] = vfmaq_f32(acc[g], vmulq_f32(ak_neon_load_f16(tile + g * 8), act_scale), vcvtq_n_f32_s32(scaled[g], 2));
}

AK_KERNEL void dot_one(enum ak_type type, const uint8_t *tiles, size_t n_tiles, size_t k, const uint8_t *acts, float *y)
{
    const size_t bytes = type == AK_Q4_K ? AK_NEON_Q4_K_TILE : AK_NEON_Q6_K_TILE;
    for (size_t i = 0; i < n_tiles; i++) {
        float32x4_t acc[AK_NEON_GROUPS];
#pragma GCC unroll 4
        for (size_t g = 0; g < AK_NEON_GROUPS; g++)
            acc[g] = vdupq_n_f32(0.0f);
        for (size_t b = 0; b < k / AK_TILE_K; b++, tiles += bytes) {
            if (type == AK_Q4_K)
                add_q4_k(tiles, ak_neon_act256(acts, b), acc);
            else
                add_q6_k(tiles, ak_neon_act256(acts, b), acc);
        }
#pragma GCC unroll 4
        for (size_t g = 0; g < AK_NEON_GROUPS; g++)
            vst1q_f32(y + i * AK_TILE_ROWS + g * 4, acc[g]);
    }
}

/* A few tokens: each tile is opened once, into the first-level cache. */
static void dot_few(enum ak_type type, const uint8_t *tiles, size_t n_tiles, size_t k, const uint8_t *acts, size_t act_bytes, size_t n,
                    float *y, size_t y_stride)
{
    struct ak_neon_panel256 lower, upper;
    for (size_t i = 0; i < n_tiles; i++, y += AK_TILE_ROWS) {
        ak_neon_clear(y, y_stride, n);
        for (size_t b = 0; b < k / AK_TILE_K; b++) {
            const uint8_t *act = (const uint8_t *)ak_neon_act256(acts, b);
            ak_neon_open_tile256(type, tiles, &lower, &upper);
            ak_neon_dot_panels256(type, &lower, 1, act, act_bytes, n, y, y_stride);
            ak_neon_dot_panels256(type, &upper, 1, act, act_bytes, n, y + AK_NEON_PANEL_ROWS, y_stride);
            tiles += ak_tile_bytes(type, AK_TILE_BLOCKS);
        }
    }
}

static void open_slab(enum ak_type type, const uint8_t *tiles, size_t n_tiles, size_t k, uint8_t *slab)
{
    size_t n_panels = k / AK_TILE_K;
    struct ak_neon_panel256 *panels = (struct ak_neon_panel256 *)(void *)slab;
    for (size_t i = 0; i < n_tiles; i++, panels += 2 * n_panels) {
        for (size_t b = 0; b < n_panels; b++) {
            ak_neon_open_tile256(type, tiles, panels + b, panels + n_panels + b);
            tiles += ak_tile_bytes(type, AK_TILE_BLOCKS);
        }
    }
}

static void dot_slab(enum ak_type type, const uint8_t *slab, size_t n_tiles, size_t k, const uint8_t *acts, size_t act_bytes, size_t n,
                     float *y, size_t y_stride)
{
    enum { TOKENS = 16 }; /* their activations stay in the second-level cache beside the slab */
    size_t n_panels = k / AK_TILE_K;
    for (size_t t = 0; t < n; t += TOKENS, acts += TOKENS * act_bytes, y += TOKENS * y_stride) {
        const struct ak_neon_panel256 *panels = (const struct ak_neon_panel256 *)(const void *)slab;
        size_t tokens = ak_min_size(n - t, TOKENS);
        for (size_t i = 0; i < n_tiles; i++)
            ak_neon_clear(y + i * AK_TILE_ROWS, y_stride, tokens);
        for (size_t i = 0; i < 2 * n_tiles; i++, panels += n_panels)
            ak_neon_dot_panels256(type, panels, n_panels, acts, act_bytes, tokens, y + i * AK_NEON_PANEL_ROWS, y_stride);
    }
}

void ak_neon_dot_q4_k(const uint8_t *restrict tiles, size_t n_tiles, size_t k, const uint8_t *restrict acts, size_t act_bytes, size_t n,
                      float *restrict y, size_t y_stride)
{
    if (n == 1)
        dot_one(AK_Q4_K, tiles, n_tiles, k, acts, y);
    else
        dot_few(AK_Q4_K, tiles, n_tiles, k, acts, act_bytes, n, y, y_stride);
}

void ak_neon_dot_q6_k(const uint8_t *restrict tiles, size_t n_tiles, size_t k, const uint8_t *restrict acts, size_t act_bytes, size_t n,
                      float *restrict y, size_t y_stride)
{
    if (n == 1)
        dot_one(AK_Q6_K, tiles, n_tiles, k, acts, y);
    else
        dot_few(AK_Q6_K, tiles, n_tiles, k, acts, act_bytes, n, y, y_stride);
}

void ak_neon_open_q4_k(const uint8_t *restrict tiles, size_t n_tiles, size_t k, uint8_t *restrict slab)
{
    open_slab(AK_Q4_K, tiles, n_tiles, k, slab);
}

void ak_neon_open_q6_k(const uint8_t *restrict tiles, size_t n_tiles, size_t k, uint8_t *restrict slab)
{
    open_slab(AK_Q6_K, tiles, n_tiles, k, slab);
}

void ak_neon_dot_slab_q4_k(const uint8_t *restrict slab, size_t n_tiles, size_t k, const uint8_t *restrict acts, size_t act_bytes, size_t n,
                           float *restrict y, size_t y_stride)
{
    dot_slab(AK_Q4_K, slab, n_tiles, k, acts, act_bytes, n, y, y_stride);
}

void ak_neon_dot_slab_q6_k(const uint8_t *restrict slab, size_t n_tiles, size_t k, const uint8_t *restrict acts, size_t act_bytes, size_t n,
                           float *restrict y, size_t y_stride)
{
    dot_slab(AK_Q6_K, slab, n_tiles, k, acts, act_bytes, n, y, y_stride);
}
