/* Super-blocks: 256 elements whose sub-blocks have small integer scales, and minimums, for common
 * factors d and dmin in FP16. Each sub-block is fitted by itself; then integers near that are tried
 * for d and dmin as FP16 has them, and d and dmin are fitted to all numbers. */
#ifndef AK_CONVERSION_QUANTIZE_SUPER_H
#define AK_CONVERSION_QUANTIZE_SUPER_H

#include <stdbool.h>

#include "files/quant/block.h"
#include "conversion/quantize/fit.h"

enum { AK_SUPER_GROUPS_MAX = 16 };

/* x ≈ d · scale · level − dmin · minimum. */
struct ak_super_shape {
    int group;                               /* elements of a sub-block */
    int scale_low, scale_high, minimum_high; /* minimum_high 0: no minimums */
    int rounds;                              /* of fitting d and dmin, at most */
    struct ak_levels levels;
};

struct ak_super {
    float d, dmin; /* as FP16 has them */
    int scale[AK_SUPER_GROUPS_MAX], minimum[AK_SUPER_GROUPS_MAX];
    float error;
};

AK_SEARCH int ak_super_clamp(int x, int low, int high)
{
    return x < low ? low : x > high ? high : x;
}

AK_SEARCH int ak_super_nearest(float x, int low, int high)
{
    if (!(x > (float)low))
        return low;
    return x < (float)high ? (int)rintf(x) : high;
}

/* Steps to the neighbors of a scale, and of a scale and a minimum. */
static const float AK_SUPER_STEPS[2][2][AK_CANDIDATES] = {
    { { 0, 1, -1, 2, -2, 3, -3, 4, -4, 5, -5, 6, -6, 7 }, { 0 } },
    { { 0, 0, 0, 1, 1, 1, -1, -1, -1, 2, 2, 2, -2, -2, -2, 0 },
      { 0, 1, -1, 0, 1, -1, 0, 1, -1, 0, 1, 2, 0, -1, -2, 2 } },
};

AK_SEARCH ak_lanes ak_super_step(int from, const float *steps, int low, int high)
{
    ak_lanes to = (float)from + ak_lanes_load(steps);
    return ak_lanes_min(ak_lanes_max(to, ak_lanes_set((float)low)), ak_lanes_set((float)high));
}

/* Moves scale and minimum to the best of 16 neighbors, as long as that helps. Returns the error. */
AK_SEARCH float ak_super_climb(const struct ak_super_shape *s, const float *x, const float *w,
                               const struct ak_super *of, int *scale, int *minimum, int rounds)
{
    bool is_line = s->minimum_high > 0 && of->dmin != 0.0f;
    const float(*steps)[AK_CANDIDATES] = AK_SUPER_STEPS[is_line];
    float best = INFINITY;
    for (int round = 0; round < rounds; round++) {
        float factors[AK_CANDIDATES], offsets[AK_CANDIDATES], errors[AK_CANDIDATES];
        for (int i = 0; i < AK_CANDIDATES; i += AK_LANES) {
            ak_lanes_store(of->d * ak_super_step(*scale, steps[0] + i, s->scale_low, s->scale_high),
                           factors + i);
            ak_lanes_store(-of->dmin * ak_super_step(*minimum, steps[1] + i, 0, s->minimum_high),
                           offsets + i);
        }
        ak_fit_errors(x, w, s->group, factors, offsets, &s->levels, errors);
        int at = -1;
        for (int i = 0; i < AK_CANDIDATES; i++)
            if (errors[i] < best) {
                best = errors[i];
                at = i;
            }
        int from[2] = { *scale, *minimum };
        if (at >= 0) {
            *scale = ak_super_clamp(from[0] + (int)steps[0][at], s->scale_low, s->scale_high);
            *minimum = ak_super_clamp(from[1] + (int)steps[1][at], 0, s->minimum_high);
        }
        if (*scale == from[0] && *minimum == from[1])
            break;
    }
    return best;
}

/* All sub-blocks for of->d and of->dmin. */
AK_SEARCH void ak_super_climb_all(const struct ak_super_shape *s, const float *x, const float *w,
                                  struct ak_super *of, int rounds)
{
    of->error = 0.0f;
    for (int g = 0; g * s->group < AK_QUANT_SUPER_BLOCK; g++)
        of->error += ak_super_climb(s, x + g * s->group, w + g * s->group, of, &of->scale[g],
                                    &of->minimum[g], rounds);
}

/* The level of an element of sub-block g. */
AK_SEARCH float ak_super_level(const struct ak_super_shape *s, const struct ak_super *of, int g,
                               float x)
{
    float inverse = ak_quant_inverse(of->d * (float)of->scale[g]);
    return ak_level((x + of->dmin * (float)of->minimum[g]) * inverse, &s->levels);
}

/* Fits d and dmin to levels, scales and minimums. False: they are not determined. */
AK_SEARCH bool ak_super_fit_factors(const struct ak_super_shape *s, const float *x, const float *w,
                                    const struct ak_super *of, float *d, float *dmin)
{
    double aa = 0.0, ab = 0.0, bb = 0.0, ax = 0.0, bx = 0.0;
    for (int g = 0; g * s->group < AK_QUANT_SUPER_BLOCK; g++) {
        float ll = 0.0f, l = 0.0f, lx = 0.0f, sum = 0.0f, wx = 0.0f;
        for (int i = g * s->group; i < (g + 1) * s->group; i++) {
            float level = ak_super_level(s, of, g, x[i]);
            ll += w[i] * level * level;
            l += w[i] * level;
            lx += w[i] * level * x[i];
            sum += w[i];
            wx += w[i] * x[i];
        }
        double a = of->scale[g], b = -of->minimum[g];
        aa += a * a * (double)ll;
        ab += a * b * (double)l;
        bb += b * b * (double)sum;
        ax += a * (double)lx;
        bx += b * (double)wx;
    }
    double determinant = aa * bb - ab * ab;
    if (bb > 0.0 && determinant > 0.0) {
        *d = (float)((bb * ax - ab * bx) / determinant);
        *dmin = (float)((aa * bx - ab * ax) / determinant);
        return *dmin >= 0.0f;
    }
    *d = (float)(ax / aa);
    *dmin = of->dmin;
    return aa > 0.0;
}

AK_SEARCH void ak_super_fit(const struct ak_super_shape *s, const float *x, const float *w,
                            struct ak_super *out)
{
    struct ak_fit_line lines[AK_SUPER_GROUPS_MAX];
    float largest = 0.0f, lowest = 0.0f, d, dmin;
    for (int g = 0; g * s->group < AK_QUANT_SUPER_BLOCK; g++) {
        const float *at = x + g * s->group, *weight = w + g * s->group;
        lines[g] =
            s->minimum_high > 0 ?
                ak_fit_line(at, weight, s->group, &s->levels, 0.0f) :
                (struct ak_fit_line){ .scale = ak_fit_scale(at, weight, s->group, &s->levels) };
        largest = fabsf(lines[g].scale) > fabsf(largest) ? lines[g].scale : largest;
        lowest = lines[g].minimum < lowest ? lines[g].minimum : lowest;
    }
    d = largest / (float)(s->scale_low < 0 ? s->scale_low : s->scale_high);
    dmin = s->minimum_high > 0 ? -lowest / (float)s->minimum_high : 0.0f;
    *out = (struct ak_super){ .d = ak_quant_round_f16(d), .dmin = ak_quant_round_f16(dmin) };
    for (int g = 0; g * s->group < AK_QUANT_SUPER_BLOCK; g++) {
        out->scale[g] = ak_super_nearest(lines[g].scale * ak_quant_inverse(out->d), s->scale_low,
                                         s->scale_high);
        out->minimum[g] =
            ak_super_nearest(-lines[g].minimum * ak_quant_inverse(out->dmin), 0, s->minimum_high);
    }
    ak_super_climb_all(s, x, w, out, 1);
    for (int round = 0; round < s->rounds; round++) {
        struct ak_super next = *out;
        if (!ak_super_fit_factors(s, x, w, out, &d, &dmin))
            break;
        next.d = ak_quant_round_f16(d);
        next.dmin = ak_quant_round_f16(dmin);
        ak_super_climb_all(s, x, w, &next, s->minimum_high > 0 ? 2 : 1);
        if (!(next.error < out->error))
            break;
        *out = next;
    }
}

#endif
