/* Super-blocks whose vectors are points of a codebook (quant/codebook.h), each group of vectors
 * with a small integer scale. For a vector of elements x with weights w and a scale s, point q
 * costs s² · Σ w·q² − 2s · Σ w·x·q, two sums in which s does not occur. So each vector is compared
 * with all points once, at eight scales around the group's: the winners are its entries. At any
 * scale its best entry is then nearly the best point, and each integer scale of each group costs
 * little to try for many values of d. Used by quantize/grid_rows.h. */
#ifndef AK_QUANTIZE_GRID_H
#define AK_QUANTIZE_GRID_H

#include <stdbool.h>
#include <string.h>

#include "quant/block.h"
#include "quant/codebook.h"
#include "quantize/fit.h"

enum {
    AK_GRID_DIMS_MAX = 8,
    AK_GRID_GROUP_MAX = 32,
    AK_GRID_VECTORS_MAX = 64, /* of a super-block */
    AK_GRID_GROUPS_MAX = 16,
    AK_GRID_ENTRIES = 8 /* of a vector; with a shift, the upper half is shifted down */
};

/* What IQ1 types add to all numbers of a vector, up or down. */
enum ak_grid_shift {
    AK_GRID_NO_SHIFT,
    AK_GRID_SHIFT_GROUP, /* the same way in a group */
    AK_GRID_SHIFT_VECTOR
};

/* x ≈ d · unit · (2 · scale + 1) · (number ± shift). */
struct ak_grid_shape {
    const uint16_t *codes;
    int n_codes, n_dims, bits; /* of the codebook, of a vector, of an element of a code */
    const int8_t *values;      /* by the bits of an element */
    int group;                 /* elements of a group: 32 or 16 */
    int n_scales;              /* 8 or 16 */
    float unit;
    bool is_even; /* of eight elements, an even number are negative */
    enum ak_grid_shift shift;
    float magnitudes[8]; /* what an element may be, without sign and shift; ascending */
    int n_magnitudes;
    float reach; /* the greatest magnitude times the usual scale, per root mean square */
};

static const float AK_GRID_SHIFT = 0.125f;

struct ak_grid_vector {
    float squares[AK_GRID_ENTRIES], products[AK_GRID_ENTRIES]; /* Σ w·q², 2 · Σ w·x·q */
    uint16_t codes[AK_GRID_ENTRIES];
};

struct ak_grid {
    float d; /* as FP16 has it */
    float error;
    int scale[AK_GRID_GROUPS_MAX];
    bool is_down[AK_GRID_VECTORS_MAX];
    uint16_t code[AK_GRID_VECTORS_MAX];
    uint8_t signs[AK_QUANT_SUPER_BLOCK / 8];
};

/* ---- Points ------------------------------------------------------------- */
/* [n_codes / 16][n_dims]: element i of 16 points. */
AK_SEARCH void ak_grid_expand(const struct ak_grid_shape *s, ak_lanes *points)
{
    for (int code = 0; code < s->n_codes; code++)
        for (int i = 0; i < s->n_dims; i++)
            points[code / 16 * s->n_dims + i][code % 16] =
                s->values[s->codes[code] >> s->bits * i & ((1 << s->bits) - 1)];
}

AK_SEARCH float ak_grid_number(const struct ak_grid_shape *s, uint16_t code, int i, float shift)
{
    return (float)s->values[s->codes[code] >> s->bits * i & ((1 << s->bits) - 1)] + shift;
}

/* Σ w·q² and 2 · Σ w·x·q of 16 points, shifted up and, in the second half, down. */
struct ak_grid_sums {
    ak_lanes square[2], product[2];
};

/* Of a vector, for all points: with a shift, Σ w times its square, 2 · Σ w·x times it. */
struct ak_grid_vector_sums {
    float weighted[AK_GRID_DIMS_MAX]; /* 2 · w·x */
    float shift_square, shift_product;
};

AK_SEARCH struct ak_grid_sums ak_grid_add(const struct ak_grid_shape *s, const ak_lanes *points,
                                          const float *w, const struct ak_grid_vector_sums *of)
{
    ak_lanes square = ak_lanes_set(0.0f), product = square, sum = square;
    for (int i = 0; i < s->n_dims; i++) {
        ak_lanes weighted = w[i] * points[i];
        square += weighted * points[i];
        product += of->weighted[i] * points[i];
        if (s->shift != AK_GRID_NO_SHIFT)
            sum += weighted;
    }
    if (s->shift == AK_GRID_NO_SHIFT)
        return (struct ak_grid_sums){ { square }, { product } };
    sum *= 2.0f * AK_GRID_SHIFT;
    square += of->shift_square;
    return (struct ak_grid_sums){ { square + sum, square - sum },
                                  { product + of->shift_product, product - of->shift_product } };
}

/* The lane of the least cost; the first one of several in each pair that is compared. */
AK_SEARCH int ak_grid_find_least(const ak_lanes *costs)
{
    float cost[AK_LANES_OF_SEARCH];
    int lane[AK_LANES_OF_SEARCH];
    memcpy(cost, costs, sizeof cost);
    for (int i = 0; i < AK_LANES_OF_SEARCH; i++)
        lane[i] = i;
    for (int half = AK_LANES_OF_SEARCH / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++) {
            bool is_less = cost[i + half] < cost[i];
            cost[i] = is_less ? cost[i + half] : cost[i];
            lane[i] = is_less ? lane[i + half] : lane[i];
        }
    return lane[0];
}

/* The best point for each entry: at each of the scales, shifted up, and then down. */
AK_SEARCH void ak_grid_search(const struct ak_grid_shape *s, const ak_lanes *points, const float *x,
                              const float *w, const float scales[AK_GRID_ENTRIES],
                              uint16_t codes[AK_GRID_ENTRIES])
{
    ak_lanes least[AK_GRID_ENTRIES];
    ak_lanes_mask at[AK_GRID_ENTRIES];
    struct ak_grid_vector_sums of = { .shift_square = 0.0f };
    for (int i = 0; i < s->n_dims; i++) {
        of.weighted[i] = 2.0f * x[i] * w[i];
        of.shift_square += w[i] * (AK_GRID_SHIFT * AK_GRID_SHIFT);
        of.shift_product += of.weighted[i] * AK_GRID_SHIFT;
    }
    for (int e = 0; e < AK_GRID_ENTRIES; e++) {
        least[e] = ak_lanes_set(INFINITY);
        at[e] = (ak_lanes_mask){ 0 };
    }
    for (int block = 0; block < s->n_codes / AK_LANES_OF_SEARCH; block++) {
        const struct ak_grid_sums sums = ak_grid_add(s, points + block * s->n_dims, w, &of);
        const ak_lanes_mask here = (ak_lanes_mask){ 0 } + block;
        for (int e = 0; e < AK_GRID_ENTRIES; e++) {
            int down = s->shift != AK_GRID_NO_SHIFT && e >= AK_GRID_ENTRIES / 2;
            ak_lanes cost = scales[e] * sums.square[down] - sums.product[down];
            ak_lanes_mask is_less = ak_lanes_less(cost, least[e]);
            least[e] = ak_lanes_select(is_less, cost, least[e]);
            at[e] = (here & is_less) | (at[e] & ~is_less);
        }
    }
    for (int e = 0; e < AK_GRID_ENTRIES; e++) {
        int lane = ak_grid_find_least(&least[e]);
        codes[e] = (uint16_t)(at[e][lane] * AK_LANES_OF_SEARCH + lane);
    }
}

/* ---- A group ------------------------------------------------------------ */
/* The scale with which magnitudes meet the elements best, each by itself. Of zeros, 0. */
AK_SEARCH float ak_grid_guess(const struct ak_grid_shape *s, const float *x, const float *w)
{
    float sum = 0.0f, squares = 0.0f, best = 0.0f, best_gain = 0.0f;
    for (int i = 0; i < s->group; i++) {
        sum += w[i];
        squares += w[i] * x[i] * x[i];
    }
    float usual = sqrtf(squares / sum) * s->reach / s->magnitudes[s->n_magnitudes - 1];
    if (!(usual > AK_FIT_LEAST) || !(usual < INFINITY))
        return 0.0f;
    ak_lanes inverse = (1.0f / usual) * (1.2f + ak_lanes_ramp() * 0.09f),
             product = ak_lanes_set(0.0f), square = product;
    for (int i = 0; i < s->group; i++) {
        ak_lanes level = ak_lanes_set(s->magnitudes[0]), scaled = fabsf(x[i]) * inverse;
        for (int m = 1; m < s->n_magnitudes; m++) {
            ak_lanes middle = ak_lanes_set(0.5f * (s->magnitudes[m] + s->magnitudes[m - 1])),
                     more = ak_lanes_set(s->magnitudes[m] - s->magnitudes[m - 1]);
            level += (ak_lanes)((ak_lanes_mask)more & ak_lanes_less(middle, scaled));
        }
        ak_lanes weighted = w[i] * level;
        product += weighted * fabsf(x[i]);
        square += weighted * level;
    }
    ak_lanes gain = product * product * ak_lanes_inverse(square);
    for (int i = 0; i < AK_LANES_OF_SEARCH; i++)
        if (gain[i] > best_gain) {
            best_gain = gain[i];
            best = product[i] / square[i];
        }
    return best;
}

/* What is compared with the points: magnitudes, and signs. If the signs must be even and are not,
 * the element that matters least takes the wrong one. */
AK_SEARCH void ak_grid_split(const struct ak_grid_shape *s, const float *x, const float *w,
                             float *magnitudes, uint8_t *signs)
{
    for (int i = 0; i < s->group; i++)
        magnitudes[i] = s->shift == AK_GRID_NO_SHIFT ? fabsf(x[i]) : x[i];
    for (int eight = 0; eight < s->group; eight += 8) {
        unsigned bits = 0;
        int least = eight;
        for (int i = eight; i < eight + 8; i++) {
            bits |= (unsigned)(x[i] < 0.0f) << (i - eight);
            least = w[i] * magnitudes[i] < w[least] * magnitudes[least] ? i : least;
        }
        if (s->is_even && __builtin_parity(bits)) {
            magnitudes[least] = -magnitudes[least];
            bits ^= 1u << (least - eight);
        }
        signs[eight / 8] = (uint8_t)bits;
    }
}

/* Whether an entry is shifted down. */
AK_SEARCH bool ak_grid_is_down(const struct ak_grid_shape *s, int entry)
{
    return s->shift != AK_GRID_NO_SHIFT && entry >= AK_GRID_ENTRIES / 2;
}

AK_SEARCH void ak_grid_enter(const struct ak_grid_shape *s, const ak_lanes *points, const float *x,
                             const float *w, const float scales[AK_GRID_ENTRIES],
                             struct ak_grid_vector *v)
{
    ak_grid_search(s, points, x, w, scales, v->codes);
    for (int e = 0; e < AK_GRID_ENTRIES; e++) {
        float shift = s->shift == AK_GRID_NO_SHIFT ? 0.0f :
                      ak_grid_is_down(s, e)        ? -AK_GRID_SHIFT :
                                                     AK_GRID_SHIFT;
        v->squares[e] = v->products[e] = 0.0f;
        for (int i = 0; i < s->n_dims; i++) {
            float number = ak_grid_number(s, v->codes[e], i, shift);
            v->squares[e] += w[i] * number * number;
            v->products[e] += 2.0f * x[i] * w[i] * number;
        }
    }
}

/* Enters the vectors of a group. Returns the scale with the least error, 0 if none lowers it. */
AK_SEARCH float ak_grid_fit_group(const struct ak_grid_shape *s, const ak_lanes *points,
                                  const float *x, const float *w, struct ak_grid_vector *vectors)
{
    static const float around[2][AK_GRID_ENTRIES] = {
        { 0.70f, 0.78f, 0.86f, 0.94f, 1.03f, 1.13f, 1.25f, 1.40f },
        { 0.78f, 0.93f, 1.08f, 1.27f, 0.78f, 0.93f, 1.08f, 1.27f }, /* for each shift */
    };
    float scales[AK_GRID_ENTRIES], best = 0.0f, best_gain = 0.0f, guess = ak_grid_guess(s, x, w);
    guess = guess > 0.0f ? guess : 1.0f; /* of zeros: any, which finds the smallest points */
    for (int e = 0; e < AK_GRID_ENTRIES; e++)
        scales[e] = guess * around[s->shift != AK_GRID_NO_SHIFT][e];
    for (int v = 0; v < s->group / s->n_dims; v++)
        ak_grid_enter(s, points, x + v * s->n_dims, w + v * s->n_dims, scales, &vectors[v]);
    for (int e = 0; e < AK_GRID_ENTRIES; e++) {
        float square = 0.0f, product = 0.0f;
        for (int v = 0; v < s->group / s->n_dims; v++) {
            square += vectors[v].squares[e];
            product += 0.5f * vectors[v].products[e];
        }
        if (product > 0.0f && square > 0.0f && product * product / square > best_gain) {
            best_gain = product * product / square;
            best = product / square;
        }
    }
    return best;
}

/* ---- A super-block ------------------------------------------------------ */
/* The integer scale of a group, and its way of shifting, with the least error for `d`: lanes are
 * scales. Returns the error, less that of zeros. */
AK_SEARCH float ak_grid_choose(const struct ak_grid_shape *s, const struct ak_grid_vector *vectors,
                               float d, int *scale, bool *is_down)
{
    const ak_lanes_mask upper = { 0, 0, 0, 0, 0, 0, 0, 0, -1, -1, -1, -1, -1, -1, -1, -1 };
    const int half = AK_GRID_ENTRIES / 2;
    bool shifts_group = s->shift == AK_GRID_SHIFT_GROUP;
    ak_lanes lanes = ak_lanes_ramp() + 7.5f, sum = ak_lanes_set(0.0f);
    if (s->n_scales == 8)
        lanes -= (ak_lanes)((ak_lanes_mask)ak_lanes_set(8.0f) & upper);
    ak_lanes factor = d * s->unit * (2.0f * lanes + 1.0f);
    for (int v = 0; v < s->group / s->n_dims; v++) {
        ak_lanes least = ak_lanes_set(INFINITY);
        for (int e = 0; e < (shifts_group ? half : AK_GRID_ENTRIES); e++) {
            ak_lanes square = ak_lanes_set(vectors[v].squares[e]),
                     product = ak_lanes_set(vectors[v].products[e]);
            if (shifts_group) {
                square = ak_lanes_select(upper, ak_lanes_set(vectors[v].squares[half + e]), square);
                product =
                    ak_lanes_select(upper, ak_lanes_set(vectors[v].products[half + e]), product);
            }
            ak_lanes cost = factor * square - product;
            least = ak_lanes_select(ak_lanes_less(cost, least), cost, least);
        }
        sum += least;
    }
    sum *= factor;
    int best = ak_grid_find_least(&sum);
    *scale = best % s->n_scales;
    *is_down = best >= s->n_scales;
    return sum[best];
}

AK_SEARCH void ak_grid_choose_all(const struct ak_grid_shape *s,
                                  const struct ak_grid_vector *vectors, struct ak_grid *of)
{
    int n_vectors = s->group / s->n_dims;
    of->error = 0.0f;
    for (int g = 0; g * s->group < AK_QUANT_SUPER_BLOCK; g++) {
        bool is_down;
        of->error += ak_grid_choose(s, vectors + g * n_vectors, of->d, &of->scale[g], &is_down);
        for (int v = g * n_vectors; v < (g + 1) * n_vectors; v++)
            of->is_down[v] = is_down;
    }
}

/* The best entry of each vector for d and scales. Returns the d that fits it best. */
AK_SEARCH float ak_grid_pick(const struct ak_grid_shape *s, const struct ak_grid_vector *vectors,
                             struct ak_grid *of)
{
    double square = 0.0, product = 0.0;
    for (int v = 0; v * s->n_dims < AK_QUANT_SUPER_BLOCK; v++) {
        float multiple = s->unit * (float)(2 * of->scale[v * s->n_dims / s->group] + 1),
              factor = of->d * multiple, least = INFINITY;
        bool shifts_group = s->shift == AK_GRID_SHIFT_GROUP;
        int first = shifts_group && of->is_down[v] ? AK_GRID_ENTRIES / 2 : 0,
            n = shifts_group ? AK_GRID_ENTRIES / 2 : AK_GRID_ENTRIES, best = first;
        for (int e = first; e < first + n; e++) {
            float cost = factor * vectors[v].squares[e] - vectors[v].products[e];
            if (cost < least) {
                least = cost;
                best = e;
            }
        }
        of->code[v] = vectors[v].codes[best];
        of->is_down[v] = ak_grid_is_down(s, best);
        square += (double)multiple * (double)multiple * (double)vectors[v].squares[best];
        product += (double)multiple * 0.5 * (double)vectors[v].products[best];
    }
    return square > 0.0 ? (float)(product / square) : of->d;
}

/* With the points known, another element may be the one that matters least. */
AK_SEARCH void ak_grid_settle_signs(const struct ak_grid_shape *s, const float *x, const float *w,
                                    struct ak_grid *of)
{
    for (int eight = 0; s->is_even && eight < AK_QUANT_SUPER_BLOCK; eight += 8) {
        unsigned bits = 0;
        float least = INFINITY;
        int at = 0;
        for (int i = 0; i < 8; i++) {
            int element = eight + i;
            float matters =
                w[element] * fabsf(x[element]) *
                ak_grid_number(s, of->code[element / s->n_dims], element % s->n_dims, 0.0f);
            bits |= (unsigned)(x[element] < 0.0f) << i;
            if (matters < least) {
                least = matters;
                at = i;
            }
        }
        of->signs[eight / 8] = (uint8_t)(__builtin_parity(bits) ? bits ^ 1u << at : bits);
    }
}

/* The d of the least error makes the numbers too small: their product with x is g · Σ w·x², with g
 * below 1. A network adds up what all its layers lose that way, so d regains most of it. */
AK_SEARCH void ak_grid_enlarge(const float *x, const float *w, struct ak_grid *of)
{
    const float regained = 0.75f, most = 1.5f;
    float all = 0.0f, kept = -of->error, by;
    for (int i = 0; i < AK_QUANT_SUPER_BLOCK; i++)
        all += w[i] * x[i] * x[i];
    if (!(kept > 0.0f))
        return;
    by = 1.0f + regained * (all / kept - 1.0f);
    of->d = ak_quant_round_f16(of->d * (by < most ? by : most));
}

AK_SEARCH void ak_grid_fit(const struct ak_grid_shape *s, const ak_lanes *points, const float *x,
                           const float *w, struct ak_grid *out)
{
    struct ak_grid_vector vectors[AK_GRID_VECTORS_MAX];
    float magnitudes[AK_GRID_GROUP_MAX], largest = 0.0f;
    *out = (struct ak_grid){ .error = INFINITY };
    for (int g = 0; g * s->group < AK_QUANT_SUPER_BLOCK; g++) {
        const float *weights = w + g * s->group;
        ak_grid_split(s, x + g * s->group, weights, magnitudes, out->signs + g * s->group / 8);
        float scale =
            ak_grid_fit_group(s, points, magnitudes, weights, vectors + g * (s->group / s->n_dims));
        largest = scale > largest ? scale : largest;
    }
    float usual = largest / (s->unit * (float)(2 * s->n_scales - 1));
    for (int i = 0; i < 16; i++) {
        struct ak_grid next = *out;
        next.d = ak_quant_round_f16(usual * (0.8f + 0.025f * (float)i));
        ak_grid_choose_all(s, vectors, &next);
        if (next.error < out->error)
            *out = next;
    }
    for (int round = 0; round < 3; round++) {
        struct ak_grid next = *out;
        next.d = ak_quant_round_f16(ak_grid_pick(s, vectors, out));
        ak_grid_choose_all(s, vectors, &next);
        if (!(next.error < out->error))
            break;
        *out = next;
    }
    ak_grid_pick(s, vectors, out);
    ak_grid_settle_signs(s, x, w, out);
    ak_grid_enlarge(x, w, out);
}

#endif
