/* Integer sums over a block of 32 k of 16 rows: types whose blocks have 32
 * elements, from a tile as it is packed and from an open slab.
 *
 * vpmaddubsw adds two products in 16 bits with saturation, and sums of its
 * results wrap, so each type widens to 32 bits before 32767 can be reached.
 * Activations are within ±127:
 *
 *   4 bits   8 × 2·15·127 = 30480    a whole block
 *   5 bits   4 × 2·31·127 = 31496    half a block
 *   8 bits       2·128·127 = 32512   every word, on magnitudes: |w| · sign(a, w) */
#ifndef AK_CPU_AVX2_WORDS_H
#define AK_CPU_AVX2_WORDS_H

#include "cpu/avx2/lanes.h"

enum {
    GROUP = 4, /* most tokens that a block's words are used for while they are in registers */
    HALF_LINE = AK_LINE_BYTES / 2,
    BLOCK_WORDS = AK_BLOCK_K / 4
};

/* 16 in each byte whose bit is set in the 32 bits at `bits`. */
AK_KERNEL __m256i fifth_bits(const uint8_t *bits)
{
    const __m256i byte_of = _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3);
    const __m256i bit_of = _mm256_set1_epi64x((long long)0x8040201008040201u);
    __m256i own = _mm256_and_si256(_mm256_shuffle_epi8(spread_word(bits), byte_of), bit_of);
    return _mm256_and_si256(_mm256_cmpeq_epi8(own, bit_of), _mm256_set1_epi8(16));
}

/* Rows 8·half … 8·half + 7 of word line + 4·nibble of a block. `lines` are the block's lines,
 * `high` its fifth bits. An open block has one byte a quant in 8 lines. */
AK_KERNEL __m256i block_word(enum ak_type type, bool open, const uint8_t *lines, const uint8_t *high, size_t line, size_t nibble, size_t half)
{
    size_t i = line + 4 * nibble;
    lines += half * HALF_LINE;
    if (open)
        return load_bytes(lines + i * AK_LINE_BYTES);
    if (type == AK_Q8_0)
        return _mm256_xor_si256(load_bytes(lines + i * AK_LINE_BYTES), _mm256_set1_epi8(-128));
    __m256i v = load_bytes(lines + line * AK_LINE_BYTES);
    v = _mm256_and_si256(nibble == 0 ? v : _mm256_srli_epi16(v, 4), _mm256_set1_epi8(15));
    return type == AK_Q5_0 ? _mm256_or_si256(v, fifth_bits(high + i * 8 + half * 4)) : v;
}

/* sums[t][half] = Σ w·a over the block for n ≤ GROUP tokens; unsigned w where the
 * type has an offset or a minimum. */
AK_KERNEL void block_sums(enum ak_type type, bool open, const uint8_t *lines, const uint8_t *high, const uint8_t *act, size_t act_bytes,
                          size_t n, __m256i sums[GROUP][2])
{
    const __m256i ones = _mm256_set1_epi16(1);
    const size_t together = type == AK_Q5_0 ? 2 : 1; /* lines: half a block, what 16 bits have room for */
    __m256i narrow[GROUP][2];
#pragma GCC unroll 4
    for (size_t t = 0; t < GROUP; t++)
        sums[t][0] = sums[t][1] = narrow[t][0] = narrow[t][1] = _mm256_setzero_si256();
    for (size_t line = 0; line < BLOCK_WORDS / 2; line += together) {
#pragma GCC unroll 4
        for (size_t step = 0; step < 2 * together; step++) {
            size_t nibble = step % 2, i = line + step / 2 + nibble * 4; /* both nibbles of a line while it is there */
            __m256i w[2] = { block_word(type, open, lines, high, line + step / 2, nibble, 0),
                             block_word(type, open, lines, high, line + step / 2, nibble, 1) };
            __m256i magnitude[2] = { _mm256_abs_epi8(w[0]), _mm256_abs_epi8(w[1]) };
#pragma GCC unroll 4
            for (size_t t = 0; t < GROUP; t++) {
                if (t >= n)
                    continue;
                __m256i a = spread_word(act + t * act_bytes + i * 4);
#pragma GCC unroll 2
                for (size_t half = 0; half < 2; half++) {
                    if (type == AK_Q8_0) {
                        __m256i pairs = _mm256_maddubs_epi16(magnitude[half], _mm256_sign_epi8(a, w[half]));
                        sums[t][half] = in_order(_mm256_add_epi32(sums[t][half], _mm256_madd_epi16(pairs, ones)));
                    } else {
                        __m256i pairs = _mm256_maddubs_epi16(w[half], a);
                        bool starts = type == AK_Q5_0 && step == 0;
                        narrow[t][half] = in_order(starts ? pairs : _mm256_add_epi16(narrow[t][half], pairs));
                        if (type == AK_Q5_0 && step == 2 * together - 1)
                            sums[t][half] = in_order(_mm256_add_epi32(sums[t][half], _mm256_madd_epi16(narrow[t][half], ones)));
                    }
                }
            }
        }
    }
    if (type == AK_Q4_0 || type == AK_Q4_1)
#pragma GCC unroll 4
        for (size_t t = 0; t < GROUP; t++)
#pragma GCC unroll 2
            for (size_t half = 0; half < 2; half++)
                sums[t][half] = _mm256_madd_epi16(narrow[t][half], ones);
}

#endif
