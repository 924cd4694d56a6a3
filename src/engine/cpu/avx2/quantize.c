/* Quantizes activations to int8 with one scale per 32 or 256; same results as the scalar kernels.
 * The ISAs above AVX2 inherit these kernels. */
#include "engine/cpu/setter.h"
#include "base/half.h"
#include "engine/cpu/avx2/lanes.h"

/* Largest magnitude of n values as an integer; a NaN compares larger than all numbers. */
AK_KERNEL uint32_t largest_magnitude(const float *x, size_t n)
{
    const __m256i magnitude = _mm256_set1_epi32(0x7fffffff);
    __m256i largest = _mm256_setzero_si256();
#pragma GCC unroll 4
    for (size_t i = 0; i < n; i += 8)
        largest = _mm256_max_epu32(largest, _mm256_and_si256(load_bytes(x + i), magnitude));
    __m128i four =
        _mm_max_epu32(_mm256_castsi256_si128(largest), _mm256_extracti128_si256(largest, 1));
    __m128i two = _mm_max_epu32(four, _mm_shuffle_epi32(four, 0x4e));
    return (uint32_t)_mm_cvtsi128_si32(_mm_max_epu32(two, _mm_shuffle_epi32(two, 0xb1)));
}

/* 32 values times `inverse` as int8, ties to even; results are within ±127. */
AK_KERNEL __m256i round_32(const float *x, __m256 inverse)
{
    __m256i a = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x), inverse));
    __m256i b = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + 8), inverse));
    __m256i c = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + 16), inverse));
    __m256i d = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + 24), inverse));
    __m256i bytes = _mm256_packs_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
    /* packing works per 128 bits: restore the order of the groups of four */
    return _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

/* Sums of 16 bytes each: the lower 16 to *first, the upper 16 to *second. */
AK_KERNEL void sum_16s(__m256i q, int32_t *first, int32_t *second)
{
    /* vpsadbw adds 8 unsigned bytes: each 128 too large */
    __m256i eights =
        _mm256_sad_epu8(_mm256_xor_si256(q, _mm256_set1_epi8((char)0x80)), _mm256_setzero_si256());
    __m256i sixteens = _mm256_add_epi32(eights, _mm256_shuffle_epi32(eights, 0x4e));
    *first = _mm256_cvtsi256_si32(sixteens) - 16 * 128;
    *second = _mm_cvtsi128_si32(_mm256_extracti128_si256(sixteens, 1)) - 16 * 128;
}

/* Whether the block is neither too small (stored as 0) nor infinite or NaN (q = 0, NaN scale). */
AK_KERNEL bool is_ordinary(uint32_t largest)
{
    return largest >= 0x0d800000u && largest < 0x7f800000u; /* 2^-100 */
}

AK_KERNEL float odd_scale(uint32_t largest)
{
    return largest < 0x7f800000u ? 0.0f : ak_bits_float(0x7fc00000u);
}

static void quantize32(const float *restrict x, size_t n, struct ak_cpu_act32 *restrict out)
{
    for (size_t i = 0; i < n; i += 32, out++) {
        uint32_t largest = largest_magnitude(x + i, 32);
        __m256i q = _mm256_setzero_si256();
        out->scale = odd_scale(largest);
        if (is_ordinary(largest)) {
            float max = ak_bits_float(largest);
            q = round_32(x + i, _mm256_set1_ps(127.0f / max));
            out->scale = max / 127.0f;
        }
        int32_t first, second;
        sum_16s(q, &first, &second);
        store_bytes(out->q, q);
        out->minus8_sum = -8 * (first + second);
        out->scaled_sum = out->scale * (float)(first + second);
        out->unused = 0;
    }
}

static void quantize256(const float *restrict x, size_t n, struct ak_cpu_act256 *restrict out)
{
    static const uint8_t pair_order[16] = { 0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15 };
    for (size_t i = 0; i < n; i += 256, out++) {
        uint32_t largest = largest_magnitude(x + i, 256);
        memset(out, 0, sizeof *out);
        out->scale = odd_scale(largest);
        if (!is_ordinary(largest))
            continue;
        float max = ak_bits_float(largest);
        __m256 inverse = _mm256_set1_ps(127.0f / max);
        out->scale = max / 127.0f;
        for (size_t j = 0; j < 8; j++) {
            __m256i q = round_32(x + i + j * 32, inverse);
            int32_t first, second;
            sum_16s(q, &first, &second);
            store_bytes(out->q + j * 32, q);
            out->minus32_sum16[2 * j] = -32 * first;
            out->minus32_sum16[2 * j + 1] = -32 * second;
            out->pair_sum16[pair_order[2 * j]] = (int16_t)first;
            out->pair_sum16[pair_order[2 * j + 1]] = (int16_t)second;
            out->pair_sum32[pair_order[j]] = (int16_t)(first + second);
            out->sum += first + second;
        }
    }
}

AK_SETTER(quantize)
{
    k->quantize32 = quantize32;
    k->quantize256 = quantize256;
}
