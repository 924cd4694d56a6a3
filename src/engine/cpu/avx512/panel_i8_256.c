/* GEMM with K-types, over an int8 panel of one or two tile rows. Q2_K and Q3_K have no scales
 * there: scale times number fits a byte. */
#include "engine/cpu/avx512/panel_i8.h"
#include "engine/cpu/setter.h"

enum { TILES_MAX = AK_PANEL_I8_TILES_MAX, GROUP = 6 };

/* Byte j of each lane as a 16-bit number in both halves of the lane. */
AK_KERNEL __m512i byte_twice(__m512i x, size_t j)
{
    const __m512i lanes =
        _mm512_broadcast_i32x4(_mm_set_epi32(0x0c0c0c0c, 0x08080808, 0x04040404, 0));
    return _mm512_maskz_shuffle_epi8(0x5555555555555555u, x,
                                     _mm512_or_si512(lanes, _mm512_set1_epi8((char)j)));
}

/* A word of 2-bit numbers times a 4-bit scale: at most 45, so there is no carry between bytes. */
AK_KERNEL void unpack_q2_k(const uint8_t *tile, size_t n_tiles, uint8_t *to)
{
    const size_t step = n_tiles * AK_LINE_BYTES;
    __m512i both = load_line(tile);
    for (size_t half = 0; half < 2; half++) {
        const uint8_t *lines = tile + AK_Q2_K_QUANTS_AT + half * BLOCK_WORDS * AK_LINE_BYTES;
        AK_UNROLLED_FOR (size_t quarter = 0; quarter < 4; quarter++) {
            __m512i scales = low_nibbles(
                load_line(tile + AK_K_SCALES_AT + (half * 2 + quarter / 2) * AK_LINE_BYTES));
            AK_UNROLLED_FOR (size_t i = 0; i < BLOCK_WORDS; i++, to += step) {
                __m512i w = _mm512_srli_epi32(load_line(lines + i * AK_LINE_BYTES),
                                              (unsigned)(2 * quarter));
                w = _mm512_and_si512(w, _mm512_set1_epi8(3));
                store_line(to, _mm512_mullo_epi16(w, byte_twice(scales, quarter % 2 * 2 + i / 4)));
            }
        }
    }
    store_line(to, _mm512_castps_si512(lower_halves(both)));
    store_line(to + step, _mm512_castps_si512(upper_halves(both)));
    AK_UNROLLED_FOR (size_t i = 0; i < 8; i++)
        store_line(
            to + (2 + i) * step,
            q2_k_minimum_pairs(load_line(tile + AK_K_SCALES_AT + i / 2 * AK_LINE_BYTES), i % 2));
}

/* Bytes of scale · (q − 4) + 124 with −32 ≤ scale ≤ 31: 0 … 252. Computed as 16-bit numbers modulo
 * 2^16; the rest of the sum cancels the carry of the lower byte. */
AK_KERNEL void unpack_q3_k(const uint8_t *tile, size_t n_tiles, uint8_t *to)
{
    const size_t step = n_tiles * AK_LINE_BYTES;
    __m512i scales[4];
    q3_k_scales(tile + AK_K_SCALES_AT, scales);
    AK_UNROLLED_FOR (size_t sub = 0; sub < PARTS; sub++) {
        AK_UNROLLED_FOR (size_t first = 0; first < 2; first++) {
            __m512i scale = _mm512_sub_epi16(byte_twice(scales[sub / 2], sub % 2 * 2 + first),
                                             _mm512_set1_epi16(32));
            __m512i rest = _mm512_sub_epi16(_mm512_set1_epi16(124), _mm512_slli_epi16(scale, 2));
            rest = _mm512_add_epi16(rest, _mm512_slli_epi16(rest, 8));
            AK_UNROLLED_FOR (size_t i = 0; i < 4; i++, to += step) {
                const uint8_t *at = tile + AK_Q3_K_QUANTS_AT + (first * 4 + i) * 3 * AK_LINE_BYTES;
                const __m512i lines[3] = { load_line(at), load_line(at + AK_LINE_BYTES),
                                           load_line(at + 2 * AK_LINE_BYTES) };
                __m512i w = _mm512_srli_epi32(q3_k_word(lines, sub), q3_k_shift(sub));
                store_line(to, _mm512_add_epi16(_mm512_mullo_epi16(w, scale), rest));
            }
        }
    }
    store_line(to, _mm512_castps_si512(load_halves(tile)));
}

AK_KERNEL void unpack_q45_k(enum ak_quant_type type, const uint8_t *tile, size_t n_tiles,
                            uint8_t *to)
{
    const size_t step = n_tiles * AK_LINE_BYTES;
    const uint8_t *quants = tile + (type == AK_QUANT_Q5_K ? AK_Q5_K_QUANTS_AT : AK_Q4_K_QUANTS_AT);
    __m512i scales[2], minimums[2], both = load_line(tile);
    q4_k_scales(tile + AK_K_SCALES_AT, scales, minimums);
    AK_UNROLLED_FOR (size_t part = 0; part < PARTS; part++) {
        AK_UNROLLED_FOR (size_t i = 0; i < BLOCK_WORDS; i++, to += step) {
            __m512i line = load_line(quants + (part / 2 * BLOCK_WORDS + i) * AK_LINE_BYTES);
            __m512i w = part % 2 ? high_nibbles(line) : low_nibbles(line);
            store_line(
                to, type == AK_QUANT_Q5_K ?
                        q5_k_word(w, load_line(tile + AK_Q5_K_HIGH_AT + i * AK_LINE_BYTES), part) :
                        w);
        }
        store_line(to, byte_of_lane(scales[part / 4], part % 4));
        to += step;
    }
    store_line(to, _mm512_castps_si512(lower_halves(both)));
    store_line(to + step, _mm512_castps_si512(upper_halves(both)));
    AK_UNROLLED_FOR (size_t i = 0; i < 4; i++)
        store_line(to + (2 + i) * step, minimum_pair(minimums, i));
}

AK_KERNEL void unpack_v3(const uint8_t *tile, size_t n_tiles, uint8_t *to)
{
    const size_t step = n_tiles * AK_LINE_BYTES;
    const __m512i table = tile_values(tile);
    AK_UNROLLED_FOR (size_t sub = 0; sub < PARTS; sub++) {
        for (size_t i = 0; i < BLOCK_WORDS; i++, to += step) {
            const uint8_t *at = tile + AK_V3_QUANTS_AT + i * 3 * AK_LINE_BYTES;
            const __m512i lines[3] = { load_line(at), load_line(at + AK_LINE_BYTES),
                                       load_line(at + 2 * AK_LINE_BYTES) };
            store_line(to, _mm512_shuffle_epi8(table, v3_word(lines, sub)));
        }
        __m512i scales = load_line(tile + AK_K_SCALES_AT + sub / 4 * AK_LINE_BYTES);
        store_line(to, nibble_scale(scales, 2 * sub));
        store_line(to + step, nibble_scale(scales, 2 * sub + 1));
        to += 2 * step;
    }
    store_line(to, _mm512_castps_si512(table_scales(tile)));
}

/* IQ4_XS, V4. */
AK_KERNEL void unpack_values(enum ak_quant_type type, const uint8_t *tile, size_t n_tiles,
                             uint8_t *to)
{
    const size_t step = n_tiles * AK_LINE_BYTES;
    const __m512i table = type == AK_QUANT_V4 ? tile_values(tile) : value_table(AK_QUANT_IQ4_XS);
    __m512i first = load_line(tile), low = load_line(tile + AK_K_SCALES_AT);
    AK_UNROLLED_FOR (size_t part = 0; part < PARTS; part++) {
        const uint8_t *lines = tile + AK_IQ4_XS_QUANTS_AT + part * 4 * AK_LINE_BYTES;
        AK_UNROLLED_FOR (size_t i = 0; i < BLOCK_WORDS; i++, to += step) {
            __m512i line = load_line(lines + i % 4 * AK_LINE_BYTES);
            store_line(to,
                       _mm512_shuffle_epi8(table, i < 4 ? low_nibbles(line) : high_nibbles(line)));
        }
        store_line(to, value_scale(type, first, low, part));
        to += step;
    }
    store_line(to,
               _mm512_castps_si512(type == AK_QUANT_V4 ? table_scales(tile) : lower_halves(first)));
}

AK_KERNEL void unpack_q6_k(const uint8_t *tile, size_t n_tiles, uint8_t *to)
{
    const size_t step = n_tiles * AK_LINE_BYTES;
    AK_UNROLLED_FOR (size_t part = 0; part < PARTS; part++) {
        const uint8_t *high = tile + AK_Q6_K_HALVES_AT + part / 4 * AK_Q6_K_HALF_BYTES;
        const uint8_t *low = high + AK_Q6_K_LOW_AT + part % 2 * BLOCK_WORDS * AK_LINE_BYTES;
        AK_UNROLLED_FOR (size_t i = 0; i < BLOCK_WORDS; i++, to += step)
            store_line(to, q6_k_word(load_line(low + i * AK_LINE_BYTES),
                                     load_line(high + i * AK_LINE_BYTES), part % 4));
        __m512i scales = load_line(tile + AK_K_SCALES_AT + part / 2 * AK_LINE_BYTES);
        store_line(to, signed_byte_of_lane(scales, part % 2 * 2));
        store_line(to + step, signed_byte_of_lane(scales, part % 2 * 2 + 1));
        to += 2 * step;
    }
    store_line(to, _mm512_castps_si512(load_halves(tile)));
}

AK_KERNEL void unpack_panel_i8(enum ak_quant_type type, const uint8_t *tiles, size_t n_tiles,
                               size_t k, uint8_t *panel)
{
    for (size_t r = 0; r < n_tiles; r++) {
        for (size_t s = 0; s < k / AK_TILE_K; s++, tiles += ak_cpu_tile256_bytes(type)) {
            uint8_t *to =
                panel + s * super_block_bytes(scaling_of(type), n_tiles) + r * AK_LINE_BYTES;
            switch (type) {
            case AK_QUANT_Q2_K: unpack_q2_k(tiles, n_tiles, to); break;
            case AK_QUANT_Q3_K: unpack_q3_k(tiles, n_tiles, to); break;
            case AK_QUANT_Q4_K:
            case AK_QUANT_Q5_K: unpack_q45_k(type, tiles, n_tiles, to); break;
            case AK_QUANT_Q6_K: unpack_q6_k(tiles, n_tiles, to); break;
            case AK_QUANT_V3: unpack_v3(tiles, n_tiles, to); break;
            default: unpack_values(type, tiles, n_tiles, to); break;
            }
        }
    }
}

/* sums[r][t] += words of a part times activations. */
AK_KERNEL void add_words(size_t n_tiles, size_t n, const uint8_t *words, size_t n_words,
                         const uint8_t *activations, size_t act_bytes,
                         __m512i sums[TILES_MAX][GROUP])
{
    AK_UNROLLED_FOR (size_t i = 0; i < n_words; i++) {
        __m512i w[TILES_MAX];
        AK_UNROLLED_FOR (size_t r = 0; r < n_tiles; r++)
            w[r] = load_line(words + (i * n_tiles + r) * AK_LINE_BYTES);
        AK_UNROLLED_FOR (size_t t = 0; t < n; t++) {
            __m512i a = broadcast_word(activations + t * act_bytes + i * 4);
            AK_UNROLLED_FOR (size_t r = 0; r < n_tiles; r++)
                sums[r][t] = _mm512_dpbusd_epi32(sums[r][t], w[r], a);
        }
    }
}

/* One super-block times n ≤ GROUP tokens, without scales. */
AK_KERNEL void plain_sums(enum ak_avx512_scaling scaling, size_t n_tiles, size_t n,
                          const uint8_t *panel, const uint8_t *activations, size_t act_bytes,
                          __m512i sums[TILES_MAX][GROUP])
{
    AK_UNROLLED_FOR (size_t t = 0; t < n; t++) {
        __m512i start = start_of(scaling, act_of(activations, act_bytes, t), 0);
        AK_UNROLLED_FOR (size_t r = 0; r < n_tiles; r++)
            sums[r][t] = start;
    }
    for (size_t part = 0; part < PARTS; part++, panel += part_bytes(scaling, n_tiles))
        add_words(n_tiles, n, panel, BLOCK_WORDS, activations + part * AK_BLOCK_K, act_bytes, sums);
}

/* The same with scales: scaled[r][t] = Σ_j scale_j · Σ w·a. */
AK_KERNEL void scaled_sums(enum ak_avx512_scaling scaling, size_t n_tiles, size_t n,
                           const uint8_t *panel, const uint8_t *activations, size_t act_bytes,
                           __m512i scaled[TILES_MAX][GROUP])
{
    const size_t subs = scales_of_part(scaling), words = BLOCK_WORDS / (subs ? subs : 1);
    AK_UNROLLED_FOR (size_t r = 0; r < n_tiles; r++)
        AK_UNROLLED_FOR (size_t t = 0; t < n; t++)
            scaled[r][t] = _mm512_setzero_si512();
    for (size_t part = 0; part < PARTS; part++, panel += part_bytes(scaling, n_tiles)) {
        AK_UNROLLED_FOR (size_t sub = 0; sub < subs; sub++) {
            __m512i sums[TILES_MAX][GROUP];
            AK_UNROLLED_FOR (size_t t = 0; t < n; t++) {
                __m512i start =
                    start_of(scaling, act_of(activations, act_bytes, t), part * subs + sub);
                AK_UNROLLED_FOR (size_t r = 0; r < n_tiles; r++)
                    sums[r][t] = start;
            }
            add_words(n_tiles, n, panel + sub * words * n_tiles * AK_LINE_BYTES, words,
                      activations + part * AK_BLOCK_K + sub * words * 4, act_bytes, sums);
            AK_UNROLLED_FOR (size_t r = 0; r < n_tiles; r++) {
                __m512i scale =
                    load_line(panel + ((BLOCK_WORDS + sub) * n_tiles + r) * AK_LINE_BYTES);
                AK_UNROLLED_FOR (size_t t = 0; t < n; t++)
                    scaled[r][t] =
                        _mm512_add_epi32(scaled[r][t], _mm512_mullo_epi32(sums[r][t], scale));
            }
        }
    }
}

/* n_tiles tile rows times n ≤ GROUP tokens; y holds the float sums between super-blocks. */
AK_KERNEL void micro(enum ak_avx512_scaling scaling, size_t n_tiles, size_t n, const uint8_t *panel,
                     size_t n_super_blocks, const uint8_t *activations, size_t act_bytes, float *y,
                     size_t y_stride)
{
    for (size_t t = 0; t < n; t++)
        memset(y + t * y_stride, 0, n_tiles * AK_TILE_ROWS * sizeof *y);
    for (size_t s = 0; s < n_super_blocks; s++, activations += sizeof(struct ak_cpu_act256),
                panel += super_block_bytes(scaling, n_tiles)) {
        __m512i scaled[TILES_MAX][GROUP];
        if (scales_of_part(scaling))
            scaled_sums(scaling, n_tiles, n, panel, activations, act_bytes, scaled);
        else
            plain_sums(scaling, n_tiles, n, panel, activations, act_bytes, scaled);
        const uint8_t *rest = panel + PARTS * part_bytes(scaling, n_tiles);
        AK_UNROLLED_FOR (size_t r = 0; r < n_tiles; r++) {
            const struct ak_avx512_super_block_factors factors =
                load_factors(scaling, n_tiles, rest + r * AK_LINE_BYTES);
            AK_UNROLLED_FOR (size_t t = 0; t < n; t++) {
                float *out = y + t * y_stride + r * AK_TILE_ROWS;
                _mm512_storeu_ps(out, add_super_block(scaling, &factors, scaled[r][t],
                                                      act_of(activations, act_bytes, t),
                                                      _mm512_loadu_ps(out)));
            }
        }
    }
}

AK_KERNEL void dot_groups(enum ak_avx512_scaling scaling, size_t n_tiles, const uint8_t *panel,
                          size_t k, const uint8_t *activations, size_t act_bytes, size_t n,
                          float *y, size_t y_stride)
{
    size_t n_super_blocks = k / AK_TILE_K;
    for (; n >= GROUP; n -= GROUP, activations += GROUP * act_bytes, y += GROUP * y_stride)
        micro(scaling, n_tiles, GROUP, panel, n_super_blocks, activations, act_bytes, y, y_stride);
    for (; n >= 3; n -= 3, activations += 3 * act_bytes, y += 3 * y_stride)
        micro(scaling, n_tiles, 3, panel, n_super_blocks, activations, act_bytes, y, y_stride);
    for (; n > 0; n--, activations += act_bytes, y += y_stride)
        micro(scaling, n_tiles, 1, panel, n_super_blocks, activations, act_bytes, y, y_stride);
}

AK_KERNEL void dot_panel_i8(enum ak_avx512_scaling scaling, const uint8_t *panel, size_t n_tiles,
                            size_t k, const uint8_t *activations, size_t act_bytes, size_t n,
                            float *y, size_t y_stride)
{
    if (n_tiles == 2)
        dot_groups(scaling, 2, panel, k, activations, act_bytes, n, y, y_stride);
    else
        dot_groups(scaling, 1, panel, k, activations, act_bytes, n, y, y_stride);
}

#define TILE256(name, NAME) AK_UNPACK_PANEL_I8(ak_avx512_unpack_##name, AK_QUANT_##NAME);
#include "engine/cpu/types.def"

static AK_DOT_PANEL_I8(dot_scales32_minimums, SCALES_32_MINIMUMS);
static AK_DOT_PANEL_I8(dot_scales32_offset128, SCALES_32_OFFSET_128);
static AK_DOT_PANEL_I8(dot_scales16_offset32, SCALES_16_OFFSET_32);
static AK_DOT_PANEL_I8(dot_scales16_offset128, SCALES_16_OFFSET_128);
static AK_DOT_PANEL_I8(dot_minimums16, NO_SCALES_MINIMUMS_16);
static AK_DOT_PANEL_I8(dot_offset124, NO_SCALES_OFFSET_124);

AK_SETTER(panel_i8_256)
{
    static ak_dot_panel_i8_fn *const dot[AK_QUANT_COUNT] = {
        [AK_QUANT_Q2_K] = dot_minimums16,        [AK_QUANT_Q3_K] = dot_offset124,
        [AK_QUANT_Q4_K] = dot_scales32_minimums, [AK_QUANT_Q5_K] = dot_scales32_minimums,
        [AK_QUANT_Q6_K] = dot_scales16_offset32, [AK_QUANT_IQ4_XS] = dot_scales32_offset128,
        [AK_QUANT_V3] = dot_scales16_offset128,  [AK_QUANT_V4] = dot_scales32_offset128,
    };
#define TILE256(name, NAME)                                                                        \
    k->tile[AK_QUANT_##NAME].unpack_panel_i8 = ak_avx512_unpack_##name;                            \
    k->tile[AK_QUANT_##NAME].dot_panel_i8 = dot[AK_QUANT_##NAME];
#include "engine/cpu/types.def"
}
