/* GEMM with types that have blocks of 32: 16 tokens at a time, paired once per 256 k. */
#include "engine/cpu/setter.h"
#include "engine/cpu/neon/unpack32.h"
#include "engine/cpu/neon_i8mm/pairs.h"

/* Paired activations: up to 256 k of up to 16 tokens. */
struct activations {
    int8_t q[AK_I8MM_PAIRS][AK_TILE_K * 2];
    float scale[AK_I8MM_PAIRS][AK_TILE_BLOCKS][4], scaled_sum[AK_I8MM_PAIRS][AK_TILE_BLOCKS][4];
};

/* Pairs the activations of `blocks` blocks; the last of an odd number of tokens is its own
 * partner. */
AK_KERNEL void pair_activations(bool has_minimum, const uint8_t *activations, size_t act_bytes,
                                size_t n, size_t first, size_t blocks, struct activations *out)
{
    for (size_t t = 0; t < n; t += 2) {
        const struct ak_cpu_act32 *a = ak_neon_act32(activations + t * act_bytes, first);
        const struct ak_cpu_act32 *b =
            t + 1 < n ? ak_neon_act32(activations + (t + 1) * act_bytes, first) : a;
        for (size_t j = 0; j < blocks; j++) {
            ak_i8mm_pair_quants(a[j].q, b[j].q, out->q[t / 2] + j * 64);
            ak_i8mm_pair_quants(a[j].q + 16, b[j].q + 16, out->q[t / 2] + j * 64 + 32);
            float32x4_t x = vreinterpretq_f32_u8(ak_neon_act32_terms(a + j)),
                        y = vreinterpretq_f32_u8(ak_neon_act32_terms(b + j));
            float32x2_t scales = vget_low_f32(vzip1q_f32(x, y)),
                        sums = vget_low_f32(vzip2q_f32(x, y));
            vst1q_f32(out->scale[t / 2][j], vcombine_f32(scales, scales));
            if (has_minimum)
                vst1q_f32(out->scaled_sum[t / 2][j], vcombine_f32(sums, sums));
        }
    }
}

/* Adds micropanels times pairs first … first + pairs − 1; `pairs` is a constant. */
AK_KERNEL void add_panels(bool has_minimum, const struct ak_neon_micropanel32 *panels,
                          size_t blocks, const struct activations *activations, size_t first,
                          size_t pairs, struct ak_i8mm_sums *sums)
{
    float32x4_t acc[AK_I8MM_GROUP][AK_I8MM_ROW_PAIRS];
#pragma GCC unroll 2
    for (size_t p = 0; p < AK_I8MM_GROUP && p < pairs; p++)
#pragma GCC unroll 4
        for (size_t r = 0; r < AK_I8MM_ROW_PAIRS; r++)
            acc[p][r] = sums[p].rows[r];
    for (size_t b = 0; b < blocks; b++) {
        int32x4_t block[AK_I8MM_GROUP][AK_I8MM_ROW_PAIRS];
        float32x4_t d[AK_I8MM_ROW_PAIRS], m[AK_I8MM_ROW_PAIRS];
        ak_i8mm_zero(pairs, block);
#pragma GCC unroll 4
        for (size_t i = 0; i < 4; i++)
            ak_i8mm_add8(panels[b].q[2 * i], activations->q[first] + b * 64 + i * 16,
                         sizeof activations->q[0], pairs, block);
        ak_i8mm_pair_rows(!has_minimum, panels[b].factors, d);
        if (has_minimum)
            ak_i8mm_pair_rows(false, panels[b].factors + 8, m);
#pragma GCC unroll 2
        for (size_t p = 0; p < AK_I8MM_GROUP && p < pairs; p++) {
            float32x4_t scale = vld1q_f32(activations->scale[first + p][b]);
#pragma GCC unroll 4
            for (size_t r = 0; r < AK_I8MM_ROW_PAIRS; r++) {
                acc[p][r] =
                    vfmaq_f32(acc[p][r], vmulq_f32(d[r], scale), vcvtq_f32_s32(block[p][r]));
                if (has_minimum)
                    acc[p][r] = vfmaq_f32(acc[p][r], m[r],
                                          vld1q_f32(activations->scaled_sum[first + p][b]));
            }
        }
    }
#pragma GCC unroll 2
    for (size_t p = 0; p < AK_I8MM_GROUP && p < pairs; p++)
#pragma GCC unroll 4
        for (size_t r = 0; r < AK_I8MM_ROW_PAIRS; r++)
            sums[p].rows[r] = acc[p][r];
}

/* n ≤ 16 tokens over all of k. */
AK_KERNEL void dot_tokens(bool has_minimum, const struct ak_neon_micropanel32 *panels,
                          size_t n_panels, size_t n_blocks, const uint8_t *activations,
                          size_t act_bytes, size_t n, float *y, size_t y_stride)
{
    struct ak_i8mm_sums sums[AK_I8MM_MICROPANELS][AK_I8MM_PAIRS];
    struct activations paired;
    size_t n_pairs = (n + 1) / 2;
    memset(sums, 0, sizeof sums);
    for (size_t b = 0; b < n_blocks; b += AK_TILE_BLOCKS) {
        size_t blocks = ak_min_size(n_blocks - b, AK_TILE_BLOCKS);
        pair_activations(has_minimum, activations, act_bytes, n, b, blocks, &paired);
        for (size_t i = 0; i < n_panels; i++) {
            const struct ak_neon_micropanel32 *at = panels + i * n_blocks + b;
            size_t p = 0;
            for (; p + 2 <= n_pairs; p += 2)
                add_panels(has_minimum, at, blocks, &paired, p, 2, sums[i] + p);
            if (p < n_pairs)
                add_panels(has_minimum, at, blocks, &paired, p, 1, sums[i] + p);
        }
    }
    for (size_t i = 0; i < n_panels; i++)
        ak_i8mm_store(sums[i], n, y + i * AK_NEON_MICROPANEL_ROWS, y_stride);
}

AK_KERNEL void dot_panel_i8(bool has_minimum, const uint8_t *panel, size_t n_tiles, size_t k,
                            const uint8_t *activations, size_t act_bytes, size_t n, float *y,
                            size_t y_stride)
{
    const struct ak_neon_micropanel32 *panels =
        (const struct ak_neon_micropanel32 *)(const void *)panel;
    for (size_t t = 0; t < n; t += 2 * AK_I8MM_PAIRS)
        dot_tokens(has_minimum, panels, 2 * n_tiles, k / AK_BLOCK_K, activations + t * act_bytes,
                   act_bytes, ak_min_size(n - t, 2 * AK_I8MM_PAIRS), y + t * y_stride, y_stride);
}

static void unpack_panel_i8(enum ak_quant_type type, const uint8_t *tiles, size_t n_tiles, size_t k,
                            uint8_t *panel)
{
    size_t n_blocks = k / AK_BLOCK_K;
    struct ak_neon_micropanel32 *panels = (struct ak_neon_micropanel32 *)(void *)panel;
    for (size_t i = 0; i < n_tiles; i++, panels += 2 * n_blocks) {
        for (size_t b = 0; b < n_blocks; b += AK_TILE_BLOCKS) {
            size_t blocks = ak_min_size(n_blocks - b, AK_TILE_BLOCKS);
            ak_neon_unpack_any32(type, true, tiles, blocks, panels + b, panels + n_blocks + b);
            tiles += ak_cpu_tile_bytes(type, blocks);
        }
    }
}

#define TILE32(name, NAME) static AK_UNPACK_PANEL_I8(unpack_##name, AK_QUANT_##NAME);
#include "engine/cpu/types.def"

static AK_DOT_PANEL_I8(dot_plain, false);
static AK_DOT_PANEL_I8(dot_minimum, true);

AK_SETTER(panel_i8_32)
{
#define TILE32(name, NAME)                                                                         \
    k->tile[AK_QUANT_##NAME].unpack_panel_i8 = unpack_##name;                                      \
    k->tile[AK_QUANT_##NAME].dot_panel_i8 =                                                        \
        ak_neon_has_minimum(AK_QUANT_##NAME) ? dot_minimum : dot_plain;
#include "engine/cpu/types.def"
}
