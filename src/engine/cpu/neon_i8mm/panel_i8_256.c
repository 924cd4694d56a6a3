/* GEMM with types that have blocks of 256: 16 tokens at a time, paired once per super-block. */
#include "engine/cpu/setter.h"
#include "engine/cpu/neon/unpack256.h"
#include "engine/cpu/neon_i8mm/pairs.h"

/* Paired activations: 256 k of up to 16 tokens. */
struct activations {
    int8_t q[AK_I8MM_PAIRS][AK_TILE_K * 2];
    float scale[AK_I8MM_PAIRS][4];
    /* split sums per 32 k, or per 16 k in Q2_K; eight per token */
    int8_t low[AK_I8MM_PAIRS][2][16], high[AK_I8MM_PAIRS][2][16];
};

/* The sums of two tokens that minimums are multiplied with. */
AK_KERNEL void pair_sums(enum ak_quant_type type, const struct ak_cpu_act256 *a,
                         const struct ak_cpu_act256 *b, int8_t low[2][16], int8_t high[2][16])
{
    if (ak_neon_min_words(type) == 4) {
        int8x16_t x[2], y[2];
        ak_neon_split_sums16(a, x);
        ak_neon_split_sums16(b, y);
        int64x2_t l[2] = { vreinterpretq_s64_s8(x[0]), vreinterpretq_s64_s8(y[0]) };
        int64x2_t h[2] = { vreinterpretq_s64_s8(x[1]), vreinterpretq_s64_s8(y[1]) };
        vst1q_s8(low[0], vreinterpretq_s8_s64(vzip1q_s64(l[0], l[1])));
        vst1q_s8(low[1], vreinterpretq_s8_s64(vzip2q_s64(l[0], l[1])));
        vst1q_s8(high[0], vreinterpretq_s8_s64(vzip1q_s64(h[0], h[1])));
        vst1q_s8(high[1], vreinterpretq_s8_s64(vzip2q_s64(h[0], h[1])));
    } else if (ak_neon_min_words(type) == 2) {
        int64x2_t x = vreinterpretq_s64_s8(ak_neon_split_sums(a)),
                  y = vreinterpretq_s64_s8(ak_neon_split_sums(b));
        vst1q_s8(low[0], vreinterpretq_s8_s64(vzip1q_s64(x, y)));
        vst1q_s8(high[0], vreinterpretq_s8_s64(vzip2q_s64(x, y)));
    }
}

/* Pairs the activations of a super-block; the last of an odd number of tokens is its own
 * partner. */
AK_KERNEL void pair_activations(enum ak_quant_type type, const uint8_t *activations,
                                size_t act_bytes, size_t n, size_t super_block,
                                struct activations *out)
{
    for (size_t t = 0; t < n; t += 2) {
        const struct ak_cpu_act256 *a = ak_neon_act256(activations + t * act_bytes, super_block);
        const struct ak_cpu_act256 *b =
            t + 1 < n ? ak_neon_act256(activations + (t + 1) * act_bytes, super_block) : a;
        for (size_t i = 0; i < AK_TILE_K; i += 16)
            ak_i8mm_pair_quants(a->q + i, b->q + i, out->q[t / 2] + 2 * i);
        const float scales[4] = { a->scale, b->scale, a->scale, b->scale };
        memcpy(out->scale[t / 2], scales, sizeof scales);
        pair_sums(type, a, b, out->low[t / 2], out->high[t / 2]);
    }
}

/* Σ of scaled quants times activations, for pairs first … first + pairs − 1. */
AK_KERNEL void integer_sums(enum ak_quant_type type, const struct ak_neon_micropanel256 *panel,
                            const struct activations *activations, size_t first, size_t pairs,
                            int32x4_t scaled[AK_I8MM_GROUP][AK_I8MM_ROW_PAIRS])
{
    const size_t n_scales = ak_neon_block_scales(type), step = sizeof activations->q[0];
    ak_i8mm_zero(pairs, scaled);
    for (size_t j = 0; j < AK_TILE_BLOCKS; j++) {
        const int8_t *a = activations->q[first] + j * 64;
        if (n_scales == 0) {
#pragma GCC unroll 4
            for (size_t i = 0; i < 4; i++)
                ak_i8mm_add8(panel->block[j].q[2 * i], a + i * 16, step, pairs, scaled);
            continue;
        }
#pragma GCC unroll 2
        for (size_t s = 0; s < 2 && s < n_scales; s++) {
            const size_t steps = 4 / n_scales;
            int32x4_t sums[AK_I8MM_GROUP][AK_I8MM_ROW_PAIRS], scale[AK_I8MM_ROW_PAIRS];
            ak_i8mm_zero(pairs, sums);
#pragma GCC unroll 4
            for (size_t i = 0; i < 4 && i < steps; i++)
                ak_i8mm_add8(panel->block[j].q[2 * (s * steps + i)], a + (s * steps + i) * 16, step,
                             pairs, sums);
            ak_i8mm_pair_rows_s32(n_scales == 1, panel->block[j].scales + s * 8, scale);
#pragma GCC unroll 2
            for (size_t p = 0; p < AK_I8MM_GROUP && p < pairs; p++)
#pragma GCC unroll 4
                for (size_t r = 0; r < AK_I8MM_ROW_PAIRS; r++)
                    scaled[p][r] = vmlaq_s32(scaled[p][r], sums[p][r], scale[r]);
        }
    }
}

/* Contribution of the minimums to a pair of rows. */
AK_KERNEL int32x4_t minimum_sum(enum ak_quant_type type, const struct ak_neon_micropanel256 *panel,
                                size_t r, const int8_t low[2][16], const int8_t high[2][16])
{
    const bool two = ak_neon_min_words(type) == 4;
    int8x16_t first = vld1q_s8(panel->mins[0] + r * 16),
              second = two ? vld1q_s8(panel->mins[2] + r * 16) : first;
    int32x4_t sum = vmmlaq_s32(vdupq_n_s32(0), first, vld1q_s8(high[0]));
    sum = vshlq_n_s32(two ? vmmlaq_s32(sum, second, vld1q_s8(high[1])) : sum, 6);
    sum = vmmlaq_s32(sum, first, vld1q_s8(low[0]));
    sum = two ? vmmlaq_s32(sum, second, vld1q_s8(low[1])) : sum;
    return sum;
}

AK_KERNEL void add_panel(enum ak_quant_type type, const struct ak_neon_micropanel256 *panel,
                         const struct activations *activations, size_t first, size_t pairs,
                         struct ak_i8mm_sums *sums)
{
    int32x4_t scaled[AK_I8MM_GROUP][AK_I8MM_ROW_PAIRS];
    float32x4_t d[AK_I8MM_ROW_PAIRS], m[AK_I8MM_ROW_PAIRS];
    integer_sums(type, panel, activations, first, pairs, scaled);
    ak_i8mm_pair_rows(false, panel->scale, d);
    if (ak_neon_min_words(type))
        ak_i8mm_pair_rows(false, panel->min, m);
#pragma GCC unroll 2
    for (size_t p = 0; p < AK_I8MM_GROUP && p < pairs; p++) {
        float32x4_t scale = vld1q_f32(activations->scale[first + p]);
#pragma GCC unroll 4
        for (size_t r = 0; r < AK_I8MM_ROW_PAIRS; r++) {
            float32x4_t acc = vfmaq_f32(sums[p].rows[r], vmulq_f32(d[r], scale),
                                        ak_neon_micropanel_sum(type, scaled[p][r]));
            if (ak_neon_min_words(type)) {
                int32x4_t minimum = minimum_sum(type, panel, r, activations->low[first + p],
                                                activations->high[first + p]);
                acc = vfmaq_f32(acc, vmulq_f32(m[r], scale), vcvtq_f32_s32(minimum));
            }
            sums[p].rows[r] = acc;
        }
    }
}

/* n ≤ 16 tokens over all of k. */
AK_KERNEL void dot_tokens(enum ak_quant_type type, const struct ak_neon_micropanel256 *panels,
                          size_t n_panels, size_t n_super_blocks, const uint8_t *activations,
                          size_t act_bytes, size_t n, float *y, size_t y_stride)
{
    struct ak_i8mm_sums sums[AK_I8MM_MICROPANELS][AK_I8MM_PAIRS];
    struct activations paired;
    size_t n_pairs = (n + 1) / 2;
    memset(sums, 0, sizeof sums);
    for (size_t s = 0; s < n_super_blocks; s++) {
        pair_activations(type, activations, act_bytes, n, s, &paired);
        for (size_t i = 0; i < n_panels; i++) {
            const struct ak_neon_micropanel256 *at = panels + i * n_super_blocks + s;
            size_t p = 0;
            for (; p + 2 <= n_pairs; p += 2)
                add_panel(type, at, &paired, p, 2, sums[i] + p);
            if (p < n_pairs)
                add_panel(type, at, &paired, p, 1, sums[i] + p);
        }
    }
    for (size_t i = 0; i < n_panels; i++)
        ak_i8mm_store(sums[i], n, y + i * AK_NEON_MICROPANEL_ROWS, y_stride);
}

AK_KERNEL void dot_panel_i8(enum ak_quant_type type, const uint8_t *panel, size_t n_tiles, size_t k,
                            const uint8_t *activations, size_t act_bytes, size_t n, float *y,
                            size_t y_stride)
{
    const struct ak_neon_micropanel256 *panels =
        (const struct ak_neon_micropanel256 *)(const void *)panel;
    for (size_t t = 0; t < n; t += 2 * AK_I8MM_PAIRS)
        dot_tokens(type, panels, 2 * n_tiles, k / AK_TILE_K, activations + t * act_bytes, act_bytes,
                   ak_min_size(n - t, 2 * AK_I8MM_PAIRS), y + t * y_stride, y_stride);
}

static void unpack_panel_i8(enum ak_quant_type type, const uint8_t *tiles, size_t n_tiles, size_t k,
                            uint8_t *panel)
{
    size_t n_panels = k / AK_TILE_K;
    struct ak_neon_micropanel256 *panels = (struct ak_neon_micropanel256 *)(void *)panel;
    for (size_t i = 0; i < n_tiles; i++, panels += 2 * n_panels) {
        for (size_t b = 0; b < n_panels; b++) {
            ak_neon_unpack_any256(type, true, tiles, panels + b, panels + n_panels + b);
            tiles += ak_cpu_tile_bytes(type, AK_TILE_BLOCKS);
        }
    }
}

#define TILE256(name, NAME) static AK_UNPACK_PANEL_I8(unpack_##name, AK_QUANT_##NAME);
#include "engine/cpu/types.def"

static AK_DOT_PANEL_I8(dot_panel_q2_k, AK_QUANT_Q2_K);
static AK_DOT_PANEL_I8(dot_panel_q3_k, AK_QUANT_Q3_K);
static AK_DOT_PANEL_I8(dot_panel_q4_k, AK_QUANT_Q4_K);
static AK_DOT_PANEL_I8(dot_panel_q6_k, AK_QUANT_Q6_K);
static AK_DOT_PANEL_I8(dot_panel_iq4_xs, AK_QUANT_IQ4_XS);

/* alike in a panel */
#define dot_panel_q5_k dot_panel_q4_k
#define dot_panel_v3 dot_panel_q6_k
#define dot_panel_v4 dot_panel_iq4_xs

AK_SETTER(panel_i8_256)
{
#define TILE256(name, NAME)                                                                        \
    k->tile[AK_QUANT_##NAME].unpack_panel_i8 = unpack_##name;                                      \
    k->tile[AK_QUANT_##NAME].dot_panel_i8 = dot_panel_##name;
#include "engine/cpu/types.def"
}
