/* Many tokens times the K-types, over an open slab of one or two tile rows.
 *
 * A slab super-block, for T tile rows: 8 parts of 32 k, each 8 words × T lines and
 * then the integer scales, T lines (Q4_K) or 2 × T (Q6_K, one per 16) | T lines of
 * f32 d | Q4_K: T lines of f32 dmin, 4 × T lines of pairs of mins. */
#include "cpu/avx512/lines.h"

enum { MOST_TILES = AK_SLAB_TILES, GROUP = 6, PARTS = AK_TILE_K / AK_BLOCK_K };

/* Scales of 32 k. */
AK_KERNEL size_t scales_of_part(enum ak_type type)
{
    return type == AK_Q4_K ? 1 : 2;
}

AK_KERNEL size_t part_bytes(enum ak_type type, size_t n_tiles)
{
    return n_tiles * (BLOCK_WORDS + scales_of_part(type)) * AK_LINE_BYTES;
}

AK_KERNEL size_t super_bytes(enum ak_type type, size_t n_tiles)
{
    return PARTS * part_bytes(type, n_tiles) + n_tiles * (type == AK_Q4_K ? 6 : 1) * AK_LINE_BYTES;
}

AK_KERNEL void open_q4_k(const uint8_t *tile, size_t n_tiles, uint8_t *to)
{
    const size_t step = n_tiles * AK_LINE_BYTES;
    __m512i scales[2], minimums[2], both = load_line(tile);
    q4_k_scales(tile + Q4_K_SCALES_AT, scales, minimums);
    AK_UNROLL
    for (size_t part = 0; part < PARTS; part++) {
        AK_UNROLL
        for (size_t i = 0; i < BLOCK_WORDS; i++, to += step) {
            __m512i line = load_line(tile + Q4_K_QUANTS_AT + (part / 2 * BLOCK_WORDS + i) * AK_LINE_BYTES);
            store_line(to, part % 2 ? high_nibbles(line) : low_nibbles(line));
        }
        store_line(to, byte_of_lane(scales[part / 4], part % 4));
        to += step;
    }
    store_line(to, _mm512_castps_si512(lower_halves(both)));
    store_line(to + step, _mm512_castps_si512(upper_halves(both)));
    AK_UNROLL
    for (size_t i = 0; i < 4; i++)
        store_line(to + (2 + i) * step, minimum_pair(minimums, i));
}

AK_KERNEL void open_q6_k(const uint8_t *tile, size_t n_tiles, uint8_t *to)
{
    const size_t step = n_tiles * AK_LINE_BYTES;
    AK_UNROLL
    for (size_t part = 0; part < PARTS; part++) {
        const uint8_t *high = tile + Q6_K_HALVES_AT + part / 4 * Q6_K_HALF_BYTES;
        const uint8_t *low = high + Q6_K_LOW_AT + part % 2 * BLOCK_WORDS * AK_LINE_BYTES;
        AK_UNROLL
        for (size_t i = 0; i < BLOCK_WORDS; i++, to += step)
            store_line(to, q6_k_word(load_line(low + i * AK_LINE_BYTES), load_line(high + i * AK_LINE_BYTES), part % 4));
        __m512i scales = load_line(tile + Q6_K_SCALES_AT + part / 2 * AK_LINE_BYTES);
        store_line(to, signed_byte_of_lane(scales, part % 2 * 2));
        store_line(to + step, signed_byte_of_lane(scales, part % 2 * 2 + 1));
        to += 2 * step;
    }
    store_line(to, _mm512_castps_si512(load_halves(tile)));
}

AK_KERNEL void open_slab(enum ak_type type, const uint8_t *tiles, size_t n_tiles, size_t k, uint8_t *slab)
{
    size_t tile_bytes = ak_tile_bytes(type, AK_TILE_BLOCKS);
    for (size_t r = 0; r < n_tiles; r++) {
        for (size_t s = 0; s < k / AK_TILE_K; s++, tiles += tile_bytes) {
            uint8_t *to = slab + s * super_bytes(type, n_tiles) + r * AK_LINE_BYTES;
            if (type == AK_Q4_K)
                open_q4_k(tiles, n_tiles, to);
            else
                open_q6_k(tiles, n_tiles, to);
        }
    }
}

/* One super-block times n ≤ GROUP tokens: scaled[r][t] = Σ_j scale_j · Σ w·a. */
AK_KERNEL void scaled_sums(enum ak_type type, size_t n_tiles, size_t n, const uint8_t *slab, const uint8_t *acts, size_t act_bytes,
                           __m512i scaled[MOST_TILES][GROUP])
{
    const size_t subs = scales_of_part(type), words = BLOCK_WORDS / subs;
    AK_UNROLL
    for (size_t r = 0; r < n_tiles; r++)
        AK_UNROLL
        for (size_t t = 0; t < n; t++)
            scaled[r][t] = _mm512_setzero_si512();
    for (size_t part = 0; part < PARTS; part++, slab += part_bytes(type, n_tiles)) {
        AK_UNROLL
        for (size_t sub = 0; sub < subs; sub++) {
            __m512i sums[MOST_TILES][GROUP];
            AK_UNROLL
            for (size_t t = 0; t < n; t++) {
                const struct ak_act256 *act = (const struct ak_act256 *)(const void *)(acts + t * act_bytes);
                AK_UNROLL
                for (size_t r = 0; r < n_tiles; r++)
                    sums[r][t] = type == AK_Q6_K ? _mm512_set1_epi32(act->minus32_sum16[part * 2 + sub]) : _mm512_setzero_si512();
            }
            AK_UNROLL
            for (size_t i = sub * words; i < sub * words + words; i++) {
                __m512i w[MOST_TILES];
                AK_UNROLL
                for (size_t r = 0; r < n_tiles; r++)
                    w[r] = load_line(slab + (i * n_tiles + r) * AK_LINE_BYTES);
                AK_UNROLL
                for (size_t t = 0; t < n; t++) {
                    __m512i a = spread(acts + t * act_bytes + part * AK_BLOCK_K + i * 4);
                    AK_UNROLL
                    for (size_t r = 0; r < n_tiles; r++)
                        sums[r][t] = _mm512_dpbusd_epi32(sums[r][t], w[r], a);
                }
            }
            AK_UNROLL
            for (size_t r = 0; r < n_tiles; r++) {
                __m512i scale = load_line(slab + ((BLOCK_WORDS + sub) * n_tiles + r) * AK_LINE_BYTES);
                AK_UNROLL
                for (size_t t = 0; t < n; t++)
                    scaled[r][t] = _mm512_add_epi32(scaled[r][t], _mm512_mullo_epi32(sums[r][t], scale));
            }
        }
    }
}

/* n_tiles tile rows times n ≤ GROUP tokens; float sums are in y between supers. */
AK_KERNEL void micro(enum ak_type type, size_t n_tiles, size_t n, const uint8_t *slab, size_t n_supers, const uint8_t *acts,
                     size_t act_bytes, float *y, size_t y_stride)
{
    for (size_t t = 0; t < n; t++)
        memset(y + t * y_stride, 0, n_tiles * AK_TILE_ROWS * sizeof *y);
    for (size_t s = 0; s < n_supers; s++, acts += sizeof(struct ak_act256), slab += super_bytes(type, n_tiles)) {
        __m512i scaled[MOST_TILES][GROUP];
        scaled_sums(type, n_tiles, n, slab, acts, act_bytes, scaled);
        const uint8_t *rest = slab + PARTS * part_bytes(type, n_tiles);
        AK_UNROLL
        for (size_t r = 0; r < n_tiles; r++) {
            AK_UNROLL
            for (size_t t = 0; t < n; t++) {
                const struct ak_act256 *act = (const struct ak_act256 *)(const void *)(acts + t * act_bytes);
                float *out = y + t * y_stride + r * AK_TILE_ROWS;
                __m512 scale = _mm512_set1_ps(act->scale), d = _mm512_loadu_ps(rest + r * AK_LINE_BYTES);
                __m512 acc = _mm512_fmadd_ps(_mm512_mul_ps(d, scale), _mm512_cvtepi32_ps(scaled[r][t]), _mm512_loadu_ps(out));
                if (type == AK_Q4_K) {
                    __m512i minimum = _mm512_setzero_si512();
                    AK_UNROLL
                    for (size_t i = 0; i < 4; i++)
                        minimum = _mm512_dpwssd_epi32(minimum, load_line(rest + ((2 + i) * n_tiles + r) * AK_LINE_BYTES),
                                                      spread(act->pair_sum32 + 2 * i));
                    __m512 dmin = _mm512_loadu_ps(rest + (n_tiles + r) * AK_LINE_BYTES);
                    acc = _mm512_fnmadd_ps(_mm512_mul_ps(dmin, scale), _mm512_cvtepi32_ps(minimum), acc);
                }
                _mm512_storeu_ps(out, acc);
            }
        }
    }
}

AK_KERNEL void dot_groups(enum ak_type type, size_t n_tiles, const uint8_t *slab, size_t k, const uint8_t *acts, size_t act_bytes, size_t n,
                          float *y, size_t y_stride)
{
    size_t n_supers = k / AK_TILE_K;
    for (; n >= GROUP; n -= GROUP, acts += GROUP * act_bytes, y += GROUP * y_stride)
        micro(type, n_tiles, GROUP, slab, n_supers, acts, act_bytes, y, y_stride);
    for (; n >= 3; n -= 3, acts += 3 * act_bytes, y += 3 * y_stride)
        micro(type, n_tiles, 3, slab, n_supers, acts, act_bytes, y, y_stride);
    for (; n > 0; n--, acts += act_bytes, y += y_stride)
        micro(type, n_tiles, 1, slab, n_supers, acts, act_bytes, y, y_stride);
}

AK_KERNEL void dot_slab(enum ak_type type, const uint8_t *slab, size_t n_tiles, size_t k, const uint8_t *acts, size_t act_bytes, size_t n,
                        float *y, size_t y_stride)
{
    if (n_tiles == 2)
        dot_groups(type, 2, slab, k, acts, act_bytes, n, y, y_stride);
    else
        dot_groups(type, 1, slab, k, acts, act_bytes, n, y, y_stride);
}

void ak_avx512_open_q4_k(const uint8_t *restrict tiles, size_t n_tiles, size_t k, uint8_t *restrict slab)
{
    open_slab(AK_Q4_K, tiles, n_tiles, k, slab);
}

void ak_avx512_open_q6_k(const uint8_t *restrict tiles, size_t n_tiles, size_t k, uint8_t *restrict slab)
{
    open_slab(AK_Q6_K, tiles, n_tiles, k, slab);
}

void ak_avx512_dot_slab_q4_k(const uint8_t *restrict slab, size_t n_tiles, size_t k, const uint8_t *restrict acts, size_t act_bytes,
                             size_t n, float *restrict y, size_t y_stride)
{
    dot_slab(AK_Q4_K, slab, n_tiles, k, acts, act_bytes, n, y, y_stride);
}

void ak_avx512_dot_slab_q6_k(const uint8_t *restrict slab, size_t n_tiles, size_t k, const uint8_t *restrict acts, size_t act_bytes,
                             size_t n, float *restrict y, size_t y_stride)
{
    dot_slab(AK_Q6_K, slab, n_tiles, k, acts, act_bytes, n, y, y_stride);
}
