/* Products of types with blocks of 256 elements and integer scales per 32 or 16 of them. Shared by
 * all ISAs of 256-bit vectors, each with its own AK_STEP_H.
 *
 * One function, dot_super_blocks, computes them all: 16 rows (two vectors) times up to GROUP tokens
 * over some super-blocks, from packed tiles (GEMV, skinny GEMM) or from an int8 panel (GEMM). Per
 * super-block of a tile row, a panel has 64 lines with one unsigned byte per number, then the
 * factors:
 *
 *   8 or 16 lines of scales, each twice as int16
 *   4 or 8 lines of pairs, to be multiplied with pair sums of the activations:
 *   the minimums (Q2_K, Q4_K, Q5_K), or the scales again, for the offset (Q3_K, Q6_K, V3, V4)
 *   1 line of f32 scales | 1 line of f32 scales of the minimums, if there are any
 *
 * A tile's factors are converted to the same layout first. */
#include "engine/cpu/setter.h"

#include "engine/cpu/tmpl/tiles_v256.h"
#include "engine/cpu/tile256.h"

enum {
    /* super-blocks of a panel used for all tokens before the next ones: stays in the first-level
     * cache */
    CHUNK_SUPER_BLOCKS = 2,
    WIDE_BLOCKS = CHUNK_SUPER_BLOCKS * AK_TILE_BLOCKS,
    PANEL_QUANTS_BYTES = AK_TILE_K / 4 * AK_LINE_BYTES,
    FACTOR_LINES = 26 /* maximum */
};
_Static_assert(PANEL_QUANTS_BYTES + FACTOR_LINES * AK_LINE_BYTES <=
                   AK_TILE_BLOCKS * AK_PANEL_I8_BLOCK_BYTES_MAX,
               "room for a super-block");

/* Scales per super-block: one per 16 or per 32 elements. */
AK_KERNEL size_t n_scales(enum ak_quant_type type)
{
    return type == AK_QUANT_Q2_K || type == AK_QUANT_Q3_K || type == AK_QUANT_Q6_K ||
                   type == AK_QUANT_V3 ?
               16 :
               8;
}

AK_KERNEL bool has_minimums(enum ak_quant_type type)
{
    return type == AK_QUANT_Q2_K || type == AK_QUANT_Q4_K || type == AK_QUANT_Q5_K;
}

AK_KERNEL bool is_wide(enum ak_quant_type type)
{
    return type == AK_QUANT_IQ4_XS;
}

/* Log2 of the offset in numbers that have neither minimums nor 8 bits. */
AK_KERNEL int offset_bits(enum ak_quant_type type)
{
    return type == AK_QUANT_Q3_K ? 2 : type == AK_QUANT_V3 ? 6 : 5;
}

/* Lines of pairs per super-block. */
AK_KERNEL size_t n_pairs(enum ak_quant_type type)
{
    return is_wide(type) ? 0 : n_scales(type) / 2;
}

/* Largest number of a type that is not wide. */
AK_KERNEL unsigned max_number(enum ak_quant_type type)
{
    return type == AK_QUANT_Q2_K ? 3 :
           type == AK_QUANT_Q3_K ? 7 :
           type == AK_QUANT_Q4_K ? 15 :
           type == AK_QUANT_Q5_K ? 31 :
           type == AK_QUANT_V3   ? 127 :
                                   63;
}

AK_KERNEL size_t factor_lines(enum ak_quant_type type)
{
    return n_scales(type) + n_pairs(type) + (has_minimums(type) ? 2 : 1);
}

AK_KERNEL size_t panel_super_block_bytes(enum ak_quant_type type)
{
    return PANEL_QUANTS_BYTES + factor_lines(type) * AK_LINE_BYTES;
}

/* ---- Factors ------------------------------------------------------------ */
/* Half lines of bytes: [i] has scales 4i … 4i + 3 in the bytes of each lane. `others` are the
 * minimums, or the scales again. */
struct ak_avx2_factors {
    __m256i scales[4], others[4];
};

AK_KERNEL struct ak_avx2_factors q2_k_factors(const uint8_t *lines)
{
    struct ak_avx2_factors f;
    AK_UNROLLED_FOR (size_t i = 0; i < 4; i++) {
        __m256i both = load_bytes(lines + i * AK_LINE_BYTES);
        f.scales[i] = low_nibbles(both);
        f.others[i] = high_nibbles(both);
    }
    return f;
}

AK_KERNEL struct ak_avx2_factors q3_k_factors(const uint8_t *lines)
{
    struct ak_avx2_factors f;
    __m256i a = load_bytes(lines), b = load_bytes(lines + AK_LINE_BYTES),
            high = load_bytes(lines + 2 * AK_LINE_BYTES);
    f.scales[0] = or_masked(low_nibbles(a), _mm256_slli_epi16(high, 4), 0x30);
    f.scales[1] = or_masked(low_nibbles(b), _mm256_slli_epi16(high, 2), 0x30);
    f.scales[2] = or_masked(high_nibbles(a), high, 0x30);
    f.scales[3] = or_masked(high_nibbles(b), _mm256_srli_epi16(high, 2), 0x30);
    AK_UNROLLED_FOR (size_t i = 0; i < 4; i++)
        f.others[i] = f.scales[i] = _mm256_sub_epi8(f.scales[i], _mm256_set1_epi8(32));
    return f;
}

AK_KERNEL struct ak_avx2_factors q45_k_factors(const uint8_t *lines)
{
    const __m256i six = _mm256_set1_epi8(63);
    __m256i a = load_bytes(lines), b = load_bytes(lines + AK_LINE_BYTES),
            c = load_bytes(lines + 2 * AK_LINE_BYTES);
    return (struct ak_avx2_factors){
        .scales = { _mm256_and_si256(a, six),
                    or_masked(low_nibbles(c), _mm256_srli_epi16(a, 2), 0x30) },
        .others = { _mm256_and_si256(b, six),
                    or_masked(high_nibbles(c), _mm256_srli_epi16(b, 2), 0x30) },
    };
}

AK_KERNEL struct ak_avx2_factors q6_k_factors(const uint8_t *lines)
{
    struct ak_avx2_factors f;
    AK_UNROLLED_FOR (size_t i = 0; i < 4; i++)
        f.others[i] = f.scales[i] = load_bytes(lines + i * AK_LINE_BYTES);
    return f;
}

/* 2 · scale + 1 */
AK_KERNEL __m256i odd_scales(__m256i nibbles)
{
    return _mm256_or_si256(_mm256_add_epi8(nibbles, nibbles), _mm256_set1_epi8(1));
}

/* V3; V4 has half of the scales. */
AK_KERNEL struct ak_avx2_factors value_factors(enum ak_quant_type type, const uint8_t *lines)
{
    struct ak_avx2_factors f;
    AK_UNROLLED_FOR (size_t i = 0; i < n_scales(type) / 8; i++) {
        __m256i line = load_bytes(lines + i * AK_LINE_BYTES);
        f.others[2 * i] = f.scales[2 * i] = odd_scales(low_nibbles(line));
        f.others[2 * i + 1] = f.scales[2 * i + 1] = odd_scales(high_nibbles(line));
    }
    return f;
}

/* `first` is the line of d and high scale bits. */
AK_KERNEL struct ak_avx2_factors iq4_xs_factors(const uint8_t *first, const uint8_t *low)
{
    struct ak_avx2_factors f;
    AK_UNROLLED_FOR (int i = 0; i < 2; i++) {
        __m256i four = _mm256_srli_epi32(load_bytes(low), 16 * i),
                two = _mm256_srli_epi32(load_bytes(first), 16 + 8 * i);
        __m256i bytes = _mm256_setzero_si256();
        AK_UNROLLED_FOR (int j = 0; j < 4; j++) {
            bytes = _mm256_or_si256(bytes, _mm256_and_si256(_mm256_slli_epi32(four, 4 * j),
                                                            _mm256_set1_epi32(15 << 8 * j)));
            bytes = _mm256_or_si256(bytes, _mm256_and_si256(_mm256_slli_epi32(two, 6 * j + 4),
                                                            _mm256_set1_epi32(48 << 8 * j)));
        }
        f.others[i] = f.scales[i] = _mm256_sub_epi8(bytes, _mm256_set1_epi8(32));
    }
    return f;
}

AK_KERNEL struct ak_avx2_factors factors_of(enum ak_quant_type type, const uint8_t *tile)
{
    const uint8_t *lines = tile + AK_K_SCALES_AT;
    switch (type) {
    case AK_QUANT_Q2_K: return q2_k_factors(lines);
    case AK_QUANT_Q3_K: return q3_k_factors(lines);
    case AK_QUANT_Q4_K:
    case AK_QUANT_Q5_K: return q45_k_factors(lines);
    case AK_QUANT_Q6_K: return q6_k_factors(lines);
    case AK_QUANT_V3:
    case AK_QUANT_V4: return value_factors(type, lines);
    default: return iq4_xs_factors(tile, lines);
    }
}

/* Byte j (0 … 3) of each 32-bit lane, signed, in both its 16-bit halves. */
AK_KERNEL __m256i byte_twice(__m256i bytes, size_t j)
{
    const __m256i lanes = _mm256_set_epi32(0xc800c80, 0x8800880, 0x4800480, 0x0800080, 0xc800c80,
                                           0x8800880, 0x4800480, 0x0800080);
    __m256i pick = _mm256_add_epi16(lanes, _mm256_set1_epi16((int16_t)(j << 8)));
    return _mm256_srai_epi16(_mm256_shuffle_epi8(bytes, pick), 8);
}

/* Rows 8·half … 8·half + 7 of d, in types that have no dmin beside it. */
AK_KERNEL __m256 lone_scales(enum ak_quant_type type, const uint8_t *tile, size_t half)
{
    __m256 d = load_f16(tile + half * 16);
    return type == AK_QUANT_V3 || type == AK_QUANT_V4 ?
               _mm256_mul_ps(d, _mm256_set1_ps(ak_cpu_table_factor(tile))) :
               d;
}

AK_KERNEL bool has_lone_scales(enum ak_quant_type type)
{
    return type == AK_QUANT_Q3_K || type == AK_QUANT_Q6_K || type == AK_QUANT_V3 ||
           type == AK_QUANT_V4;
}

AK_KERNEL void tile_factors(enum ak_quant_type type, const uint8_t *tile, uint8_t *to)
{
    AK_UNROLLED_FOR (size_t half = 0; half < 2; half++, tile += HALF_LINE, to += HALF_LINE) {
        struct ak_avx2_factors f = factors_of(type, tile);
        uint8_t *pairs = to + n_scales(type) * AK_LINE_BYTES,
                *rest = pairs + n_pairs(type) * AK_LINE_BYTES;
        AK_UNROLLED_FOR (size_t j = 0; j < n_scales(type); j++)
            store_bytes(to + j * AK_LINE_BYTES, byte_twice(f.scales[j / 4], j % 4));
        AK_UNROLLED_FOR (size_t i = 0; i < n_pairs(type) / 2;
                         i++) { /* even bytes of a lane first, then odd ones */
            store_bytes(pairs + 2 * i * AK_LINE_BYTES,
                        _mm256_srai_epi16(_mm256_slli_epi16(f.others[i], 8), 8));
            store_bytes(pairs + (2 * i + 1) * AK_LINE_BYTES, _mm256_srai_epi16(f.others[i], 8));
        }
        if (has_lone_scales(type)) {
            _mm256_storeu_ps((float *)(void *)rest,
                             lone_scales(type, tile - half * HALF_LINE, half));
        } else { /* lower half of a lane: the row's scale; upper half: the scale of its minimums */
            __m256i both = load_bytes(tile);
            both = _mm256_packus_epi32(_mm256_and_si256(both, _mm256_set1_epi32(0xffff)),
                                       _mm256_srli_epi32(both, 16));
            both = _mm256_permute4x64_epi64(both, 0xd8);
            _mm256_storeu_ps((float *)(void *)rest, _mm256_cvtph_ps(_mm256_castsi256_si128(both)));
            if (has_minimums(type))
                _mm256_storeu_ps((float *)(void *)(rest + AK_LINE_BYTES),
                                 _mm256_cvtph_ps(_mm256_extracti128_si256(both, 1)));
        }
    }
}

/* ---- Numbers ------------------------------------------------------------ */
/* Parts of 32 k that share lines of a tile: the nibbles of 8 lines (Q4_K, Q5_K), quarters of a half
 * (Q2_K, Q6_K), all (Q3_K, V3). A panel has nothing to share. */
AK_KERNEL size_t parts_of_lines(enum ak_quant_type type, bool is_panel)
{
    if (is_panel || type == AK_QUANT_IQ4_XS || type == AK_QUANT_V4)
        return 1;
    return type == AK_QUANT_Q3_K || type == AK_QUANT_V3   ? 8 :
           type == AK_QUANT_Q4_K || type == AK_QUANT_Q5_K ? 2 :
                                                            4;
}

/* Word of sub-block `sub` from three lines. */
AK_KERNEL __m256i q3_k_word(const uint8_t *lines, size_t sub)
{
    if (sub < 6) {
        __m256i v = load_bytes(lines + sub / 2 * AK_LINE_BYTES);
        return _mm256_and_si256(sub % 2 ? _mm256_srli_epi16(v, 3) : v, _mm256_set1_epi8(7));
    }
    __m256i two = load_bytes(lines + (sub - 6) * AK_LINE_BYTES),
            one = load_bytes(lines + 2 * AK_LINE_BYTES);
    two = _mm256_and_si256(_mm256_srli_epi16(two, 5), _mm256_set1_epi8(6));
    return or_masked(two, _mm256_srli_epi16(one, (int)sub), 1);
}

AK_KERNEL __m256i q6_k_word(const uint8_t *lines, size_t quarter)
{
    __m256i low = load_bytes(lines + AK_Q6_K_LOW_AT + quarter % 2 * BLOCK_WORDS * AK_LINE_BYTES),
            high = load_bytes(lines);
    low = quarter < 2 ? low_nibbles(low) : high_nibbles(low);
    if (quarter < 2)
        high = _mm256_slli_epi16(high, quarter == 0 ? 4 : 2);
    else if (quarter == 3)
        high = _mm256_srli_epi16(high, 2);
    return or_masked(low, high, 48);
}

/* Rows 8·half … 8·half + 7 of word i of part `part` in group `group`. */
AK_KERNEL __m256i super_block_word(enum ak_quant_type type, bool is_panel, const uint8_t *w,
                                   size_t group, size_t part, size_t i, size_t half)
{
    const uint8_t *line = w + i * AK_LINE_BYTES + half * HALF_LINE;
    if (is_panel)
        return load_bytes(line + group * BLOCK_WORDS * AK_LINE_BYTES);
    switch (type) {
    case AK_QUANT_Q2_K: {
        __m256i v = load_bytes(line + AK_Q2_K_QUANTS_AT + group * BLOCK_WORDS * AK_LINE_BYTES);
        return _mm256_and_si256(part ? _mm256_srli_epi16(v, (int)(2 * part)) : v,
                                _mm256_set1_epi8(3));
    }
    case AK_QUANT_Q3_K:
        return q3_k_word(w + AK_Q3_K_QUANTS_AT + i * 3 * AK_LINE_BYTES + half * HALF_LINE, part);
    case AK_QUANT_Q4_K:
    case AK_QUANT_Q5_K: {
        __m256i v =
            load_bytes(line + (type == AK_QUANT_Q5_K ? AK_Q5_K_QUANTS_AT : AK_Q4_K_QUANTS_AT) +
                       group * BLOCK_WORDS * AK_LINE_BYTES);
        v = part == 0 ? low_nibbles(v) : high_nibbles(v);
        if (type == AK_QUANT_Q4_K)
            return v;
        const __m256i bit = _mm256_set1_epi8((char)(1 << (2 * group + part)));
        __m256i fifth =
            _mm256_cmpeq_epi8(_mm256_and_si256(load_bytes(line + AK_Q5_K_HIGH_AT), bit), bit);
        return or_masked(v, fifth, 16);
    }
    case AK_QUANT_Q6_K:
        return q6_k_word(line + AK_Q6_K_HALVES_AT + group * AK_Q6_K_HALF_BYTES, part);
    case AK_QUANT_V3:
        return table_values(
            w + AK_TABLE_AT, 1 << offset_bits(type),
            q3_k_word(w + AK_V3_QUANTS_AT + i * 3 * AK_LINE_BYTES + half * HALF_LINE, part));
    default: { /* IQ4_XS, V4 */
        line = w + AK_IQ4_XS_QUANTS_AT + (group * 4 + i % 4) * AK_LINE_BYTES + half * HALF_LINE;
        __m256i nibbles = i < 4 ? low_nibbles(load_bytes(line)) : high_nibbles(load_bytes(line));
        return type == AK_QUANT_V4 ?
                   table_values(w + AK_TABLE_AT, 1 << offset_bits(type), nibbles) :
                   nibble_values(type, WIDE_BIAS, nibbles);
    }
    }
}

/* ---- Products ----------------------------------------------------------- */
/* sums[t][half] += scale_j · Σ w·a over a part of 32 k, for each of its scales. */
AK_KERNEL void narrow_part(enum ak_quant_type type, bool is_panel, const uint8_t *w, size_t group,
                           size_t part, const uint8_t *scales, const uint8_t *activations,
                           size_t act_bytes, size_t n, __m256i sums[GROUP][2])
{
    const size_t sub_words = AK_TILE_K / 4 / n_scales(type),
                 together = words_together(max_number(type), sub_words);
    __m256i partial[GROUP][2];
    for (size_t first = 0; first < BLOCK_WORDS; first += together) {
        AK_UNROLLED_FOR (size_t j = 0; j < together; j++) {
            size_t i = first + j;
            const __m256i word[2] = { super_block_word(type, is_panel, w, group, part, i, 0),
                                      super_block_word(type, is_panel, w, group, part, i, 1) };
            AK_UNROLLED_FOR (size_t t = 0; t < n; t++) {
                __m256i a = broadcast_word(activations + t * act_bytes + i * 4);
                AK_UNROLLED_FOR (size_t half = 0; half < 2; half++)
                    partial[t][half] =
                        add_word(j == 0, _mm256_setzero_si256(), partial[t][half], word[half], a);
            }
        }
        const uint8_t *scale = scales + first / sub_words * AK_LINE_BYTES;
        AK_UNROLLED_FOR (size_t t = 0; t < n; t++)
            AK_UNROLLED_FOR (size_t half = 0; half < 2; half++)
                sums[t][half] = add_scaled_partial(sums[t][half], partial[t][half],
                                                   load_bytes(scale + half * HALF_LINE));
    }
}

/* Prepares the activations of up to CHUNK_SUPER_BLOCKS super-blocks for wide numbers. */
AK_KERNEL void set_all_wide(const uint8_t *activations, size_t act_bytes, size_t n,
                            size_t n_super_blocks, wide_activations to[GROUP][WIDE_BLOCKS])
{
    for (size_t t = 0; t < n; t++) {
        const struct ak_cpu_act256 *act =
            (const struct ak_cpu_act256 *)(const void *)(activations + t * act_bytes);
        for (size_t b = 0; b < n_super_blocks * AK_TILE_BLOCKS; b++) {
            const struct ak_cpu_act256 *own = act + b / AK_TILE_BLOCKS;
            const int32_t *sums = own->minus32_sum16 + b % AK_TILE_BLOCKS * 2;
            set_wide_activations(own->q + b % AK_TILE_BLOCKS * AK_BLOCK_K, 4 * (sums[0] + sums[1]),
                                 &to[t][b]);
        }
    }
}

/* As narrow_part, for wide numbers; the part is block b of `activations`. */
AK_KERNEL void wide_part(enum ak_quant_type type, bool is_panel, const uint8_t *w, size_t group,
                         const uint8_t *scale, wide_activations activations[GROUP][WIDE_BLOCKS],
                         size_t b, size_t n, __m256i sums[GROUP][2])
{
    __m256i block[GROUP][2];
    AK_UNROLLED_FOR (size_t t = 0; t < n; t++)
        block[t][0] = block[t][1] = broadcast_word(&activations[t][b].start);
    for (size_t line = 0; line < BLOCK_WORDS / 2; line++) {
        AK_UNROLLED_FOR (size_t i = line; i < BLOCK_WORDS; i += 4) {
            const __m256i word[2] = { super_block_word(type, is_panel, w, group, 0, i, 0),
                                      super_block_word(type, is_panel, w, group, 0, i, 1) };
            AK_UNROLLED_FOR (size_t t = 0; t < n; t++) {
                wide_word a = get_wide_word(&activations[t][b], i);
                AK_UNROLLED_FOR (size_t half = 0; half < 2; half++)
                    block[t][half] = add_wide_word(block[t][half], word[half], a);
            }
        }
    }
    AK_UNROLLED_FOR (size_t half = 0; half < 2; half++) {
        __m256i lanes = _mm256_srai_epi32(load_bytes(scale + half * HALF_LINE), 16);
        AK_UNROLLED_FOR (size_t t = 0; t < n; t++)
            sums[t][half] = in_order(
                _mm256_add_epi32(sums[t][half], _mm256_mullo_epi32(block[t][half], lanes)));
    }
}

/* sums[t][half] = Σ_j scale_j · Σ w·a over a super-block, offset included; its first block is
 * number `first` of `wide`. */
AK_KERNEL void super_block_sums(enum ak_quant_type type, bool is_panel, const uint8_t *w,
                                const uint8_t *scales, const uint8_t *activations, size_t act_bytes,
                                wide_activations wide[GROUP][WIDE_BLOCKS], size_t first, size_t n,
                                size_t distance, __m256i sums[GROUP][2])
{
    const size_t parts = parts_of_lines(type, is_panel);
    AK_UNROLLED_FOR (size_t t = 0; t < n; t++)
        sums[t][0] = sums[t][1] = _mm256_setzero_si256();
    for (size_t group = 0; group < 8 / parts; group++) {
        AK_UNROLLED_FOR (size_t part = 0; part < parts;
                         part++, activations += AK_BLOCK_K,
                         scales += n_scales(type) / 8 * AK_LINE_BYTES) {
            if (!is_panel && distance)
                ak_cpu_prefetch(w + (group * parts + part) * (ak_cpu_tile256_bytes(type) / 8),
                                ak_cpu_tile256_bytes(type) / 8, distance);
            if (is_wide(type))
                wide_part(type, is_panel, w, group, scales, wide, first + group * parts + part, n,
                          sums);
            else
                narrow_part(type, is_panel, w, group, part, scales, activations, act_bytes, n,
                            sums);
        }
    }
}

/* Σ of the products of pairs: the minimums or the offset, without their common factor. */
AK_KERNEL __m256i pair_sum(enum ak_quant_type type, const uint8_t *pairs,
                           const struct ak_cpu_act256 *act)
{
    const int16_t *sums = n_scales(type) == 16 ? act->pair_sum16 : act->pair_sum32;
    __m256i sum = _mm256_setzero_si256();
    AK_UNROLLED_FOR (size_t i = 0; i < n_pairs(type); i++)
        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(load_bytes(pairs + i * AK_LINE_BYTES),
                                                      broadcast_word(sums + 2 * i)));
    return sum;
}

/* Adds n_super_blocks super-blocks of w to y, for n ≤ GROUP tokens. `wide`: the same activations,
 * prepared for wide numbers. */
AK_KERNEL void dot_super_blocks(enum ak_quant_type type, bool is_panel, const uint8_t *w,
                                size_t n_super_blocks, const uint8_t *activations, size_t act_bytes,
                                wide_activations wide[GROUP][WIDE_BLOCKS], size_t n, float *y,
                                size_t y_stride, size_t distance)
{
    uint8_t own[FACTOR_LINES * AK_LINE_BYTES] __attribute__((aligned(AK_LINE_BYTES)));
    for (size_t s = 0; s < n_super_blocks; s++, activations += sizeof(struct ak_cpu_act256),
                w += is_panel ? panel_super_block_bytes(type) : ak_cpu_tile256_bytes(type)) {
        const uint8_t *factors = is_panel ? w + PANEL_QUANTS_BYTES : own;
        if (!is_panel)
            tile_factors(type, w, own);
        __m256i sums[GROUP][2];
        super_block_sums(type, is_panel, w, factors, activations, act_bytes, wide,
                         s * AK_TILE_BLOCKS, n, distance, sums);
        const uint8_t *pairs = factors + n_scales(type) * AK_LINE_BYTES,
                      *rest = pairs + n_pairs(type) * AK_LINE_BYTES;
        AK_UNROLLED_FOR (size_t t = 0; t < n; t++) {
            const struct ak_cpu_act256 *act =
                (const struct ak_cpu_act256 *)(const void *)(activations + t * act_bytes);
            __m256 act_scale = _mm256_set1_ps(act->scale);
            AK_UNROLLED_FOR (size_t half = 0; half < 2; half++) {
                float *out = y + t * y_stride + half * 8;
                const float *scale = (const float *)(const void *)(rest + half * HALF_LINE);
                __m256i sum = sums[t][half],
                        of_pairs = pair_sum(type, pairs + half * HALF_LINE, act);
                if (!has_minimums(type) && !is_wide(type))
                    sum = _mm256_sub_epi32(sum, _mm256_slli_epi32(of_pairs, offset_bits(type)));
                __m256 acc = _mm256_fmadd_ps(_mm256_mul_ps(_mm256_loadu_ps(scale), act_scale),
                                             _mm256_cvtepi32_ps(sum), _mm256_loadu_ps(out));
                if (has_minimums(type))
                    acc = _mm256_fnmadd_ps(
                        _mm256_mul_ps(_mm256_loadu_ps(scale + AK_TILE_ROWS), act_scale),
                        _mm256_cvtepi32_ps(of_pairs), acc);
                _mm256_storeu_ps(out, acc);
            }
        }
    }
}

/* A tile times n ≤ GROUP tokens; n is a constant. */
AK_KERNEL void dot_tile(enum ak_quant_type type, const uint8_t *w, size_t n_super_blocks,
                        const uint8_t *activations, size_t act_bytes, size_t n, float *y,
                        size_t y_stride, size_t distance)
{
    wide_activations wide[GROUP][WIDE_BLOCKS];
    if (is_wide(type))
        set_all_wide(activations, act_bytes, n, n_super_blocks, wide);
    dot_super_blocks(type, false, w, n_super_blocks, activations, act_bytes, wide, n, y, y_stride,
                     distance);
}

AK_KERNEL void dot_skinny(enum ak_quant_type type, const uint8_t *w, size_t n_super_blocks,
                          const uint8_t *activations, size_t act_bytes, size_t n, float *y,
                          size_t y_stride, size_t distance)
{
    for (; n >= GROUP; n -= GROUP, activations += GROUP * act_bytes, y += GROUP * y_stride)
        dot_tile(type, w, n_super_blocks, activations, act_bytes, GROUP, y, y_stride, distance);
    AK_CONSTANT(
        n, 3, N,
        dot_tile(type, w, n_super_blocks, activations, act_bytes, N, y, y_stride, distance));
}

AK_KERNEL void dot_tiles(enum ak_quant_type type, const uint8_t *tiles, size_t n_tiles, size_t k,
                         const uint8_t *activations, size_t act_bytes, size_t n, float *y,
                         size_t y_stride, size_t distance)
{
    size_t n_super_blocks = k / AK_TILE_K;
    for (size_t i = 0; i < n_tiles; i++, y += AK_TILE_ROWS) {
        zero_rows(y, y_stride, n);
        for (size_t s = 0; s < n_super_blocks; s++, tiles += ak_cpu_tile256_bytes(type))
            dot_skinny(type, tiles, 1, activations + s * sizeof(struct ak_cpu_act256), act_bytes, n,
                       y, y_stride, distance);
    }
}

AK_KERNEL void unpack_panel_i8(enum ak_quant_type type, const uint8_t *tiles, size_t n_tiles,
                               size_t k, uint8_t *panel)
{
    size_t parts = parts_of_lines(type, false);
    for (size_t s = 0; s < n_tiles * (k / AK_TILE_K); s++, tiles += ak_cpu_tile256_bytes(type)) {
        for (size_t group = 0; group < 8 / parts; group++)
            AK_UNROLLED_FOR (size_t part = 0; part < parts; part++)
                for (size_t i = 0; i < BLOCK_WORDS; i++, panel += AK_LINE_BYTES) {
                    store_bytes(panel, super_block_word(type, false, tiles, group, part, i, 0));
                    store_bytes(panel + HALF_LINE,
                                super_block_word(type, false, tiles, group, part, i, 1));
                }
        tile_factors(type, tiles, panel);
        panel += panel_super_block_bytes(type) - PANEL_QUANTS_BYTES;
    }
}

/* Some super-blocks of all tile rows, row_bytes apart, times n tokens; n is a constant. */
AK_KERNEL void dot_chunk(enum ak_quant_type type, const uint8_t *panel, size_t n_tiles,
                         size_t row_bytes, size_t n_super_blocks, const uint8_t *activations,
                         size_t act_bytes, size_t n, float *y, size_t y_stride)
{
    wide_activations wide[GROUP][WIDE_BLOCKS];
    if (is_wide(type))
        set_all_wide(activations, act_bytes, n, n_super_blocks, wide);
    for (size_t i = 0; i < n_tiles; i++)
        dot_super_blocks(type, true, panel + i * row_bytes, n_super_blocks, activations, act_bytes,
                         wide, n, y + i * AK_TILE_ROWS, y_stride, 0);
}

AK_KERNEL void dot_panel_i8(enum ak_quant_type type, const uint8_t *panel, size_t n_tiles, size_t k,
                            const uint8_t *activations, size_t act_bytes, size_t n, float *y,
                            size_t y_stride)
{
    const size_t n_super_blocks = k / AK_TILE_K,
                 row_bytes = n_super_blocks * panel_super_block_bytes(type);
    for (size_t i = 0; i < n_tiles; i++)
        zero_rows(y + i * AK_TILE_ROWS, y_stride, n);
    for (size_t first = 0; first < n_super_blocks; first += CHUNK_SUPER_BLOCKS) {
        const size_t count = ak_min_size(n_super_blocks - first, CHUNK_SUPER_BLOCKS);
        const uint8_t *chunk = panel + first * panel_super_block_bytes(type),
                      *a = activations + first * sizeof(struct ak_cpu_act256);
        size_t t = 0;
        for (; t + GROUP <= n; t += GROUP)
            dot_chunk(type, chunk, n_tiles, row_bytes, count, a + t * act_bytes, act_bytes, GROUP,
                      y + t * y_stride, y_stride);
        for (; t < n; t++)
            dot_chunk(type, chunk, n_tiles, row_bytes, count, a + t * act_bytes, act_bytes, 1,
                      y + t * y_stride, y_stride);
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
