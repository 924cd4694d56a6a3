/* Decodes interleaved lines: words and scales of 16 rows as AVX-512 vectors. It exists so that all
 * kernels decode a type in the same way. dot32.c and dot256.c multiply tiles with it, panel_i8_32.c
 * and panel_i8_256.c unpack panels with it; amx/ takes sizes and offsets of types from it. */
#ifndef AK_ENGINE_CPU_AVX512_INTERLEAVED_H
#define AK_ENGINE_CPU_AVX512_INTERLEAVED_H

#include "base/mem.h"
#include "engine/cpu/avx512/avx512.h"
#include "engine/cpu/avx512/lanes.h"
#include "engine/cpu/tile256.h"

enum { BLOCK_WORDS = AK_BLOCK_K / 4 };

AK_KERNEL __m512i low_nibbles(__m512i line)
{
    return _mm512_and_si512(line, _mm512_set1_epi8(15));
}

AK_KERNEL __m512i high_nibbles(__m512i line)
{
    return _mm512_and_si512(_mm512_srli_epi16(line, 4), _mm512_set1_epi8(15));
}

/* Adds 16 to the bytes with their bit set in `bits`. */
AK_KERNEL __m512i add_fifth_bits(__m512i words, uint64_t bits)
{
    return _mm512_mask_add_epi8(words, (__mmask64)bits, words, _mm512_set1_epi8(16));
}

/* a | (b & mask) */
AK_KERNEL __m512i or_masked(__m512i a, __m512i b, char mask)
{
    return _mm512_ternarylogic_epi64(a, b, _mm512_set1_epi8(mask), 0xf8);
}

/* Values of all nibbles, made unsigned: IQ4_NL's and IQ4_XS's + 128, MXFP4's + 16. */
AK_KERNEL __m512i value_table(enum ak_quant_type type)
{
    __m128i values = _mm_loadu_si128((const __m128i *)(const void *)(type == AK_QUANT_MXFP4 ?
                                                                         ak_quant_mxfp4_values :
                                                                         ak_quant_iq4_values));
    return _mm512_broadcast_i32x4(
        _mm_add_epi8(values, _mm_set1_epi8((char)(type == AK_QUANT_MXFP4 ? 16 : 0x80))));
}

/* ---- Blocks of 32 ------------------------------------------------------- */
AK_KERNEL bool has_minimum(enum ak_quant_type type)
{
    return type == AK_QUANT_Q4_1 || type == AK_QUANT_Q5_1 || type == AK_QUANT_A4 ||
           type == AK_QUANT_A5 || type == AK_QUANT_A8;
}

AK_KERNEL bool has_fifth_bits(enum ak_quant_type type)
{
    return type == AK_QUANT_Q5_0 || type == AK_QUANT_Q5_1 || type == AK_QUANT_A5;
}

/* Whether each quant is stored as one byte. */
AK_KERNEL bool has_bytes(enum ak_quant_type type)
{
    return type == AK_QUANT_Q8_0 || type == AK_QUANT_A8;
}

AK_KERNEL bool has_values(enum ak_quant_type type)
{
    return type == AK_QUANT_IQ4_NL || type == AK_QUANT_MXFP4;
}

/* Multiple of ak_cpu_act32.minus8_sum that removes the offset still in a block's words. */
enum ak_avx512_offset { OFFSET_0, OFFSET_8, OFFSET_16, OFFSET_128, OFFSET_128_MINIMUM };

/* Whether types with this offset have minimums. */
AK_KERNEL bool offset_has_minimum(enum ak_avx512_offset offset)
{
    return offset == OFFSET_0 || offset == OFFSET_128_MINIMUM;
}

AK_KERNEL enum ak_avx512_offset offset_of(enum ak_quant_type type)
{
    switch (type) {
    case AK_QUANT_Q4_0:
    case AK_QUANT_V2: return OFFSET_8;
    case AK_QUANT_Q5_0:
    case AK_QUANT_MXFP4: return OFFSET_16;
    case AK_QUANT_Q8_0:
    case AK_QUANT_IQ4_NL: return OFFSET_128;
    case AK_QUANT_A8: return OFFSET_128_MINIMUM;
    default: return OFFSET_0;
    }
}

/* Initial value of a block's sum: −offset · Σq of the activations. */
AK_KERNEL __m512i block_offset(enum ak_avx512_offset offset, const struct ak_cpu_act32 *act)
{
    switch (offset) {
    case OFFSET_8: return _mm512_set1_epi32(act->minus8_sum);
    case OFFSET_16: return _mm512_slli_epi32(_mm512_set1_epi32(act->minus8_sum), 1);
    case OFFSET_128:
    case OFFSET_128_MINIMUM: return _mm512_slli_epi32(_mm512_set1_epi32(act->minus8_sum), 4);
    default: return _mm512_setzero_si512();
    }
}

/* Addresses of the parts of a block of 32 k. */
struct ak_avx512_block {
    const uint8_t *scales, *minimums, *high, *lines;
};

AK_KERNEL size_t block_bytes(enum ak_quant_type type)
{
    return has_bytes(type) ? 512 : type == AK_QUANT_V2 ? 128 : 256;
}

/* Bytes of a block's scales, and of its minimums. */
AK_KERNEL size_t factor_bytes(enum ak_quant_type type)
{
    return type == AK_QUANT_MXFP4 ? 16 : type == AK_QUANT_A8 ? 64 : 32;
}

/* First block of a tile of `blocks` blocks. */
AK_KERNEL struct ak_avx512_block first_block(enum ak_quant_type type, const uint8_t *tile,
                                             size_t blocks)
{
    struct ak_avx512_block at = { .scales = tile, .minimums = tile + blocks * factor_bytes(type) };
    size_t scales = blocks * factor_bytes(type) * (has_minimum(type) ? 2 : 1);
    at.high = tile + ak_round_up(scales, AK_LINE_BYTES);
    at.lines = at.high + (has_fifth_bits(type) ? blocks * 64 : 0);
    return at;
}

/* Advances to the tile's next block. After the last one, `lines` is the start of the next tile. */
AK_KERNEL void next_block(enum ak_quant_type type, struct ak_avx512_block *at)
{
    at->scales += factor_bytes(type);
    at->minimums += factor_bytes(type);
    at->high += 64;
    at->lines += block_bytes(type);
}

/* ak_e8m0_half of 16 exponents. The subnormal term is larger only for the two exponents that give
 * subnormals. */
AK_KERNEL __m512 load_exponents(const uint8_t *p)
{
    __m512i e = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
    __m512i normal = _mm512_sub_epi32(_mm512_slli_epi32(e, 23), _mm512_set1_epi32(1 << 23));
    __m512i subnormal = _mm512_add_epi32(_mm512_slli_epi32(e, 21), _mm512_set1_epi32(1 << 21));
    return _mm512_castsi512_ps(_mm512_max_epi32(normal, subnormal));
}

/* Scales or minimums of 16 rows. */
AK_KERNEL __m512 block_factors(enum ak_quant_type type, const uint8_t *p)
{
    switch (type) {
    case AK_QUANT_MXFP4: return load_exponents(p);
    case AK_QUANT_A4:
    case AK_QUANT_A5: return load_bf16(p);
    case AK_QUANT_A8: return _mm512_loadu_ps(p);
    default: return load_halves(p);
    }
}

AK_KERNEL __m512 block_scale(enum ak_quant_type type, const struct ak_avx512_block *at)
{
    return block_factors(type, at->scales);
}

AK_KERNEL __m512 block_minimum(enum ak_quant_type type, const struct ak_avx512_block *at)
{
    return block_factors(type, at->minimums);
}

/* Word i of a block of V2, plus 8: two bits, plus 7. */
AK_KERNEL __m512i v2_word(const uint8_t *lines, size_t i)
{
    __m512i bits =
        _mm512_srli_epi32(load_line(lines + i % 2 * AK_LINE_BYTES), (unsigned)(i / 2 * 2));
    return _mm512_add_epi8(_mm512_and_si512(bits, _mm512_set1_epi8(3)), _mm512_set1_epi8(7));
}

/* Word i (k = 4i …) of a block, unsigned, still with its offset. */
AK_KERNEL __m512i block_word(enum ak_quant_type type, const struct ak_avx512_block *at, size_t i)
{
    if (has_bytes(type))
        return load_line(at->lines + i * AK_LINE_BYTES);
    if (type == AK_QUANT_V2)
        return v2_word(at->lines, i);
    __m512i line = load_line(at->lines + i % 4 * AK_LINE_BYTES);
    __m512i word = i < 4 ? low_nibbles(line) : high_nibbles(line);
    if (has_values(type))
        return _mm512_shuffle_epi8(value_table(type), word);
    if (!has_fifth_bits(type))
        return word;
    uint64_t bits;
    memcpy(&bits, at->high + i * sizeof bits, sizeof bits);
    return add_fifth_bits(word, bits);
}

/* ---- K-types ------------------------------------------------------------ */
/* Decodes Q4_K's 12 bytes of scales and minimums from three lines: scales[0] has those of
 * sub-blocks 0 … 3 in the bytes of each lane, scales[1] those of 4 … 7. */
AK_KERNEL void q4_k_scales(const uint8_t *lines, __m512i scales[2], __m512i minimums[2])
{
    const __m512i six = _mm512_set1_epi8(63), four = _mm512_set1_epi8(15),
                  top = _mm512_set1_epi8(48);
    __m512i a = load_line(lines), b = load_line(lines + AK_LINE_BYTES),
            c = load_line(lines + 2 * AK_LINE_BYTES);
    scales[0] = _mm512_and_si512(a, six);
    minimums[0] = _mm512_and_si512(b, six);
    scales[1] =
        _mm512_or_si512(_mm512_and_si512(c, four), _mm512_and_si512(_mm512_srli_epi16(a, 2), top));
    minimums[1] = _mm512_or_si512(_mm512_and_si512(_mm512_srli_epi16(c, 4), four),
                                  _mm512_and_si512(_mm512_srli_epi16(b, 2), top));
}

/* Byte j of each lane as an unsigned or signed number. */
AK_KERNEL __m512i byte_of_lane(__m512i x, size_t j)
{
    return _mm512_and_si512(_mm512_srli_epi32(x, (unsigned)(8 * j)), _mm512_set1_epi32(255));
}

AK_KERNEL __m512i signed_byte_of_lane(__m512i x, size_t j)
{
    return _mm512_srai_epi32(_mm512_slli_epi32(x, (unsigned)(24 - 8 * j)), 24);
}

/* Minimums as pairs of int16 that match the pairs of ak_cpu_act256.pair_sum32. */
AK_KERNEL __m512i minimum_pair(const __m512i minimums[2], size_t i)
{
    const __m512i even = _mm512_set1_epi32(0x00ff00ff);
    return _mm512_and_si512(i % 2 ? _mm512_srli_epi16(minimums[i / 2], 8) : minimums[i / 2], even);
}

/* Q4_K has d in the lower half of each lane, dmin in the upper half. */
AK_KERNEL __m512 lower_halves(__m512i x)
{
    return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(x));
}

AK_KERNEL __m512 upper_halves(__m512i x)
{
    return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_srli_epi32(x, 16)));
}

AK_KERNEL __m512i shift_bits(__m512i x, int left)
{
    return left > 0 ? _mm512_slli_epi32(x, (unsigned)left) :
           left < 0 ? _mm512_srli_epi32(x, (unsigned)-left) :
                      x;
}

/* A word of Q5_K's sub-block `sub` from its nibbles and its line of fifth bits. */
AK_KERNEL __m512i q5_k_word(__m512i nibbles, __m512i high, size_t sub)
{
    return or_masked(nibbles, shift_bits(high, 4 - (int)sub), 16);
}

/* A word of quarter `quarter` (32 k) of a half of Q6_K, unsigned, from its lines. */
AK_KERNEL __m512i q6_k_word(__m512i low, __m512i high, size_t quarter)
{
    low = quarter < 2 ? low_nibbles(low) : high_nibbles(low);
    if (quarter < 2)
        high = _mm512_slli_epi16(high, quarter == 0 ? 4 : 2);
    else if (quarter == 3)
        high = _mm512_srli_epi16(high, 2);
    return _mm512_or_si512(low, _mm512_and_si512(high, _mm512_set1_epi8(48)));
}

/* Pairs of int16 from bytes 0 and 2 (first = 0) or 1 and 3 of each lane; they match the pairs of
 * ak_cpu_act256. */
AK_KERNEL __m512i byte_pairs(__m512i x, size_t first)
{
    return first == 0 ? _mm512_and_si512(x, _mm512_set1_epi32(0x00ff00ff)) :
                        _mm512_srli_epi16(x, 8);
}

/* Q2_K: pairs of scales and of minimums from a line with four of each per row. */
AK_KERNEL __m512i q2_k_scale_pairs(__m512i line, size_t first)
{
    return _mm512_and_si512(first == 0 ? line : _mm512_srli_epi16(line, 8),
                            _mm512_set1_epi32(0x000f000f));
}

AK_KERNEL __m512i q2_k_minimum_pairs(__m512i line, size_t first)
{
    return first == 0 ?
               _mm512_and_si512(_mm512_srli_epi16(line, 4), _mm512_set1_epi32(0x000f000f)) :
               _mm512_srli_epi16(line, 12);
}

/* Decodes Q3_K's 12 bytes of scales from three lines: scales[q] has 4q … 4q + 3 in the bytes of
 * each lane, with 32 still to be subtracted. */
AK_KERNEL void q3_k_scales(const uint8_t *lines, __m512i scales[4])
{
    __m512i a = load_line(lines), b = load_line(lines + AK_LINE_BYTES),
            high = load_line(lines + 2 * AK_LINE_BYTES);
    scales[0] = or_masked(low_nibbles(a), _mm512_slli_epi16(high, 4), 0x30);
    scales[1] = or_masked(low_nibbles(b), _mm512_slli_epi16(high, 2), 0x30);
    scales[2] = or_masked(high_nibbles(a), high, 0x30);
    scales[3] = or_masked(high_nibbles(b), _mm512_srli_epi16(high, 2), 0x30);
}

/* Word of sub-block `sub` from three lines, times 2^q3_k_shift(sub). */
AK_KERNEL __m512i q3_k_word(const __m512i lines[3], size_t sub)
{
    const __m512i top = _mm512_set1_epi8((char)0xc0);
    switch (sub) {
    case 6: return or_masked(_mm512_and_si512(lines[0], top), _mm512_srli_epi16(lines[2], 1), 0x20);
    case 7: return or_masked(_mm512_and_si512(lines[1], top), _mm512_srli_epi16(lines[2], 2), 0x20);
    default: return _mm512_and_si512(lines[sub / 2], _mm512_set1_epi8(sub % 2 ? 0x38 : 7));
    }
}

/* Log2 of the factor in q3_k_word. */
AK_KERNEL unsigned q3_k_shift(size_t sub)
{
    return sub >= 6 ? 5 : sub % 2 ? 3 : 0;
}

/* V3: word of sub-block `sub` from three lines, as indices. */
AK_KERNEL __m512i v3_word(const __m512i lines[3], size_t sub)
{
    const __m512i seven = _mm512_set1_epi8(7);
    if (sub >= 6) { /* two bits, and the lowest one below them */
        __m512i two = _mm512_and_si512(_mm512_srli_epi16(lines[sub - 6], 5), _mm512_set1_epi8(6));
        return or_masked(two, _mm512_srli_epi32(lines[2], (unsigned)sub), 1);
    }
    return _mm512_and_si512(sub % 2 ? _mm512_srli_epi16(lines[sub / 2], 3) : lines[sub / 2], seven);
}

/* V3, V4: factor 2 · scale + 1 of scale j as int32, from its line of eight scales. */
AK_KERNEL __m512i nibble_scale(__m512i line, size_t j)
{
    const int right = (int)(j % 4 * 8 + j / 4 % 2 * 4) - 1;
    return _mm512_or_si512(_mm512_and_si512(shift_bits(line, -right), _mm512_set1_epi32(30)),
                           _mm512_set1_epi32(1));
}

/* V3, V4: values of the tile's table, + 128. */
AK_KERNEL __m512i tile_values(const uint8_t *tile)
{
    __m128i values = _mm_loadu_si128((const __m128i *)(const void *)(tile + AK_TABLE_AT));
    return _mm512_broadcast_i32x4(_mm_xor_si128(values, _mm_set1_epi8((char)0x80)));
}

/* V3, V4: d of 16 rows times the factor of the table. */
AK_KERNEL __m512 table_scales(const uint8_t *tile)
{
    return _mm512_mul_ps(load_halves(tile), _mm512_set1_ps(ak_cpu_table_factor(tile)));
}

/* IQ4_XS: scale j of 8 as int32. `first` is the line of d and high scale bits. */
AK_KERNEL __m512i iq4_xs_scale(__m512i first, __m512i low, size_t j)
{
    __m512i scale =
        _mm512_and_si512(_mm512_srli_epi32(low, (unsigned)(4 * j)), _mm512_set1_epi32(15));
    scale = _mm512_ternarylogic_epi32(scale, _mm512_srli_epi32(first, (unsigned)(12 + 2 * j)),
                                      _mm512_set1_epi32(0x30), 0xf8);
    return _mm512_sub_epi32(scale, _mm512_set1_epi32(32));
}

/* IQ4_XS, V4: what `low`, the line of scales, and `first` hold of sub-block j. */
AK_KERNEL __m512i value_scale(enum ak_quant_type type, __m512i first, __m512i low, size_t j)
{
    return type == AK_QUANT_V4 ? nibble_scale(low, j) : iq4_xs_scale(first, low, j);
}

/* −128 · Σq of the activations of sub-block j: the offset of IQ4_XS and V4. */
AK_KERNEL __m512i iq4_xs_offset(const struct ak_cpu_act256 *act, size_t j)
{
    const size_t at = j % 4 == 1 ? j + 1 : j % 4 == 2 ? j - 1 : j; /* in the order of pairs */
    const int factors = at % 2 ? -128 * 65536 : -128 & 0xffff;
    return _mm512_dpwssd_epi32(_mm512_setzero_si512(), _mm512_set1_epi32(factors),
                               broadcast_word(act->pair_sum32 + at / 2 * 2));
}

#endif
