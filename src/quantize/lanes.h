/* Sixteen floats at once, one candidate of a search each. A lane adds up in the order of the
 * elements, so its sum does not depend on the width of the machine's registers. Used by the other
 * headers of quantize/, which quantize/rows.c compiles for several instruction sets. */
#ifndef AK_QUANTIZE_LANES_H
#define AK_QUANTIZE_LANES_H

#include <stdint.h>

enum { AK_LANES_OF_SEARCH = 16 };

typedef float ak_lanes __attribute__((vector_size(64)));
typedef int32_t ak_lanes_mask __attribute__((vector_size(64)));

/* Inlined into the functions that have a target. */
#define AK_SEARCH static inline __attribute__((always_inline))

#pragma GCC diagnostic ignored "-Wpsabi" /* nothing here is called across files */

AK_SEARCH ak_lanes ak_lanes_set(float x)
{
    return (ak_lanes){ 0.0f } + x; /* of a list of sixteen x gcc makes sixteen instructions */
}

/* −7.5 … 7.5 */
AK_SEARCH ak_lanes ak_lanes_ramp(void)
{
    return (ak_lanes){ -7.5f, -6.5f, -5.5f, -4.5f, -3.5f, -2.5f, -1.5f, -0.5f,
                       0.5f,  1.5f,  2.5f,  3.5f,  4.5f,  5.5f,  6.5f,  7.5f };
}

AK_SEARCH ak_lanes_mask ak_lanes_odd(void)
{
    return (ak_lanes_mask){ 0, -1, 0, -1, 0, -1, 0, -1, 0, -1, 0, -1, 0, -1, 0, -1 };
}

AK_SEARCH ak_lanes ak_lanes_select(ak_lanes_mask mask, ak_lanes yes, ak_lanes no)
{
    return (ak_lanes)(((ak_lanes_mask)yes & mask) | ((ak_lanes_mask)no & ~mask));
}

/* a < b, by the sign of the difference: with registers that are narrower than a vector, gcc
 * compares lane by lane. Of a NaN either answer. */
AK_SEARCH ak_lanes_mask ak_lanes_less(ak_lanes a, ak_lanes b)
{
    return (ak_lanes_mask)(a - b) >> 31;
}

AK_SEARCH ak_lanes ak_lanes_inverse(ak_lanes x)
{
    ak_lanes_mask magnitude = (ak_lanes_mask)x & 0x7fffffff;
    return (ak_lanes)((ak_lanes_mask)(1.0f / x) & (-magnitude >> 31));
}

/* ---- Levels ------------------------------------------------------------- */
/* The numbers that a type multiplies by a scale: the integers of a range, or a list. */
struct ak_levels {
    float low, high;   /* the least and the greatest; low <= 0 < high */
    float step;        /* how far apart the first candidates let `high` reach */
    const float *list; /* ascending; NULL: all integers */
    int n;             /* of the list */
};

/* The nearest level to x; of a NaN any, or itself. */
AK_SEARCH ak_lanes ak_lanes_level(ak_lanes x, const struct ak_levels *levels)
{
    if (levels->list) {
        ak_lanes y = ak_lanes_set(levels->list[0]);
        for (int i = 1; i < levels->n; i++) {
            float middle = 0.5f * (levels->list[i] + levels->list[i - 1]),
                  more = levels->list[i] - levels->list[i - 1];
            y += (ak_lanes)((ak_lanes_mask)ak_lanes_set(more) &
                            ak_lanes_less(ak_lanes_set(middle), x));
        }
        return y;
    }
    const ak_lanes magic = ak_lanes_set(12582912.0f); /* 1.5 · 2^23: integers are all that fits */
    const ak_lanes low = ak_lanes_set(levels->low), high = ak_lanes_set(levels->high);
    x = ak_lanes_select(ak_lanes_less(low, x), x, low);
    x = ak_lanes_select(ak_lanes_less(x, high), x, high);
    return (x + magic) - magic;
}

/* The same of one number; of a NaN the least. */
AK_SEARCH float ak_level(float x, const struct ak_levels *levels)
{
    if (levels->list) {
        float y = levels->list[0];
        for (int i = 1; i < levels->n; i++)
            if (x > 0.5f * (levels->list[i] + levels->list[i - 1]))
                y += levels->list[i] - levels->list[i - 1];
        return y;
    }
    x = x > levels->low ? x : levels->low;
    x = x < levels->high ? x : levels->high;
    return (x + 12582912.0f) - 12582912.0f;
}

#endif
