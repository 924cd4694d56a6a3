/* The scale of a block, or scale and minimum, with the least Σ w·(x − x̂)² that a search finds:
 * candidates around the scale that spans the block, then around the best of them. For each, x is
 * rounded to levels and the scale fitted to these. Used by quantize/super.h and quantize/rows.h. */
#ifndef AK_QUANTIZE_FIT_H
#define AK_QUANTIZE_FIT_H

#include <math.h>
#include <stdbool.h>

#include "quantize/lanes.h"

/* What is smaller than this is 0: its inverse may be infinite. */
static const float AK_FIT_LEAST = 1e-30f;

/* Σ w·(x − (scale · level + minimum))² of 16 candidates. */
AK_SEARCH ak_lanes ak_fit_errors(const float *x, const float *w, int n, ak_lanes scale,
                                 ak_lanes minimum, const struct ak_levels *levels)
{
    ak_lanes inverse = ak_lanes_inverse(scale), sum = ak_lanes_set(0.0f);
    for (int i = 0; i < n; i++) {
        ak_lanes rest = x[i] - minimum,
                 error = rest - ak_lanes_level(rest * inverse, levels) * scale;
        sum += w[i] * error * error;
    }
    return sum;
}

/* ---- x ≈ scale · level -------------------------------------------------- */
/* Of a block of zeros, 0. A scale is negative if that lets the wider side of the levels meet the
 * larger elements. */
AK_SEARCH float ak_fit_scale(const float *x, const float *w, int n, const struct ak_levels *levels)
{
    float largest = 0.0f, best = 0.0f, best_gain = 0.0f;
    for (int i = 0; i < n; i++)
        largest = fabsf(x[i]) > largest ? fabsf(x[i]) : largest;
    if (!(largest > AK_FIT_LEAST))
        return 0.0f;
    bool is_even = levels->low == -levels->high;
    for (int pass = is_even || levels->list ? 1 : 0; pass < 3; pass++) {
        ak_lanes inverse, product = ak_lanes_set(0.0f), square = product;
        if (pass == 2 && best == 0.0f)
            break;
        if (pass == 2)
            inverse =
                (1.0f / best) * (1.0f + ak_lanes_ramp() * (levels->step / 16.0f / levels->high));
        else
            inverse = (levels->high + ak_lanes_ramp() * levels->step) / (pass ? largest : -largest);
        if (levels->list && pass == 1) /* both signs in one pass: lists are slow */
            inverse = ak_lanes_select(ak_lanes_odd(), inverse, -inverse);
        for (int i = 0; i < n; i++) {
            ak_lanes level = ak_lanes_level(x[i] * inverse, levels), weighted = w[i] * level;
            product += weighted * x[i];
            square += weighted * level;
        }
        /* the scale that fits best is product / square, and lowers Σ w·x² by this */
        ak_lanes gain = ak_lanes_select(ak_lanes_less(ak_lanes_set(0.0f), square),
                                        product * product / square, ak_lanes_set(0.0f));
        for (int i = 0; i < AK_LANES_OF_SEARCH; i++)
            if (gain[i] > best_gain) {
                best_gain = gain[i];
                best = product[i] / square[i];
            }
    }
    return best;
}

/* ---- x ≈ scale · level + minimum ---------------------------------------- */
struct ak_fit_line {
    float scale, minimum, error;
};

/* With a scale above 0, levels from 0 on, and a minimum of at most `most`: 0 or INFINITY. */
AK_SEARCH struct ak_fit_line ak_fit_line(const float *x, const float *w, int n,
                                         const struct ak_levels *levels, float most)
{
    float top = x[0], bottom = x[0], sum = 0.0f, wx = 0.0f, wxx = 0.0f;
    for (int i = 0; i < n; i++) {
        top = x[i] > top ? x[i] : top;
        bottom = x[i] < bottom ? x[i] : bottom;
        sum += w[i];
        wx += w[i] * x[i];
        wxx += w[i] * x[i] * x[i];
    }
    bottom = bottom < most ? bottom : most;
    struct ak_fit_line best = { 0.0f, bottom, INFINITY };
    if (!(top - bottom > AK_FIT_LEAST))
        return best;
    for (int pass = 0; pass < 3; pass++) {
        ak_lanes inverse, minimum, wl = ak_lanes_set(0.0f), wll = wl, wxl = wl;
        if (pass > 0 && !(best.scale > 0.0f))
            break;
        inverse =
            pass == 0 ?
                (levels->high + ak_lanes_ramp() * levels->step) / (top - bottom) :
                (1.0f / best.scale) *
                    (1.0f + ak_lanes_ramp() * (0.5f * levels->step / levels->high / (float)pass));
        minimum = ak_lanes_set(pass == 0 ? bottom : best.minimum);
        for (int i = 0; i < n; i++) {
            ak_lanes level = ak_lanes_level((x[i] - minimum) * inverse, levels),
                     weighted = w[i] * level;
            wl += weighted;
            wll += weighted * level;
            wxl += weighted * x[i];
        }
        ak_lanes determinant = sum * wll - wl * wl, scale = (sum * wxl - wx * wl) / determinant;
        minimum = (wll * wx - wl * wxl) / determinant;
        ak_lanes_mask bound = ~ak_lanes_less(ak_lanes_set(0.0f), determinant) |
                              ak_lanes_less(ak_lanes_set(most), minimum);
        minimum = ak_lanes_select(bound, ak_lanes_set(most < INFINITY ? most : bottom), minimum);
        scale = ak_lanes_select(bound, (wxl - minimum * wl) / wll, scale);
        ak_lanes error = wxx - 2.0f * (scale * wxl + minimum * wx) + scale * scale * wll +
                         2.0f * scale * minimum * wl + minimum * minimum * sum;
        for (int i = 0; i < AK_LANES_OF_SEARCH; i++)
            if (error[i] < best.error && scale[i] > 0.0f)
                best = (struct ak_fit_line){ scale[i], minimum[i], error[i] };
    }
    return best;
}

#endif
