/* A register of floats, one candidate of a search per lane. A lane adds up in the order of the
 * elements, and the least of several does not depend on their order, so results are the same with
 * every width. They define
 *     AK_LANES    floats of a register: 4, 8 or 16
 *     AK_TARGET   the attribute with the instruction set */
#ifndef AK_CONVERSION_QUANTIZE_LANES_H
#define AK_CONVERSION_QUANTIZE_LANES_H

#include <float.h>
#include <stdint.h>
#include <string.h>

#if AK_LANES > 4
#include <immintrin.h>
#endif

/* Inlined into the functions of a table of rows (conversion/quantize/row_table.h). */
#define AK_SEARCH AK_TARGET static inline __attribute__((always_inline))

typedef float ak_lanes __attribute__((vector_size(4 * AK_LANES)));
typedef int32_t ak_lanes_int __attribute__((vector_size(4 * AK_LANES)));

enum { AK_CANDIDATES = 16 }; /* of a search: one register, or several */

AK_SEARCH ak_lanes ak_lanes_set(float x)
{
    return (ak_lanes){ 0.0f } + x; /* of a list of sixteen x gcc makes sixteen instructions */
}

AK_SEARCH ak_lanes ak_lanes_load(const float *x)
{
    ak_lanes y;
    memcpy(&y, x, sizeof y);
    return y;
}

AK_SEARCH void ak_lanes_store(ak_lanes x, float *out)
{
    memcpy(out, &x, sizeof x);
}

AK_SEARCH ak_lanes_int ak_lanes_load_int(const int32_t *x)
{
    ak_lanes_int y;
    memcpy(&y, x, sizeof y);
    return y;
}

AK_SEARCH ak_lanes_int ak_lanes_load_u16(const uint16_t *x)
{
#if AK_LANES == 16
    return (ak_lanes_int)_mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)x));
#elif AK_LANES == 8
    return (ak_lanes_int)_mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)x));
#else
    return (ak_lanes_int){ x[0], x[1], x[2], x[3] };
#endif
}

/* −7.5 … 7.5 in the lanes of all candidates; those from `first` on. */
AK_SEARCH ak_lanes ak_lanes_ramp(int first)
{
    static const float ramp[AK_CANDIDATES] = { -7.5f, -6.5f, -5.5f, -4.5f, -3.5f, -2.5f,
                                               -1.5f, -0.5f, 0.5f,  1.5f,  2.5f,  3.5f,
                                               4.5f,  5.5f,  6.5f,  7.5f };
    return ak_lanes_load(ramp + first);
}

AK_SEARCH ak_lanes ak_lanes_select(ak_lanes_int mask, ak_lanes yes, ak_lanes no)
{
    return (ak_lanes)(((ak_lanes_int)yes & mask) | ((ak_lanes_int)no & ~mask));
}

/* a < b ? yes : no */
AK_SEARCH ak_lanes ak_lanes_select_less(ak_lanes a, ak_lanes b, ak_lanes yes, ak_lanes no)
{
#if AK_LANES == 16
    return (ak_lanes)_mm512_mask_blend_ps(_mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_LT_OQ),
                                          (__m512)no, (__m512)yes);
#elif AK_LANES == 8
    return (ak_lanes)_mm256_blendv_ps((__m256)no, (__m256)yes,
                                      _mm256_cmp_ps((__m256)a, (__m256)b, _CMP_LT_OQ));
#else
    return ak_lanes_select(a < b, yes, no);
#endif
}

/* a < b ? a : b, so b if one is NaN */
AK_SEARCH ak_lanes ak_lanes_min(ak_lanes a, ak_lanes b)
{
#if AK_LANES == 16
    return (ak_lanes)_mm512_min_ps((__m512)a, (__m512)b);
#elif AK_LANES == 8
    return (ak_lanes)_mm256_min_ps((__m256)a, (__m256)b);
#else
    return ak_lanes_select_less(a, b, a, b);
#endif
}

/* a > b ? a : b, so b if one is NaN */
AK_SEARCH ak_lanes ak_lanes_max(ak_lanes a, ak_lanes b)
{
#if AK_LANES == 16
    return (ak_lanes)_mm512_max_ps((__m512)a, (__m512)b);
#elif AK_LANES == 8
    return (ak_lanes)_mm256_max_ps((__m256)a, (__m256)b);
#else
    return ak_lanes_select_less(b, a, a, b);
#endif
}

/* The least of numbers of which no two are equal, as bits. */
AK_SEARCH int32_t ak_lanes_least(ak_lanes x)
{
#if AK_LANES == 8
    __m128 y = _mm_min_ps(_mm256_castps256_ps128((__m256)x), _mm256_extractf128_ps((__m256)x, 1));
    y = _mm_min_ps(y, _mm_movehl_ps(y, y));
    y = _mm_min_ss(y, _mm_movehdup_ps(y));
    return _mm_cvtsi128_si32(_mm_castps_si128(y));
#else
    float y[AK_LANES], least;
    int32_t bits;
    ak_lanes_store(x, y);
    least = y[0];
    for (int i = 1; i < AK_LANES; i++)
        least = y[i] < least ? y[i] : least;
    memcpy(&bits, &least, sizeof bits);
    return bits;
#endif
}

/* 1 / x; 0 of zeros, and of infinities. */
AK_SEARCH ak_lanes ak_lanes_inverse(ak_lanes x)
{
    ak_lanes_int magnitude = (ak_lanes_int)x & 0x7fffffff;
    return (ak_lanes)((ak_lanes_int)(1.0f / x) & (-magnitude >> 31));
}

/* ---- Tables ------------------------------------------------------------- */
/* table[index], of whose upper bits nothing is read. */
AK_SEARCH ak_lanes ak_lanes_lookup4(const float table[4], ak_lanes_int index)
{
#if AK_LANES == 16
    return (ak_lanes)_mm512_permutevar_ps(_mm512_broadcast_f32x4(_mm_loadu_ps(table)),
                                          (__m512i)index);
#elif AK_LANES == 8
    return (ak_lanes)_mm256_permutevar_ps(_mm256_broadcast_ps((const __m128 *)(const void *)table),
                                          (__m256i)index);
#else
    ak_lanes y;
    for (int i = 0; i < AK_LANES; i++)
        y[i] = table[index[i] & 3];
    return y;
#endif
}

AK_SEARCH ak_lanes ak_lanes_lookup8(const float table[8], ak_lanes_int index)
{
#if AK_LANES == 16
    return (ak_lanes)_mm512_permutexvar_ps((__m512i)index,
                                           _mm512_broadcast_f32x8(_mm256_loadu_ps(table)));
#elif AK_LANES == 8
    return (ak_lanes)_mm256_permutevar8x32_ps(_mm256_loadu_ps(table), (__m256i)index);
#else
    ak_lanes y;
    for (int i = 0; i < AK_LANES; i++)
        y[i] = table[index[i] & 7];
    return y;
#endif
}

AK_SEARCH ak_lanes ak_lanes_lookup16(const float table[16], ak_lanes_int index)
{
#if AK_LANES == 16
    return (ak_lanes)_mm512_permutexvar_ps((__m512i)index, _mm512_loadu_ps(table));
#elif AK_LANES == 8
    return (ak_lanes)_mm256_blendv_ps((__m256)ak_lanes_lookup8(table, index),
                                      (__m256)ak_lanes_lookup8(table + 8, index),
                                      (__m256)(index << 28));
#else
    ak_lanes y;
    for (int i = 0; i < AK_LANES; i++)
        y[i] = table[index[i] & 15];
    return y;
#endif
}

/* ---- Levels ------------------------------------------------------------- */
/* Sixteen numbers, ascending, and what lies in the middle of neighbors: the root of a search tree
 * first, then its children, theirs, and theirs. Fewer numbers: the last ones are repeated, what
 * lies between them is INFINITY. */
struct ak_level_list {
    float levels[16], root, second[2], third[4], fourth[8];
};

/* The numbers that a type multiplies by a scale: the integers of a range, or a list. */
struct ak_levels {
    float low, high;                  /* the least and the greatest; low <= 0 < high */
    float step;                       /* how far apart the first candidates let `high` reach */
    const struct ak_level_list *list; /* NULL: all integers */
};

/* Which number of the list is nearest: 0 … 15. */
AK_SEARCH ak_lanes_int ak_lanes_find(ak_lanes x, const struct ak_level_list *list)
{
    ak_lanes middle = ak_lanes_set(list->root);
    ak_lanes_int at = -(x > middle);
    middle = ak_lanes_select_less(middle, x, ak_lanes_set(list->second[1]),
                                  ak_lanes_set(list->second[0]));
    at = at + at - (x > middle);
    at = at + at - (x > ak_lanes_lookup4(list->third, at));
    return at + at - (x > ak_lanes_lookup8(list->fourth, at));
}

/* 1.5 · 2^23: integers are all that fits beside it. */
static const float AK_LANES_MAGIC = 12582912.0f;

/* The nearest level to x; of a NaN the least. */
AK_SEARCH ak_lanes ak_lanes_level(ak_lanes x, const struct ak_levels *levels)
{
    if (levels->list)
        return ak_lanes_lookup16(levels->list->levels, ak_lanes_find(x, levels->list));
    x = ak_lanes_max(x, ak_lanes_set(levels->low));
    x = ak_lanes_min(x, ak_lanes_set(levels->high));
    return (x + AK_LANES_MAGIC) - AK_LANES_MAGIC;
}

/* The same of one number. */
AK_SEARCH int ak_level_find(float x, const struct ak_level_list *list)
{
    int at = x > list->root;
    at = at + at + (x > list->second[at]);
    at = at + at + (x > list->third[at]);
    return at + at + (x > list->fourth[at]);
}

AK_SEARCH float ak_level(float x, const struct ak_levels *levels)
{
    if (levels->list)
        return levels->list->levels[ak_level_find(x, levels->list)];
    x = x > levels->low ? x : levels->low;
    x = x < levels->high ? x : levels->high;
    return (x + AK_LANES_MAGIC) - AK_LANES_MAGIC;
}

#endif
