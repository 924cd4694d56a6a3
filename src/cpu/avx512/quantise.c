#include "cpu/avx512/avx512.h"
#include "cpu/avx512/lanes.h"

/* The larger magnitudes of 16 lanes, as integers: a NaN comes out on top. */
AK_KERNEL __m512i larger_magnitude(__m512i largest, const float *x)
{
    return _mm512_max_epu32(largest, _mm512_and_si512(load_line(x), _mm512_set1_epi32(0x7fffffff)));
}

/* 16 values times `inverse` to int8, ties to even; results are within ±127. */
AK_KERNEL __m128i round_16(const float *x, __m512 inverse)
{
    return _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(x), inverse)));
}

AK_KERNEL int32_t sum_16(__m128i q)
{
    /* vpsadbw adds 8 unsigned bytes: 128 too much each */
    __m128i eights = _mm_sad_epu8(_mm_xor_si128(q, _mm_set1_epi8(-128)), _mm_setzero_si128());
    return _mm_cvtsi128_si32(eights) + _mm_extract_epi16(eights, 4) - 16 * 128;
}

/* Below the cut everything is 0; an infinity or a NaN makes q = 0 and a NaN scale. */
AK_KERNEL bool is_ordinary(uint32_t largest)
{
    return largest >= 0x0d800000u && largest < 0x7f800000u; /* 2^-100 */
}

AK_KERNEL float odd_scale(uint32_t largest)
{
    return largest < 0x7f800000u ? 0.0f : ak_bits_float(0x7fc00000u);
}

void ak_avx512_quantise32(const float *restrict x, size_t n, struct ak_act32 *restrict out)
{
    for (size_t i = 0; i < n; i += 32, out++) {
        uint32_t largest = _mm512_reduce_max_epu32(larger_magnitude(larger_magnitude(_mm512_setzero_si512(), x + i), x + i + 16));
        __m128i q[2] = { _mm_setzero_si128(), _mm_setzero_si128() };
        out->scale = odd_scale(largest);
        if (is_ordinary(largest)) {
            float max = ak_bits_float(largest);
            __m512 inverse = _mm512_set1_ps(127.0f / max);
            q[0] = round_16(x + i, inverse);
            q[1] = round_16(x + i + 16, inverse);
            out->scale = max / 127.0f;
        }
        int32_t sum = sum_16(q[0]) + sum_16(q[1]);
        memcpy(out->q, q, sizeof q);
        out->minus8_sum = -8 * sum;
        out->scaled_sum = out->scale * (float)sum;
        out->unused = 0;
    }
}

void ak_avx512_quantise256(const float *restrict x, size_t n, struct ak_act256 *restrict out)
{
    static const uint8_t pair_order[8] = { 0, 2, 1, 3, 4, 6, 5, 7 };
    for (size_t i = 0; i < n; i += 256, out++) {
        __m512i largest_lanes = _mm512_setzero_si512();
        for (size_t j = 0; j < 256; j += 16)
            largest_lanes = larger_magnitude(largest_lanes, x + i + j);
        uint32_t largest = _mm512_reduce_max_epu32(largest_lanes);
        memset(out, 0, sizeof *out);
        out->scale = odd_scale(largest);
        if (!is_ordinary(largest))
            continue;
        float max = ak_bits_float(largest);
        __m512 inverse = _mm512_set1_ps(127.0f / max);
        out->scale = max / 127.0f;
        for (size_t j = 0; j < 8; j++) {
            __m128i q[2] = { round_16(x + i + j * 32, inverse), round_16(x + i + j * 32 + 16, inverse) };
            int32_t first = sum_16(q[0]), second = sum_16(q[1]);
            memcpy(out->q + j * 32, q, sizeof q);
            out->minus32_sum16[2 * j] = -32 * first;
            out->minus32_sum16[2 * j + 1] = -32 * second;
            out->pair_sum32[pair_order[j]] = (int16_t)(first + second);
        }
    }
}
