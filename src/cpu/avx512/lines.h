/* Lines of 64 bytes as vectors of 16 rows: what is shared by the kernels over
 * tiles and over slabs. */
#ifndef AK_CPU_AVX512_LINES_H
#define AK_CPU_AVX512_LINES_H

#include "base/mem.h"
#include "cpu/avx512/avx512.h"
#include "cpu/avx512/lanes.h"

enum { BLOCK_WORDS = AK_BLOCK_K / 4 };

AK_KERNEL __m512i low_nibbles(__m512i line)
{
    return _mm512_and_si512(line, _mm512_set1_epi8(15));
}

AK_KERNEL __m512i high_nibbles(__m512i line)
{
    return _mm512_and_si512(_mm512_srli_epi16(line, 4), _mm512_set1_epi8(15));
}

/* Adds 16 to the bytes whose bit is set. */
AK_KERNEL __m512i add_fifth_bits(__m512i words, uint64_t bits)
{
    return _mm512_mask_add_epi8(words, (__mmask64)bits, words, _mm512_set1_epi8(16));
}

/* The sum that a block's products start from: −offset · Σq of the activations. */
AK_KERNEL __m512i block_offset(enum ak_type type, const struct ak_act32 *act)
{
    switch (type) {
    case AK_Q4_0: return _mm512_set1_epi32(act->minus8_sum);
    case AK_Q5_0: return _mm512_slli_epi32(_mm512_set1_epi32(act->minus8_sum), 1);
    case AK_Q8_0: return _mm512_slli_epi32(_mm512_set1_epi32(act->minus8_sum), 4);
    default: return _mm512_setzero_si512();
    }
}

/* Where the parts of a block of 32 k lie. */
struct tile_block {
    const uint8_t *scales, *minimums, *high, *lines;
};

AK_KERNEL size_t block_bytes(enum ak_type type)
{
    return type == AK_Q8_0 ? 512 : 256;
}

/* The first block of a tile of `blocks` blocks. */
AK_KERNEL struct tile_block first_block(enum ak_type type, const uint8_t *tile, size_t blocks)
{
    struct tile_block at = { .scales = tile, .minimums = tile + blocks * 32 };
    at.high = tile + (type == AK_Q4_1 ? blocks * 64 : (blocks + 1) / 2 * 64);
    at.lines = at.high + (type == AK_Q5_0 ? blocks * 64 : 0);
    return at;
}

/* From a block to the next one of the tile; behind the last one, `lines` is where
 * the next tile begins. */
AK_KERNEL void next_block(enum ak_type type, struct tile_block *at)
{
    at->scales += 32;
    at->minimums += 32;
    at->high += 64;
    at->lines += block_bytes(type);
}

/* Word i (k = 4i …) of a block, unsigned, the offset still in it. */
AK_KERNEL __m512i block_word(enum ak_type type, const struct tile_block *at, size_t i)
{
    if (type == AK_Q8_0)
        return load_line(at->lines + i * AK_LINE_BYTES);
    __m512i line = load_line(at->lines + i % 4 * AK_LINE_BYTES);
    __m512i word = i < 4 ? low_nibbles(line) : high_nibbles(line);
    if (type != AK_Q5_0)
        return word;
    uint64_t bits;
    memcpy(&bits, at->high + i * sizeof bits, sizeof bits);
    return add_fifth_bits(word, bits);
}

/* Q4_K's 12 bytes of scales and mins, three lines, as bytes: scales[0] has those
 * of sub-blocks 0 … 3 in the bytes of each lane, scales[1] those of 4 … 7. */
AK_KERNEL void q4_k_scales(const uint8_t *lines, __m512i scales[2], __m512i minimums[2])
{
    const __m512i six = _mm512_set1_epi8(63), four = _mm512_set1_epi8(15), top = _mm512_set1_epi8(48);
    __m512i a = load_line(lines), b = load_line(lines + AK_LINE_BYTES), c = load_line(lines + 2 * AK_LINE_BYTES);
    scales[0] = _mm512_and_si512(a, six);
    minimums[0] = _mm512_and_si512(b, six);
    scales[1] = _mm512_or_si512(_mm512_and_si512(c, four), _mm512_and_si512(_mm512_srli_epi16(a, 2), top));
    minimums[1] = _mm512_or_si512(_mm512_and_si512(_mm512_srli_epi16(c, 4), four), _mm512_and_si512(_mm512_srli_epi16(b, 2), top));
}

/* Byte j of each lane, as an unsigned or a signed number. */
AK_KERNEL __m512i byte_of_lane(__m512i x, size_t j)
{
    return _mm512_and_si512(_mm512_srli_epi32(x, (unsigned)(8 * j)), _mm512_set1_epi32(255));
}

AK_KERNEL __m512i signed_byte_of_lane(__m512i x, size_t j)
{
    return _mm512_srai_epi32(_mm512_slli_epi32(x, (unsigned)(24 - 8 * j)), 24);
}

/* Minimums as pairs of int16 that meet the pairs of ak_act256.pair_sum32. */
AK_KERNEL __m512i minimum_pair(const __m512i minimums[2], size_t i)
{
    const __m512i even = _mm512_set1_epi32(0x00ff00ff);
    return _mm512_and_si512(i % 2 ? _mm512_srli_epi16(minimums[i / 2], 8) : minimums[i / 2], even);
}

/* Q4_K: d in the lower half of each lane, dmin in the upper. */
AK_KERNEL __m512 lower_halves(__m512i x)
{
    return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(x));
}

AK_KERNEL __m512 upper_halves(__m512i x)
{
    return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_srli_epi32(x, 16)));
}

enum {
    Q4_K_SCALES_AT = 64, Q4_K_QUANTS_AT = 256,
    Q6_K_SCALES_AT = 64, Q6_K_HALVES_AT = 320, Q6_K_HALF_BYTES = 1536, Q6_K_LOW_AT = 512
};

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

#endif
