/* Products of types with blocks of 256: GEMV straight from the tiles, everything else from unpacked
 * micropanels. */
#include "engine/cpu/setter.h"
#include "base/mem.h"
#include "engine/cpu/neon/micropanel.h"
#include "engine/cpu/neon/tile256.h"

/* The loops over the four groups of rows are not unrolled: that would take more registers than
 * there are. */

/* GEMV: one token and one tile of Q4_K or Q5_K. */
AK_KERNEL void add_q45_k(enum ak_quant_type type, const uint8_t *tile,
                         const struct ak_cpu_act256 *act, float32x4_t acc[AK_NEON_GROUPS])
{
    uint8x16_t scales[AK_NEON_GROUPS][2];
    int8x16_t mins[AK_NEON_GROUPS][2];
    int32x4_t scaled[AK_NEON_GROUPS];
#pragma GCC unroll 4
    for (size_t g = 0; g < AK_NEON_GROUPS; g++) {
        ak_neon_scales_q45_k(tile, g, scales[g], mins[g]);
        scaled[g] = vdupq_n_s32(0);
    }
#pragma GCC unroll 1
    for (size_t c = 0; c < 4; c++) {
        const int8_t *q = act->q + c * 64;
        int8x16_t a0 = vld1q_s8(q), a1 = vld1q_s8(q + 16), b0 = vld1q_s8(q + 32),
                  b1 = vld1q_s8(q + 48);
        int32x4_t start[2] = { vdupq_n_s32(0), vdupq_n_s32(0) };
        if (type == AK_QUANT_Q5_K) { /* 16 · Σq adds back what was subtracted from the quants */
            int32x4_t sums = vld1q_s32(act->minus32_sum16 + c * 4);
            sums = vnegq_s32(vshrq_n_s32(vpaddq_s32(sums, sums), 1));
            start[0] = vdupq_laneq_s32(sums, 0);
            start[1] = vdupq_laneq_s32(sums, 1);
        }
#pragma GCC unroll 1
        for (size_t g = 0; g < AK_NEON_GROUPS; g++) {
            int8x16_t low[8], high[8];
            ak_neon_quants_q45_k(type, tile, c, g, low, high);
            int32x4_t a = ak_neon_dot16(ak_neon_dot16(start[0], low, a0), low + 4, a1);
            int32x4_t b = ak_neon_dot16(ak_neon_dot16(start[1], high, b0), high + 4, b1);
            int32x4_t sum = vmlaq_s32(scaled[g], a, ak_neon_byte_u8(scales[g][c / 2], c % 2 * 2));
            scaled[g] = vmlaq_s32(sum, b, ak_neon_byte_u8(scales[g][c / 2], c % 2 * 2 + 1));
        }
    }
    float32x4_t act_scale = vdupq_n_f32(act->scale);
    int8x16_t split = ak_neon_split_sums(act);
#pragma GCC unroll 4
    for (size_t g = 0; g < AK_NEON_GROUPS; g++) {
        float32x4_t min, scale = ak_neon_load_super_scales(tile, g, &min);
        acc[g] = vfmaq_f32(acc[g], vmulq_f32(scale, act_scale), vcvtq_f32_s32(scaled[g]));
        acc[g] = vfmsq_f32(acc[g], vmulq_f32(min, act_scale),
                           vcvtq_f32_s32(ak_neon_dot_mins(mins[g], split)));
    }
}

/* GEMV: one token and one tile of Q2_K, 16 k of four blocks at a time. */
AK_KERNEL void add_q2_k(const uint8_t *tile, const struct ak_cpu_act256 *act,
                        float32x4_t acc[AK_NEON_GROUPS])
{
    uint8x16_t scales[AK_NEON_GROUPS][4];
    int8x16_t mins[AK_NEON_GROUPS][4];
    int32x4_t scaled[AK_NEON_GROUPS];
#pragma GCC unroll 4
    for (size_t g = 0; g < AK_NEON_GROUPS; g++) {
        ak_neon_scales_q2_k(tile, g, scales[g], mins[g]);
        scaled[g] = vdupq_n_s32(0);
    }
#pragma GCC unroll 1
    for (size_t part = 0; part < 4; part++) {
        size_t h = part / 2, s = part % 2;
        const int8_t *q = act->q + h * 128 + s * 16;
        int8x16_t a[4] = { vld1q_s8(q), vld1q_s8(q + 32), vld1q_s8(q + 64), vld1q_s8(q + 96) };
#pragma GCC unroll 1
        for (size_t g = 0; g < AK_NEON_GROUPS; g++) {
            const uint8x16_t *first = scales[g] + 2 * h;
            int8x16_t w[4][4];
            ak_neon_quants_q2_k(tile, h, s, g, w);
            int32x4_t sum = vmlaq_s32(scaled[g], ak_neon_dot16(vdupq_n_s32(0), w[0], a[0]),
                                      ak_neon_byte_u8(first[0], s));
            sum = vmlaq_s32(sum, vshrq_n_s32(ak_neon_dot16(vdupq_n_s32(0), w[1], a[1]), 2),
                            ak_neon_byte_u8(first[0], s + 2));
            sum = vmlaq_s32(sum, vshrq_n_s32(ak_neon_dot16(vdupq_n_s32(0), w[2], a[2]), 4),
                            ak_neon_byte_u8(first[1], s));
            scaled[g] = vmlaq_s32(sum, ak_neon_dot16(vdupq_n_s32(0), w[3], a[3]),
                                  ak_neon_byte_u8(first[1], s + 2));
        }
    }
    float32x4_t act_scale = vdupq_n_f32(act->scale);
    int8x16_t split[2];
    ak_neon_split_sums16(act, split);
#pragma GCC unroll 4
    for (size_t g = 0; g < AK_NEON_GROUPS; g++) {
        float32x4_t min, scale = ak_neon_load_super_scales(tile, g, &min);
        acc[g] = vfmaq_f32(acc[g], vmulq_f32(scale, act_scale), vcvtq_f32_s32(scaled[g]));
        acc[g] = vfmsq_f32(acc[g], vmulq_f32(min, act_scale),
                           vcvtq_f32_s32(ak_neon_dot_mins16(mins[g], split)));
    }
}

/* GEMV: one token and one tile of Q3_K: the first 16 k of each block, then the others. The offset
 * of 4 is subtracted once, with the scales. */
AK_KERNEL void add_q3_k(const uint8_t *tile, const struct ak_cpu_act256 *act,
                        float32x4_t acc[AK_NEON_GROUPS])
{
    int8x16_t scales[AK_NEON_GROUPS][4];
    int32x4_t scaled[AK_NEON_GROUPS];
#pragma GCC unroll 4
    for (size_t g = 0; g < AK_NEON_GROUPS; g++) {
        ak_neon_scales_q3_k(tile, g, scales[g]);
        scaled[g] = vdupq_n_s32(0);
    }
#pragma GCC unroll 1
    for (size_t s = 0; s < 2; s++) {
        const int8_t *q = act->q + s * 16;
#pragma GCC unroll 1
        for (size_t g = 0; g < AK_NEON_GROUPS; g++) {
            int8x16_t w[4][8];
            int32x4_t sum = scaled[g];
#pragma GCC unroll 4
            for (size_t i = 0; i < 4; i++)
                ak_neon_three_bits(tile + AK_Q3_K_QUANTS_AT, s * 4 + i, g, w[i]);
#pragma GCC unroll 8
            for (size_t j = 0; j < 8; j++) {
                const int8x16_t block[4] = { w[0][j], w[1][j], w[2][j], w[3][j] };
                int32x4_t dot = ak_neon_dot16(vdupq_n_s32(0), block, vld1q_s8(q + j * 32));
                if (j == 1 || j == 3 || j == 5)
                    dot = vshrq_n_s32(dot, 3);
                sum = vmlaq_s32(
                    sum, dot,
                    ak_neon_byte_s8(vreinterpretq_u8_s8(scales[g][j / 2]), j % 2 * 2 + s));
            }
            scaled[g] = sum;
        }
    }
    float32x4_t act_scale = vdupq_n_f32(act->scale);
    int8x16_t split[2];
    ak_neon_split_sums16(act, split);
#pragma GCC unroll 4
    for (size_t g = 0; g < AK_NEON_GROUPS; g++) {
        int32x4_t sum = vsubq_s32(scaled[g], vshlq_n_s32(ak_neon_dot_mins16(scales[g], split), 2));
        acc[g] = vfmaq_f32(acc[g], vmulq_f32(ak_neon_load_f16(tile + g * 8), act_scale),
                           vcvtq_f32_s32(sum));
    }
}

/* GEMV: one token and one tile of Q6_K, as Q2_K. */
AK_KERNEL void add_q6_k(const uint8_t *tile, const struct ak_cpu_act256 *act,
                        float32x4_t acc[AK_NEON_GROUPS])
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
        const int32_t *offset = act->minus32_sum16 + h * 8 + s; /* of every second 16 k */
        int32x4_t start[4] = { vld1q_dup_s32(offset), vld1q_dup_s32(offset + 2),
                               vld1q_dup_s32(offset + 4), vld1q_dup_s32(offset + 6) };
#pragma GCC unroll 1
        for (size_t g = 0; g < AK_NEON_GROUPS; g++) {
            const uint8_t *scales = tile + AK_K_SCALES_AT + 2 * h * AK_LINE_BYTES + g * 16;
            int32x4_t sum = scaled[g];
            int8x16_t w[4][4];
            ak_neon_quants_q6_k(tile, h, s, g, w);
#pragma GCC unroll 4
            for (size_t i = 0; i < 4; i++) {
                int32x4_t scale =
                    ak_neon_byte_s8(vld1q_u8(scales + i / 2 * AK_LINE_BYTES), i % 2 * 2 + s);
                sum = vmlaq_s32(sum, ak_neon_dot16(start[i], w[i], a[i]), scale);
            }
            scaled[g] = sum;
        }
    }
    float32x4_t act_scale = vdupq_n_f32(act->scale);
#pragma GCC unroll 4
    for (size_t g = 0; g < AK_NEON_GROUPS; g++)
        acc[g] = vfmaq_f32(acc[g], vmulq_f32(ak_neon_load_f16(tile + g * 8), act_scale),
                           vcvtq_f32_s32(scaled[g]));
}

/* GEMV: one token and one tile of V3: the first 16 k of each block, then the others. */
AK_KERNEL void add_v3(const uint8_t *tile, const struct ak_cpu_act256 *act,
                      float32x4_t acc[AK_NEON_GROUPS])
{
    uint8x16_t scales[AK_NEON_GROUPS][4];
    int32x4_t scaled[AK_NEON_GROUPS];
#pragma GCC unroll 4
    for (size_t g = 0; g < AK_NEON_GROUPS; g++) {
        ak_neon_scales_v3(tile, g, scales[g]);
        scaled[g] = vdupq_n_s32(0);
    }
#pragma GCC unroll 1
    for (size_t s = 0; s < 2; s++) {
        const int8_t *q = act->q + s * 16;
#pragma GCC unroll 1
        for (size_t g = 0; g < AK_NEON_GROUPS; g++) {
            int8x16_t w[4][8];
            int32x4_t sum = scaled[g];
#pragma GCC unroll 4
            for (size_t i = 0; i < 4; i++)
                ak_neon_quants_v3(tile, s * 4 + i, g, w[i]);
#pragma GCC unroll 8
            for (size_t j = 0; j < 8; j++) {
                const int8x16_t block[4] = { w[0][j], w[1][j], w[2][j], w[3][j] };
                sum = vmlaq_s32(sum, ak_neon_dot16(vdupq_n_s32(0), block, vld1q_s8(q + j * 32)),
                                ak_neon_byte_u8(scales[g][j / 2], j % 2 * 2 + s));
            }
            scaled[g] = sum;
        }
    }
    float32x4_t act_scale = vdupq_n_f32(act->scale);
#pragma GCC unroll 4
    for (size_t g = 0; g < AK_NEON_GROUPS; g++)
        acc[g] = vfmaq_f32(acc[g], vmulq_f32(ak_neon_table_scales(tile, g), act_scale),
                           vcvtq_f32_s32(scaled[g]));
}

/* GEMV: one token and one tile of IQ4_XS or V4, two blocks at a time. */
AK_KERNEL void add_nibbles(enum ak_quant_type type, const uint8_t *tile,
                           const struct ak_cpu_act256 *act, float32x4_t acc[AK_NEON_GROUPS])
{
    uint8x16_t scales[AK_NEON_GROUPS][2];
    float32x4_t d[AK_NEON_GROUPS];
    int32x4_t scaled[AK_NEON_GROUPS];
#pragma GCC unroll 4
    for (size_t g = 0; g < AK_NEON_GROUPS; g++) {
        ak_neon_scales_nibbles(type, tile, g, d + g, scales[g]);
        scaled[g] = vdupq_n_s32(0);
    }
#pragma GCC unroll 1
    for (size_t c = 0; c < 4; c++) {
        const int8_t *q = act->q + c * 64;
        int8x16_t a0 = vld1q_s8(q), a1 = vld1q_s8(q + 16), b0 = vld1q_s8(q + 32),
                  b1 = vld1q_s8(q + 48);
#pragma GCC unroll 1
        for (size_t g = 0; g < AK_NEON_GROUPS; g++) {
            int8x16_t first[8], second[8];
            ak_neon_quants_nibbles(type, tile, 2 * c, g, first);
            ak_neon_quants_nibbles(type, tile, 2 * c + 1, g, second);
            int32x4_t a = ak_neon_dot16(ak_neon_dot16(vdupq_n_s32(0), first, a0), first + 4, a1);
            int32x4_t b = ak_neon_dot16(ak_neon_dot16(vdupq_n_s32(0), second, b0), second + 4, b1);
            int32x4_t sum = vmlaq_s32(scaled[g], a, ak_neon_nibbles_scale(type, scales[g], 2 * c));
            scaled[g] = vmlaq_s32(sum, b, ak_neon_nibbles_scale(type, scales[g], 2 * c + 1));
        }
    }
    float32x4_t act_scale = vdupq_n_f32(act->scale);
#pragma GCC unroll 4
    for (size_t g = 0; g < AK_NEON_GROUPS; g++)
        acc[g] = vfmaq_f32(acc[g], vmulq_f32(d[g], act_scale), vcvtq_f32_s32(scaled[g]));
}

AK_KERNEL void add_tile(enum ak_quant_type type, const uint8_t *tile,
                        const struct ak_cpu_act256 *act, float32x4_t acc[AK_NEON_GROUPS])
{
    switch (type) {
    case AK_QUANT_Q2_K: add_q2_k(tile, act, acc); break;
    case AK_QUANT_Q3_K: add_q3_k(tile, act, acc); break;
    case AK_QUANT_Q4_K:
    case AK_QUANT_Q5_K: add_q45_k(type, tile, act, acc); break;
    case AK_QUANT_Q6_K: add_q6_k(tile, act, acc); break;
    case AK_QUANT_V3: add_v3(tile, act, acc); break;
    default: add_nibbles(type, tile, act, acc); break;
    }
}

AK_KERNEL void dot_one(enum ak_quant_type type, const uint8_t *tiles, size_t n_tiles, size_t k,
                       const uint8_t *activations, float *y, size_t distance)
{
    for (size_t i = 0; i < n_tiles; i++) {
        float32x4_t acc[AK_NEON_GROUPS];
#pragma GCC unroll 4
        for (size_t g = 0; g < AK_NEON_GROUPS; g++)
            acc[g] = vdupq_n_f32(0.0f);
        for (size_t b = 0; b < k / AK_TILE_K; b++, tiles += ak_cpu_tile256_bytes(type)) {
            if (distance)
                ak_cpu_prefetch(tiles, ak_cpu_tile256_bytes(type), distance);
            add_tile(type, tiles, ak_neon_act256(activations, b), acc);
        }
#pragma GCC unroll 4
        for (size_t g = 0; g < AK_NEON_GROUPS; g++)
            vst1q_f32(y + i * AK_TILE_ROWS + g * 4, acc[g]);
    }
}

/* Skinny GEMM: each tile is unpacked once, into the L1 cache. */
static void dot_skinny(enum ak_quant_type type, const uint8_t *tiles, size_t n_tiles, size_t k,
                       const uint8_t *activations, size_t act_bytes, size_t n, float *y,
                       size_t y_stride, size_t distance)
{
    struct ak_neon_micropanel256 lower, upper;
    for (size_t i = 0; i < n_tiles; i++, y += AK_TILE_ROWS) {
        ak_neon_clear(y, y_stride, n);
        for (size_t b = 0; b < k / AK_TILE_K; b++) {
            const uint8_t *act = (const uint8_t *)ak_neon_act256(activations, b);
            if (distance)
                ak_cpu_prefetch(tiles, ak_cpu_tile_bytes(type, AK_TILE_BLOCKS), distance);
            ak_neon_unpack_tile256(type, tiles, &lower, &upper);
            ak_neon_dot_micropanels256(type, &lower, 1, act, act_bytes, n, y, y_stride);
            ak_neon_dot_micropanels256(type, &upper, 1, act, act_bytes, n,
                                       y + AK_NEON_MICROPANEL_ROWS, y_stride);
            tiles += ak_cpu_tile_bytes(type, AK_TILE_BLOCKS);
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
    size_t n_panels = k / AK_TILE_K;
    struct ak_neon_micropanel256 *panels = (struct ak_neon_micropanel256 *)(void *)panel;
    for (size_t i = 0; i < n_tiles; i++, panels += 2 * n_panels) {
        for (size_t b = 0; b < n_panels; b++) {
            ak_neon_unpack_tile256(type, tiles, panels + b, panels + n_panels + b);
            tiles += ak_cpu_tile_bytes(type, AK_TILE_BLOCKS);
        }
    }
}

static void dot_panel_i8(enum ak_quant_type type, const uint8_t *panel, size_t n_tiles, size_t k,
                         const uint8_t *activations, size_t act_bytes, size_t n, float *y,
                         size_t y_stride)
{
    /* this many tokens' activations fit the L2 cache beside the panel */
    enum { TOKENS = 16 };
    size_t n_panels = k / AK_TILE_K;
    for (size_t t = 0; t < n;
         t += TOKENS, activations += TOKENS * act_bytes, y += TOKENS * y_stride) {
        const struct ak_neon_micropanel256 *panels =
            (const struct ak_neon_micropanel256 *)(const void *)panel;
        size_t tokens = ak_min_size(n - t, TOKENS);
        for (size_t i = 0; i < n_tiles; i++)
            ak_neon_clear(y + i * AK_TILE_ROWS, y_stride, tokens);
        for (size_t i = 0; i < 2 * n_tiles; i++, panels += n_panels)
            ak_neon_dot_micropanels256(type, panels, n_panels, activations, act_bytes, tokens,
                                       y + i * AK_NEON_MICROPANEL_ROWS, y_stride);
    }
}

#define TILE256(name, NAME)                                                                        \
    static AK_DOT_TILES(dot_##name, AK_QUANT_##NAME);                                              \
    static AK_UNPACK_PANEL_I8(unpack_##name, AK_QUANT_##NAME);                                     \
    static AK_DOT_PANEL_I8(dot_panel_##name, AK_QUANT_##NAME);
#include "engine/cpu/types.def"

AK_SETTER(dot256)
{
#define TILE256(name, NAME)                                                                        \
    k->tile[AK_QUANT_##NAME] =                                                                     \
        (struct ak_cpu_tile_kernels){ dot_##name, unpack_##name, dot_panel_##name };
#include "engine/cpu/types.def"
}
