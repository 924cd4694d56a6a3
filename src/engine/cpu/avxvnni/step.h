/* AVX-VNNI's multiply step, in place of AVX2's (engine/cpu/avx2/step.h): adds products of weights
 * and activations to integer sums. vpdpbusd adds the four products of a lane to 32 bits, so nothing
 * saturates. */
#ifndef AK_ENGINE_CPU_AVXVNNI_STEP_H
#define AK_ENGINE_CPU_AVXVNNI_STEP_H

#include "engine/cpu/avx2/lanes.h"

AK_KERNEL size_t words_together(unsigned max, size_t words)
{
    (void)max;
    return words;
}

/* `partial` starts from `sum`, so that add_partial has nothing to add. */
AK_KERNEL __m256i add_word(bool first, __m256i sum, __m256i partial, __m256i word,
                           __m256i activations)
{
    return _mm256_dpbusd_epi32(first ? sum : partial, word, activations);
}

AK_KERNEL __m256i add_partial(__m256i sum, __m256i partial)
{
    (void)sum;
    return partial;
}

AK_KERNEL __m256i add_scaled_partial(__m256i sum, __m256i partial, __m256i scale)
{
    return _mm256_add_epi32(sum, _mm256_mullo_epi32(partial, _mm256_srai_epi32(scale, 16)));
}

/* Added to wide numbers: vpdpbusd takes unsigned ones. */
enum { WIDE_BIAS = 128 };

typedef struct {
    int8_t q[32] __attribute__((aligned(32)));
    int32_t start;
} wide_activations;

AK_KERNEL void set_wide_activations(const int8_t *q, int32_t minus128_sum, wide_activations *to)
{
    store_bytes(to->q, load_bytes(q));
    to->start = minus128_sum;
}

typedef struct {
    __m256i a;
} wide_word;

AK_KERNEL wide_word get_wide_word(const wide_activations *activations, size_t i)
{
    return (wide_word){ broadcast_word(activations->q + 4 * i) };
}

AK_KERNEL __m256i add_wide_word(__m256i sum, __m256i word, wide_word activations)
{
    return _mm256_dpbusd_epi32(sum, word, activations.a);
}

#endif
