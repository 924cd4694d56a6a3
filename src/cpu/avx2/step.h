/* How AVX2 multiplies: the only part of the products of packed weights that
 * AVX-VNNI does otherwise (cpu/avxvnni/step.h).
 *
 * A word is four unsigned numbers of a row, k … k + 3, in each 32-bit lane.
 * vpmaddubsw multiplies them with four signed activations and adds two products in
 * 16 bits, with saturation. Partial sums, also of 16 bits, take as many words as
 * there is room for, and vpmaddwd widens them, times a scale where there is one.
 * Activations are within ±127, so that of numbers up to `most` a word adds at most
 * 2 · most · 127 to a half of a lane:
 *
 *   15   8 words, 30480      31   4 words, 31496      63   2 words, 32004
 *
 * Numbers of 8 bits are signed, −128 … 127, and multiplied by magnitude, the sign
 * given to the activation: 2 · 128 · 127 = 32512, so that each word is widened for
 * itself. That is four instructions where others need two and a bit. Nothing shorter
 * was found: unsigned ones, as two halves of four bits or as 16-bit numbers with
 * vpmaddwd, take four as well and more registers. */
#ifndef AK_CPU_AVX2_STEP_H
#define AK_CPU_AVX2_STEP_H

#include "cpu/avx2/lanes.h"

/* Of `words` words of numbers up to `most`, how many a partial sum takes. */
AK_KERNEL size_t words_together(unsigned most, size_t words)
{
    size_t room = INT16_MAX / (2 * most * 127);
    return room < words ? room : words;
}

/* `partial` with one word more. The first one starts it: from `sum`, or from zero,
 * as the step likes; widen knows. */
AK_KERNEL __m256i add_word(bool first, __m256i sum, __m256i partial, __m256i word, __m256i acts)
{
    __m256i pairs = _mm256_maddubs_epi16(word, acts);
    (void)sum;
    return in_order(first ? pairs : _mm256_add_epi16(partial, pairs));
}

/* `sum` with the words of a partial sum that was started from it. */
AK_KERNEL __m256i widen(__m256i sum, __m256i partial)
{
    return in_order(_mm256_add_epi32(sum, _mm256_madd_epi16(partial, _mm256_set1_epi16(1))));
}

/* `sum` with scale · partial, which was started from zero. `scale` has each row's
 * number in both halves of its lane. */
AK_KERNEL __m256i widen_scaled(__m256i sum, __m256i partial, __m256i scale)
{
    return in_order(_mm256_add_epi32(sum, _mm256_madd_epi16(partial, scale)));
}

/* ---- Numbers of 8 bits ------------------------------------------------------- */

enum { WIDE_BIAS = 0 }; /* what they have added to them */

struct wide_word {
    __m256i number, magnitude;
};

AK_KERNEL struct wide_word wide_word(__m256i number)
{
    return (struct wide_word){ number, _mm256_abs_epi8(number) };
}

/* `sum` with one word more. */
AK_KERNEL __m256i add_wide_word(__m256i sum, struct wide_word word, __m256i acts)
{
    __m256i pairs = _mm256_maddubs_epi16(word.magnitude, _mm256_sign_epi8(acts, word.number));
    return in_order(_mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1))));
}

#endif
