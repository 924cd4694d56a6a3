/* AVX2's multiply step: adds products of weights and activations to integer sums. It is the only
 * part of the products of packed weights that AVX-VNNI replaces (engine/cpu/avxvnni/step.h).
 *
 * A word is a vector with four unsigned numbers of a row, k … k + 3, in each 32-bit lane (half an
 * interleaved line of layout.h). vpmaddubsw multiplies them with four signed activations and adds
 * pairs of products in 16 bits, with saturation. Partial sums, also of 16 bits, accumulate as many
 * words as fit; vpmaddwd adds them to 32 bits, times a scale if there is one. Activations are
 * within ±127, so a word of numbers up to `max` adds at most 2 · max · 127 to a half lane, and the
 * largest sum stays below 32768:
 *
 *   max   words   largest sum
 *    15       8         30480
 *    31       4         31496
 *    63       2         32004
 *
 * 8-bit ("wide") numbers w are signed, −128 … 127. vpmaddubsw takes |a| as its unsigned operand
 * and w as its signed one, or ~w if a < 0: then w·a = |a| · ~w + |a|. The corrections |a| depend
 * on the activations alone and are summed once for all rows. 2 · 127 · 128 = 32512, so each word is
 * added to 32 bits on its own: four instructions per word; narrower numbers need a little over two.
 * (vpsignb would need no preparation, but occupies the multiplier ports.) */
#ifndef AK_ENGINE_CPU_AVX2_STEP_H
#define AK_ENGINE_CPU_AVX2_STEP_H

#include "engine/cpu/avx2/lanes.h"

/* Number of words that one partial sum accumulates: at most `words`, of numbers up to `max`. */
AK_KERNEL size_t words_together(unsigned max, size_t words)
{
    size_t capacity = INT16_MAX / (2 * max * 127);
    return capacity < words ? capacity : words;
}

/* Adds one word to `partial`. The first word starts it from `sum` or from zero; add_partial of the
 * same step.h knows which. */
AK_KERNEL __m256i add_word(bool first, __m256i sum, __m256i partial, __m256i word,
                           __m256i activations)
{
    __m256i pairs = _mm256_maddubs_epi16(word, activations);
    (void)sum;
    return in_order(first ? pairs : _mm256_add_epi16(partial, pairs));
}

/* Completes `sum` with a partial sum that was started from it. */
AK_KERNEL __m256i add_partial(__m256i sum, __m256i partial)
{
    return in_order(_mm256_add_epi32(sum, _mm256_madd_epi16(partial, _mm256_set1_epi16(1))));
}

/* Adds scale · partial to `sum`; the partial sum was started from zero. `scale` has each row's
 * number in both halves of its lane. */
AK_KERNEL __m256i add_scaled_partial(__m256i sum, __m256i partial, __m256i scale)
{
    return in_order(_mm256_add_epi32(sum, _mm256_madd_epi16(partial, scale)));
}

/* ---- Numbers of 8 bits -------------------------------------------------- */
enum { WIDE_BIAS = 0 }; /* added to wide numbers */

/* 32 activations: |a|, and −1 if a < 0. Sums start from `start`. */
typedef struct {
    uint8_t magnitudes[32] __attribute__((aligned(32)));
    uint8_t signs[32];
    int32_t start;
} wide_activations;

/* minus128_sum: −128 · Σq, for a step.h that has a bias. */
AK_KERNEL void set_wide_activations(const int8_t *q, int32_t minus128_sum, wide_activations *to)
{
    (void)minus128_sum;
    __m256i a = load_bytes(q), magnitudes = _mm256_abs_epi8(a),
            signs = _mm256_cmpgt_epi8(_mm256_setzero_si256(), a);
    __m256i sums = _mm256_sad_epu8(_mm256_and_si256(magnitudes, signs), _mm256_setzero_si256());
    __m128i half = _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
    store_bytes(to->magnitudes, magnitudes);
    store_bytes(to->signs, signs);
    to->start = _mm_cvtsi128_si32(_mm_add_epi32(half, _mm_unpackhi_epi64(half, half)));
}

typedef struct {
    __m256i magnitude, sign;
} wide_word;

AK_KERNEL wide_word get_wide_word(const wide_activations *activations, size_t i)
{
    return (wide_word){ broadcast_word(activations->magnitudes + 4 * i),
                        broadcast_word(activations->signs + 4 * i) };
}

/* Adds one word to `sum`. */
AK_KERNEL __m256i add_wide_word(__m256i sum, __m256i word, wide_word activations)
{
    __m256i pairs =
        _mm256_maddubs_epi16(activations.magnitude, _mm256_xor_si256(word, activations.sign));
    return in_order(_mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1))));
}

#endif
