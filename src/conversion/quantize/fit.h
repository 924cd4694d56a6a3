/* The scale of a block, or scale and minimum, with the least Σ w·(x − x̂)² that a search finds:
 * candidates around the scale that spans the block, then around the best of them. For each, x is
 * rounded to levels and the scale fitted to these. */
#ifndef AK_CONVERSION_QUANTIZE_FIT_H
#define AK_CONVERSION_QUANTIZE_FIT_H

#include <math.h>
#include <stdbool.h>

#include "conversion/quantize/lanes.h"

/* What is smaller than this is 0: its inverse may be infinite. */
static const float AK_FIT_LEAST = 1e-30f;

/* Σ w·(x − (scale · level + minimum))² of each candidate. */
AK_SEARCH void ak_fit_errors(const float *x, const float *w, int n, const float *scales,
                             const float *minimums, const struct ak_levels *levels, float *errors)
{
    for (int first = 0; first < AK_CANDIDATES; first += AK_LANES) {
        ak_lanes scale = ak_lanes_load(scales + first), minimum = ak_lanes_load(minimums + first),
                 inverse = ak_lanes_inverse(scale), sum = ak_lanes_set(0.0f);
        for (int i = 0; i < n; i++) {
            ak_lanes rest = x[i] - minimum,
                     error = rest - ak_lanes_level(rest * inverse, levels) * scale;
            sum += w[i] * error * error;
        }
        ak_lanes_store(sum, errors + first);
    }
}

/* ---- x ≈ scale · level -------------------------------------------------- */
/* Inverses of the scales that a pass of ak_fit_scale tries: in the first two, what lets the largest
 * element be near the highest level, with the one sign and the other; then, what is near the best
 * of these. Of a list one pass tries both signs: lists are slow. */
AK_SEARCH ak_lanes ak_fit_inverses(int pass, int first, float largest, float best,
                                   const struct ak_levels *levels)
{
    static const float signs[AK_CANDIDATES] = { -1, 1, -1, 1, -1, 1, -1, 1,
                                                -1, 1, -1, 1, -1, 1, -1, 1 };
    ak_lanes ramp = ak_lanes_ramp(first), inverse;
    if (pass == 2)
        return (1.0f / best) * (1.0f + ramp * (levels->step / 16.0f / levels->high));
    inverse = (levels->high + ramp * levels->step) / (pass ? largest : -largest);
    return levels->list ? inverse * ak_lanes_load(signs + first) : inverse;
}

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
        float gains[AK_CANDIDATES], products[AK_CANDIDATES], squares[AK_CANDIDATES];
        if (pass == 2 && best == 0.0f)
            break;
        for (int first = 0; first < AK_CANDIDATES; first += AK_LANES) {
            ak_lanes inverse = ak_fit_inverses(pass, first, largest, best, levels),
                     product = ak_lanes_set(0.0f), square = product;
            for (int i = 0; i < n; i++) {
                ak_lanes level = ak_lanes_level(x[i] * inverse, levels), weighted = w[i] * level;
                product += weighted * x[i];
                square += weighted * level;
            }
            /* the scale that fits best is product / square, and lowers Σ w·x² by this */
            ak_lanes_store(product * product / square, gains + first);
            ak_lanes_store(product, products + first);
            ak_lanes_store(square, squares + first);
        }
        int at = -1;
        for (int i = 0; i < AK_CANDIDATES; i++)
            if (gains[i] > best_gain) { /* of a square of 0 it is no number */
                best_gain = gains[i];
                at = i;
            }
        best = at < 0 ? best : products[at] / squares[at];
    }
    return best;
}

/* ---- x ≈ scale · level + minimum ---------------------------------------- */
struct ak_fit_line {
    float scale, minimum, error;
};

/* What all lines of a block have in common. */
struct ak_fit_block {
    const float *x, *w;
    int n;
    const struct ak_levels *levels;
    float most, bound;    /* of a minimum; what it is if it is above, or not determined */
    float sum_w, wx, wxx; /* Σ w, Σ w·x, Σ w·x² */
};

struct ak_fit_lines {
    float scales[AK_CANDIDATES], minimums[AK_CANDIDATES], errors[AK_CANDIDATES];
};

/* Rounds (x − from) · inverse to levels and fits a line to these, in the lanes from `first` on. */
AK_SEARCH void ak_fit_lines(const struct ak_fit_block *b, ak_lanes inverse, float from, int first,
                            struct ak_fit_lines *out)
{
    const ak_lanes zero = ak_lanes_set(0.0f), origin = ak_lanes_set(from);
    ak_lanes wl = zero, wll = zero, wxl = zero;
    for (int i = 0; i < b->n; i++) {
        ak_lanes level = ak_lanes_level((b->x[i] - origin) * inverse, b->levels),
                 weighted = b->w[i] * level;
        wl += weighted;
        wll += weighted * level;
        wxl += weighted * b->x[i];
    }
    ak_lanes determinant = b->sum_w * wll - wl * wl,
             scale = (b->sum_w * wxl - b->wx * wl) / determinant,
             minimum = (wll * b->wx - wl * wxl) / determinant;
    ak_lanes_int is_bound = ~(zero < determinant) | (ak_lanes_set(b->most) < minimum);
    minimum = ak_lanes_select(is_bound, ak_lanes_set(b->bound), minimum);
    scale = ak_lanes_select(is_bound, (wxl - minimum * wl) / wll, scale);
    ak_lanes error = b->wxx - 2.0f * (scale * wxl + minimum * b->wx) + scale * scale * wll +
                     2.0f * scale * minimum * wl + minimum * minimum * b->sum_w;
    ak_lanes_store(scale, out->scales + first);
    ak_lanes_store(minimum, out->minimums + first);
    ak_lanes_store(error, out->errors + first);
}

/* Inverses of scales: what lets the span of the elements be near that of the levels; then what is
 * near the best of these, and nearer. */
AK_SEARCH ak_lanes ak_fit_line_inverses(int pass, int first, float span, float best,
                                        const struct ak_levels *levels)
{
    ak_lanes ramp = ak_lanes_ramp(first);
    if (pass == 0)
        return (levels->high + ramp * levels->step) / span;
    return (1.0f / best) * (1.0f + ramp * (0.5f * levels->step / levels->high / (float)pass));
}

/* With a scale above 0, levels from 0 on, and a minimum of at most `most`: 0 or INFINITY. */
AK_SEARCH struct ak_fit_line ak_fit_line(const float *x, const float *w, int n,
                                         const struct ak_levels *levels, float most)
{
    struct ak_fit_block block = { .x = x, .w = w, .n = n, .levels = levels, .most = most };
    struct ak_fit_lines lines;
    float top = x[0], bottom = x[0];
    for (int i = 0; i < n; i++) {
        top = x[i] > top ? x[i] : top;
        bottom = x[i] < bottom ? x[i] : bottom;
        block.sum_w += w[i];
        block.wx += w[i] * x[i];
        block.wxx += w[i] * x[i] * x[i];
    }
    bottom = bottom < most ? bottom : most;
    block.bound = most < INFINITY ? most : bottom;
    struct ak_fit_line best = { 0.0f, bottom, INFINITY };
    if (!(top - bottom > AK_FIT_LEAST))
        return best;
    for (int pass = 0; pass < 3 && (pass == 0 || best.scale > 0.0f); pass++) {
        float scale = best.scale, minimum = best.minimum;
        for (int first = 0; first < AK_CANDIDATES; first += AK_LANES)
            ak_fit_lines(&block, ak_fit_line_inverses(pass, first, top - bottom, scale, levels),
                         minimum, first, &lines);
        for (int i = 0; i < AK_CANDIDATES; i++)
            if (lines.errors[i] < best.error && lines.scales[i] > 0.0f)
                best = (struct ak_fit_line){ lines.scales[i], lines.minimums[i], lines.errors[i] };
    }
    return best;
}

#endif
