/* Super-blocks whose vectors are points of a codebook (files/quant/codebook.h), each group of
 * vectors with a small integer scale. For a vector of elements x with weights w and a scale s,
 * point q costs s² · Σ w·q² − 2s · Σ w·x·q, two sums in which s does not occur. At eight scales
 * around the group's, x is rounded and compared with the points near that
 * (conversion/quantize/near.h): the winners are the vector's entries. At any scale its best entry
 * is then nearly the best point, and each integer scale of each group costs little to try for many
 * values of d. */
#ifndef AK_CONVERSION_QUANTIZE_GRID_H
#define AK_CONVERSION_QUANTIZE_GRID_H

#include <stdbool.h>
#include <string.h>

#include "files/quant/block.h"
#include "conversion/quantize/fit.h"
#include "conversion/quantize/near.h"

enum {
    AK_GRID_GROUP_MAX = 32,
    AK_GRID_VECTORS_MAX = 64, /* of a super-block */
    AK_GRID_GROUPS_MAX = 16,
    AK_GRID_ENTRIES = 8, /* of a vector; with a shift, the upper half is shifted down */
    AK_GRID_TABLE = 32,  /* levels of all elements of a vector: 8 times 4, or 4 times 8 */
    AK_GRID_SCALES = 8,  /* integers that are tried for a group */
    AK_GRID_FACTORS = 16 /* values of d that are tried first */
};

/* What IQ1 types add to all numbers of a vector, up or down. */
enum ak_grid_shift {
    AK_GRID_NO_SHIFT,
    AK_GRID_SHIFT_GROUP, /* the same way in a group */
    AK_GRID_SHIFT_VECTOR
};

/* x ≈ d · unit · (2 · scale + 1) · (number ± shift). */
struct ak_grid_shape {
    int n_dims, bits;     /* of a vector; of an element of a code */
    float numbers[8];     /* by the bits of an element */
    float first, spacing; /* numbers are nearly first + level · spacing */
    int group;            /* elements of a group: 32 or 16 */
    int n_scales;         /* 8 or 16 */
    float unit;
    bool is_even; /* of eight elements, an even number are negative */
    enum ak_grid_shift shift;
    float reach; /* the greatest number times the usual scale, per root mean square */
};

static const float AK_GRID_SHIFT = 0.125f;

/* Larger elements count as this much, which is more than d in FP16 lets a block hold. Their squares
 * are finite. */
static const float AK_GRID_MAX = 1e9f;

/* Of a vector. */
struct ak_grid_entries {
    float squares[AK_GRID_ENTRIES], products[AK_GRID_ENTRIES]; /* Σ w·q², 2 · Σ w·x·q */
    int32_t codes[AK_GRID_ENTRIES];
};

struct ak_grid {
    float d; /* as FP16 has it */
    float error;
    int scale[AK_GRID_GROUPS_MAX];
    bool is_down[AK_GRID_VECTORS_MAX];
    uint16_t code[AK_GRID_VECTORS_MAX];
    uint8_t signs[AK_QUANT_SUPER_BLOCK / 8];
};

/* 0 … 7, and 0 … 31 */
static const int32_t AK_GRID_COUNT[32] = { 0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
                                           11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
                                           22, 23, 24, 25, 26, 27, 28, 29, 30, 31 };

AK_SEARCH int ak_grid_levels(const struct ak_grid_shape *s)
{
    return s->bits == 2 ? 3 : 8;
}

AK_SEARCH ak_lanes ak_grid_lookup(const struct ak_grid_shape *s, const float *table,
                                  ak_lanes_int bits)
{
    return s->bits == 2 ? ak_lanes_lookup4(table, bits) : ak_lanes_lookup8(table, bits);
}

AK_SEARCH float ak_grid_number(const struct ak_grid_shape *s, uint16_t code, int i)
{
    return s->numbers[code >> s->bits * i & ((1 << s->bits) - 1)];
}

/* What is added to the numbers of the entries from `first` on. */
AK_SEARCH ak_lanes ak_grid_shifts(const struct ak_grid_shape *s, int first)
{
    static const float signs[AK_GRID_ENTRIES] = { 1, 1, 1, 1, -1, -1, -1, -1 };
    float shift = s->shift == AK_GRID_NO_SHIFT ? 0.0f : AK_GRID_SHIFT;
    return shift * ak_lanes_load(signs + first);
}

/* Whether an entry is shifted down. */
AK_SEARCH bool ak_grid_is_down(const struct ak_grid_shape *s, int entry)
{
    return s->shift != AK_GRID_NO_SHIFT && entry >= AK_GRID_ENTRIES / 2;
}

/* The level nearest to each element, as a float; its lowest bits, with AK_LANES_MAGIC added, are
 * the level as an integer. */
AK_SEARCH ak_lanes ak_grid_level(const struct ak_grid_shape *s, ak_lanes number)
{
    ak_lanes level = (number - s->first) * (1.0f / s->spacing);
    level = ak_lanes_max(level, ak_lanes_set(0.0f));
    return ak_lanes_min(level, ak_lanes_set((float)(ak_grid_levels(s) - 1))) + AK_LANES_MAGIC;
}

/* Costs that differ in their bits, so that the least does not depend on an order. */
AK_SEARCH ak_lanes_int ak_grid_mark(ak_lanes costs, ak_lanes_int marks)
{
    return ((ak_lanes_int)costs & ~31) | marks;
}

/* ---- Entries of a vector ------------------------------------------------ */
/* What each level of each element adds to Σ w·q² and to 2 · Σ w·x·q. */
struct ak_grid_tables {
    float squares[AK_GRID_TABLE], products[AK_GRID_TABLE];
};

/* x, w: eight elements, of which n_dims are used. */
AK_SEARCH void ak_grid_make_tables(const struct ak_grid_shape *s, const float *x, const float *w,
                                   float shift, struct ak_grid_tables *out)
{
    const int width = AK_GRID_TABLE / s->n_dims;
    float numbers[8];
    for (int i = 0; i < 8; i++)
        numbers[i] = s->numbers[i % width] + shift;
    for (int i = 0; i < AK_GRID_TABLE; i += AK_LANES) {
        ak_lanes_int element = ak_lanes_load_int(AK_GRID_COUNT + i) >> (width == 8 ? 3 : 2);
        ak_lanes number = ak_lanes_load(numbers + i % 8),
                 weighted = ak_lanes_lookup8(w, element) * number;
        ak_lanes_store(weighted * number, out->squares + i);
        ak_lanes_store(2.0f * ak_lanes_lookup8(x, element) * weighted, out->products + i);
    }
}

/* The vectors of rounded elements, one per scale. */
AK_SEARCH void ak_grid_round(const struct ak_grid_shape *s, const float *x, const float *inverses,
                             int32_t vectors[AK_GRID_ENTRIES])
{
    for (int e = 0; e < AK_GRID_ENTRIES; e += AK_LANES) {
        ak_lanes sum = ak_lanes_set(0.0f), inverse = ak_lanes_load(inverses + e),
                 shift = ak_grid_shifts(s, e);
        for (int i = s->n_dims - 1; i >= 0; i--)
            sum = sum * (float)ak_grid_levels(s) +
                  (ak_grid_level(s, x[i] * inverse - shift) - AK_LANES_MAGIC);
        ak_lanes_int vector = (ak_lanes_int)(sum + AK_LANES_MAGIC) & 0xffff;
        memcpy(vectors + e, &vector, sizeof vector);
    }
}

/* The point of a list that costs least at a scale: its place. */
AK_SEARCH int ak_grid_compare(const struct ak_grid_shape *s, const struct ak_grid_tables *tables,
                              float scale, const uint16_t list[AK_NEAR_POINTS])
{
    const int width = AK_GRID_TABLE / s->n_dims;
    float costs[AK_GRID_TABLE];
    ak_lanes least = ak_lanes_set(INFINITY);
    for (int i = 0; i < AK_GRID_TABLE; i += AK_LANES)
        ak_lanes_store(scale * ak_lanes_load(tables->squares + i) -
                           ak_lanes_load(tables->products + i),
                       costs + i);
    for (int c = 0; c < AK_NEAR_POINTS; c += AK_LANES) {
        ak_lanes_int codes = ak_lanes_load_u16(list + c);
        ak_lanes cost = ak_grid_lookup(s, costs, codes);
        for (int i = 1; i < s->n_dims; i++)
            cost += ak_grid_lookup(s, costs + i * width, codes >> s->bits * i);
        least =
            ak_lanes_min((ak_lanes)ak_grid_mark(cost, ak_lanes_load_int(AK_GRID_COUNT + c)), least);
    }
    return ak_lanes_least(least) & 31;
}

/* The best of the points near a vector of rounded elements, and of those near that point. */
AK_SEARCH uint16_t ak_grid_find(const struct ak_grid_shape *s, const struct ak_near *near,
                                const struct ak_grid_tables *tables, float scale, int32_t vector)
{
    const uint16_t *list = near->codes[vector];
    uint16_t code = list[ak_grid_compare(s, tables, scale, list)];
    unsigned found = ak_near_vector(code, s->n_dims, s->bits);
    if (found == (unsigned)vector)
        return code;
    list = near->codes[found];
    return list[ak_grid_compare(s, tables, scale, list)];
}

/* Σ w·q² and 2 · Σ w·x·q of the entries' codes. */
AK_SEARCH void ak_grid_add_up(const struct ak_grid_shape *s, const float *x, const float *w,
                              struct ak_grid_entries *v)
{
    for (int e = 0; e < AK_GRID_ENTRIES; e += AK_LANES) {
        ak_lanes square = ak_lanes_set(0.0f), product = square, shift = ak_grid_shifts(s, e);
        ak_lanes_int codes = ak_lanes_load_int(v->codes + e);
        for (int i = 0; i < s->n_dims; i++) {
            ak_lanes number = ak_grid_lookup(s, s->numbers, codes >> s->bits * i) + shift,
                     weighted = w[i] * number;
            square += weighted * number;
            product += x[i] * weighted;
        }
        ak_lanes_store(square, v->squares + e);
        ak_lanes_store(2.0f * product, v->products + e);
    }
}

/* The best points near x at each of the scales, shifted up, and then down. x, w: eight elements, of
 * which n_dims are used. */
AK_SEARCH void ak_grid_enter(const struct ak_grid_shape *s, const struct ak_near *near,
                             const float *x, const float *w, const float *scales,
                             const float *inverses, struct ak_grid_entries *v)
{
    struct ak_grid_tables tables[2];
    int32_t vectors[AK_GRID_ENTRIES];
    bool shifts = s->shift != AK_GRID_NO_SHIFT;
    ak_grid_make_tables(s, x, w, shifts ? AK_GRID_SHIFT : 0.0f, &tables[0]);
    if (shifts)
        ak_grid_make_tables(s, x, w, -AK_GRID_SHIFT, &tables[1]);
    ak_grid_round(s, x, inverses, vectors);
    for (int e = 0; e < AK_GRID_ENTRIES; e++)
        v->codes[e] = ak_grid_find(s, near, &tables[ak_grid_is_down(s, e)], scales[e], vectors[e]);
    ak_grid_add_up(s, x, w, v);
}

/* ---- A group ------------------------------------------------------------ */
/* The scale with which numbers meet the elements best, each by itself. Of zeros, 0. */
AK_SEARCH float ak_grid_guess(const struct ak_grid_shape *s, const float *x, const float *w)
{
    float sum = 0.0f, squares = 0.0f, best = 0.0f, best_gain = 0.0f, gains[AK_CANDIDATES],
          scales[AK_CANDIDATES];
    for (int i = 0; i < s->group; i++) {
        sum += w[i];
        squares += w[i] * x[i] * x[i];
    }
    float usual = sqrtf(squares / sum) * s->reach / s->numbers[ak_grid_levels(s) - 1];
    if (!(usual > AK_FIT_LEAST) || !(usual < INFINITY))
        return 0.0f;
    for (int c = 0; c < AK_CANDIDATES; c += AK_LANES) {
        ak_lanes inverse = (1.0f / usual) * (1.2f + ak_lanes_ramp(c) * 0.09f),
                 product = ak_lanes_set(0.0f), square = product;
        for (int i = 0; i < s->group; i++) {
            ak_lanes number = ak_grid_lookup(s, s->numbers,
                                             (ak_lanes_int)ak_grid_level(s, x[i] * inverse)),
                     weighted = w[i] * number;
            product += weighted * x[i];
            square += weighted * number;
        }
        ak_lanes_store(product * product * ak_lanes_inverse(square), gains + c);
        ak_lanes_store(product * ak_lanes_inverse(square), scales + c);
    }
    for (int i = 0; i < AK_CANDIDATES; i++)
        if (gains[i] > best_gain && scales[i] > 0.0f) {
            best_gain = gains[i];
            best = scales[i];
        }
    return best;
}

/* What is compared with the points: magnitudes, and signs. If the signs must be even and are not,
 * the element that matters least takes the wrong one. */
AK_SEARCH void ak_grid_split(const struct ak_grid_shape *s, const float *x, const float *w,
                             float *magnitudes, uint8_t *signs)
{
    for (int i = 0; i < s->group; i++) {
        float magnitude = fabsf(x[i]) < AK_GRID_MAX ? fabsf(x[i]) : AK_GRID_MAX;
        magnitudes[i] = s->shift == AK_GRID_NO_SHIFT ? magnitude : copysignf(magnitude, x[i]);
    }
    for (int eight = 0; s->shift == AK_GRID_NO_SHIFT && eight < s->group; eight += 8) {
        unsigned bits = 0;
        for (int i = eight; i < eight + 8; i++)
            bits |= (unsigned)(x[i] < 0.0f) << (i - eight);
        if (s->is_even && __builtin_parity(bits)) {
            int least = eight;
            for (int i = eight; i < eight + 8; i++)
                least = w[i] * magnitudes[i] < w[least] * magnitudes[least] ? i : least;
            magnitudes[least] = -magnitudes[least];
            bits ^= 1u << (least - eight);
        }
        signs[eight / 8] = (uint8_t)bits;
    }
}

/* Enters the vectors of a group. Returns the scale with the least error, 0 if none lowers it. */
AK_SEARCH float ak_grid_fit_group(const struct ak_grid_shape *s, const struct ak_near *near,
                                  const float *x, const float *w, struct ak_grid_entries *vectors)
{
    static const float around[2][AK_GRID_ENTRIES] = {
        { 0.70f, 0.78f, 0.86f, 0.94f, 1.03f, 1.13f, 1.25f, 1.40f },
        { 0.78f, 0.93f, 1.08f, 1.27f, 0.78f, 0.93f, 1.08f, 1.27f }, /* for each shift */
    };
    float scales[AK_GRID_ENTRIES], inverses[AK_GRID_ENTRIES], squares[AK_GRID_ENTRIES],
        products[AK_GRID_ENTRIES], best = 0.0f, best_gain = 0.0f, guess = ak_grid_guess(s, x, w);
    guess = guess > 0.0f ? guess : 1.0f; /* of zeros: any, which finds the smallest points */
    for (int e = 0; e < AK_GRID_ENTRIES; e++) {
        scales[e] = guess * around[s->shift != AK_GRID_NO_SHIFT][e];
        inverses[e] = 1.0f / scales[e];
    }
    for (int v = 0; v < s->group / s->n_dims; v++)
        ak_grid_enter(s, near, x + v * s->n_dims, w + v * s->n_dims, scales, inverses, &vectors[v]);
    for (int e = 0; e < AK_GRID_ENTRIES; e += AK_LANES) {
        ak_lanes square = ak_lanes_set(0.0f), product = square;
        for (int v = 0; v < s->group / s->n_dims; v++) {
            square += ak_lanes_load(vectors[v].squares + e);
            product += 0.5f * ak_lanes_load(vectors[v].products + e);
        }
        ak_lanes_store(square, squares + e);
        ak_lanes_store(product, products + e);
    }
    for (int e = 0; e < AK_GRID_ENTRIES; e++)
        if (products[e] > 0.0f && squares[e] > 0.0f &&
            products[e] * products[e] > best_gain * squares[e]) {
            best_gain = products[e] * products[e] / squares[e];
            best = products[e] / squares[e];
        }
    return best;
}

/* ---- A super-block ------------------------------------------------------ */
/* The first of n integers around the one that is nearest to `scale` / (d · unit). */
AK_SEARCH ak_lanes ak_grid_first_integer(const struct ak_grid_shape *s, float scale, ak_lanes d,
                                         int n)
{
    ak_lanes integer = 0.5f * (scale * ak_lanes_inverse(d * s->unit) - 1.0f),
             first = integer - 0.5f * (float)(n - 1);
    first = ak_lanes_max(first, ak_lanes_set(0.0f));
    first = ak_lanes_min(first, ak_lanes_set((float)(s->n_scales - n)));
    return (first + AK_LANES_MAGIC) - AK_LANES_MAGIC;
}

/* At each factor the least costs of a group's vectors, among the entries from `first` on,
 * summed. */
AK_SEARCH void ak_grid_cost(const struct ak_grid_shape *s, const struct ak_grid_entries *vectors,
                            int first, int n_entries, const ak_lanes *factors, int n,
                            ak_lanes *sums)
{
    for (int j = 0; j < n; j++)
        sums[j] = ak_lanes_set(0.0f);
    for (int v = 0; v < s->group / s->n_dims; v++) {
        ak_lanes least[4];
        for (int j = 0; j < n; j++)
            least[j] = factors[j] * vectors[v].squares[first] - vectors[v].products[first];
        for (int e = first + 1; e < first + n_entries; e++)
            for (int j = 0; j < n; j++)
                least[j] = ak_lanes_min(factors[j] * vectors[v].squares[e] - vectors[v].products[e],
                                        least[j]);
        for (int j = 0; j < n; j++)
            sums[j] += least[j];
    }
    for (int j = 0; j < n; j++)
        sums[j] *= factors[j];
}

/* The d with the least error, each group having the best of four integer scales: lanes are values
 * of d. */
AK_SEARCH float ak_grid_scan(const struct ak_grid_shape *s, const struct ak_grid_entries *vectors,
                             const float scales[AK_GRID_GROUPS_MAX],
                             const float ds[AK_GRID_FACTORS])
{
    const int n_directions = s->shift == AK_GRID_SHIFT_GROUP ? 2 : 1,
              n_entries = AK_GRID_ENTRIES / n_directions, n_vectors = s->group / s->n_dims;
    float errors[AK_GRID_FACTORS];
    for (int c = 0; c < AK_GRID_FACTORS; c += AK_LANES) {
        ak_lanes d = ak_lanes_load(ds + c), all = ak_lanes_set(0.0f);
        for (int g = 0; g * s->group < AK_QUANT_SUPER_BLOCK; g++) {
            ak_lanes first = ak_grid_first_integer(s, scales[g], d, 4), factors[4], sums[4],
                     least = ak_lanes_set(INFINITY);
            for (int j = 0; j < 4; j++)
                factors[j] = d * s->unit * (2.0f * (first + (float)j) + 1.0f);
            for (int direction = 0; direction < n_directions; direction++) {
                ak_grid_cost(s, vectors + g * n_vectors, direction * n_entries, n_entries, factors,
                             4, sums);
                for (int j = 0; j < 4; j++)
                    least = ak_lanes_min(sums[j], least);
            }
            all += least;
        }
        ak_lanes_store(all, errors + c);
    }
    int best = 0;
    for (int c = 1; c < AK_GRID_FACTORS; c++)
        best = errors[c] < errors[best] ? c : best;
    return ds[best];
}

/* The integer scale of a group, and its way of shifting, with the least error for `d`: lanes are
 * scales. Returns the error, less that of zeros. */
AK_SEARCH float ak_grid_choose(const struct ak_grid_shape *s, const struct ak_grid_entries *vectors,
                               float preferred, float d, int *scale, bool *is_down)
{
    const int n_directions = s->shift == AK_GRID_SHIFT_GROUP ? 2 : 1,
              n_entries = AK_GRID_ENTRIES / n_directions;
    ak_lanes first = ak_grid_first_integer(s, preferred, ak_lanes_set(d), AK_GRID_SCALES);
    float errors[2 * AK_GRID_SCALES];
    for (int j = 0; j < AK_GRID_SCALES; j += AK_LANES) {
        ak_lanes integer = first + (ak_lanes_ramp(j) + 7.5f),
                 factor = d * s->unit * (2.0f * integer + 1.0f), sum;
        for (int direction = 0; direction < n_directions; direction++) {
            ak_grid_cost(s, vectors, direction * n_entries, n_entries, &factor, 1, &sum);
            ak_lanes_store(sum, errors + direction * AK_GRID_SCALES + j);
        }
    }
    int best = 0;
    for (int i = 1; i < AK_GRID_SCALES * n_directions; i++)
        best = errors[i] < errors[best] ? i : best;
    *scale = (int)first[0] + best % AK_GRID_SCALES;
    *is_down = best >= AK_GRID_SCALES;
    return errors[best];
}

AK_SEARCH void ak_grid_choose_all(const struct ak_grid_shape *s,
                                  const struct ak_grid_entries *vectors,
                                  const float scales[AK_GRID_GROUPS_MAX], struct ak_grid *of)
{
    int n_vectors = s->group / s->n_dims;
    of->error = 0.0f;
    for (int g = 0; g * s->group < AK_QUANT_SUPER_BLOCK; g++) {
        bool is_down;
        of->error +=
            ak_grid_choose(s, vectors + g * n_vectors, scales[g], of->d, &of->scale[g], &is_down);
        for (int v = g * n_vectors; v < (g + 1) * n_vectors; v++)
            of->is_down[v] = is_down;
    }
}

/* The entry that costs least at a scale. If a group shifts one way, of that half alone. */
AK_SEARCH int ak_grid_find_entry(const struct ak_grid_shape *s, const struct ak_grid_entries *v,
                                 float scale, bool is_down)
{
    static const float others[2][AK_GRID_ENTRIES] = { { 0, 0, 0, 0, 1, 1, 1, 1 },
                                                      { 1, 1, 1, 1, 0, 0, 0, 0 } };
    ak_lanes least = ak_lanes_set(INFINITY);
    for (int e = 0; e < AK_GRID_ENTRIES; e += AK_LANES) {
        ak_lanes cost = scale * ak_lanes_load(v->squares + e) - ak_lanes_load(v->products + e);
        if (s->shift == AK_GRID_SHIFT_GROUP)
            cost = ak_lanes_select_less(ak_lanes_set(0.0f), ak_lanes_load(others[is_down] + e),
                                        ak_lanes_set(FLT_MAX), cost);
        least =
            ak_lanes_min((ak_lanes)ak_grid_mark(cost, ak_lanes_load_int(AK_GRID_COUNT + e)), least);
    }
    return ak_lanes_least(least) & (AK_GRID_ENTRIES - 1);
}

/* The best entry of each vector for d and scales. Returns the d that fits it best. */
AK_SEARCH float ak_grid_pick(const struct ak_grid_shape *s, const struct ak_grid_entries *vectors,
                             struct ak_grid *of)
{
    float square = 0.0f, product = 0.0f;
    for (int v = 0; v * s->n_dims < AK_QUANT_SUPER_BLOCK; v++) {
        float multiple = s->unit * (float)(2 * of->scale[v * s->n_dims / s->group] + 1);
        int best = ak_grid_find_entry(s, &vectors[v], of->d * multiple, of->is_down[v]);
        of->code[v] = (uint16_t)vectors[v].codes[best];
        of->is_down[v] = ak_grid_is_down(s, best);
        square += multiple * multiple * vectors[v].squares[best];
        product += multiple * 0.5f * vectors[v].products[best];
    }
    return square > 0.0f ? product / square : of->d;
}

/* With the points known, another element may be the one that matters least. */
AK_SEARCH void ak_grid_settle_signs(const struct ak_grid_shape *s, const float *x, const float *w,
                                    struct ak_grid *of)
{
    for (int eight = 0; s->is_even && eight < AK_QUANT_SUPER_BLOCK; eight += 8) {
        unsigned bits = 0;
        float least = INFINITY;
        int at = 0;
        for (int i = 0; i < 8; i++)
            bits |= (unsigned)(x[eight + i] < 0.0f) << i;
        for (int i = 0; __builtin_parity(bits) && i < 8; i++) {
            int element = eight + i;
            float matters = w[element] * fabsf(x[element]) *
                            ak_grid_number(s, of->code[element / s->n_dims], element % s->n_dims);
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

/* Enters all vectors, and finds the preferred scale of each group. Returns the largest. */
AK_SEARCH float ak_grid_fit_groups(const struct ak_grid_shape *s, const struct ak_near *near,
                                   const float *x, const float *w, uint8_t *signs,
                                   struct ak_grid_entries *vectors,
                                   float scales[AK_GRID_GROUPS_MAX])
{
    float largest = 0.0f;
    for (int g = 0; g * s->group < AK_QUANT_SUPER_BLOCK; g++) {
        /* eight can be read at each vector */
        float magnitudes[AK_GRID_GROUP_MAX + 8] = { 0.0f }, weights[AK_GRID_GROUP_MAX + 8] = { 0 };
        memcpy(weights, w + g * s->group, (size_t)s->group * sizeof *weights);
        ak_grid_split(s, x + g * s->group, weights, magnitudes, signs + g * s->group / 8);
        scales[g] =
            ak_grid_fit_group(s, near, magnitudes, weights, vectors + g * (s->group / s->n_dims));
        largest = scales[g] > largest ? scales[g] : largest;
    }
    return largest;
}

AK_SEARCH void ak_grid_fit(const struct ak_grid_shape *s, const struct ak_near *near,
                           const float *x, const float *w, struct ak_grid *out)
{
    struct ak_grid_entries vectors[AK_GRID_VECTORS_MAX];
    float scales[AK_GRID_GROUPS_MAX], ds[AK_GRID_FACTORS], usual;
    *out = (struct ak_grid){ .error = INFINITY };
    usual = ak_grid_fit_groups(s, near, x, w, out->signs, vectors, scales) /
            (s->unit * (float)(2 * s->n_scales - 1));
    for (int i = 0; i < AK_GRID_FACTORS; i++)
        ds[i] = ak_quant_round_f16(usual * (0.8f + 0.025f * (float)i));
    out->d = ak_grid_scan(s, vectors, scales, ds);
    ak_grid_choose_all(s, vectors, scales, out);
    for (int round = 0; round < 3; round++) {
        struct ak_grid next = *out;
        next.d = ak_quant_round_f16(ak_grid_pick(s, vectors, out));
        ak_grid_choose_all(s, vectors, scales, &next);
        if (!(next.error < out->error))
            break;
        *out = next;
    }
    ak_grid_pick(s, vectors, out);
    ak_grid_settle_signs(s, x, w, out);
    ak_grid_enlarge(x, w, out);
    for (int v = 0; v * s->n_dims < AK_QUANT_SUPER_BLOCK; v++)
        out->code[v] = near->index[ak_near_vector(out->code[v], s->n_dims, s->bits)];
}

#endif
