/* Distances are those between levels: of half vectors they stand in tables, of whole ones they are
 * sums of two. A list has the nearest points, of several as near those that the codebook has
 * first. */
#include "conversion/quantize/near.h"

#include <string.h>

#include "base/mem.h"

enum { HALVES_MAX = 81, CODES_MAX = 2048, DISTANCE_MAX = 2 * 2 * 49 };

struct maker {
    const uint16_t *codes;
    int n_codes, n_dims, bits, n_levels;
    int n_halves;                                /* vectors of half as many elements */
    uint8_t distances[2][HALVES_MAX][CODES_MAX]; /* of the lower half, of the upper half */
    uint16_t found[CODES_MAX];
};

static int get_level(const struct maker *m, uint16_t code, int i)
{
    return code >> m->bits * i & ((1 << m->bits) - 1);
}

static void measure_halves(struct maker *m)
{
    for (int half = 0; half < 2; half++)
        for (int vector = 0; vector < m->n_halves; vector++)
            for (int c = 0; c < m->n_codes; c++) {
                int rest = vector, sum = 0;
                for (int i = 0; i < m->n_dims / 2; i++, rest /= m->n_levels) {
                    int by =
                        rest % m->n_levels - get_level(m, m->codes[c], half * m->n_dims / 2 + i);
                    sum += by * by;
                }
                m->distances[half][vector][c] = (uint8_t)sum;
            }
}

/* The points at a distance of at most `most`. */
static int find_within(struct maker *m, const uint8_t *low, const uint8_t *high, int most)
{
    int n = 0;
    for (int c = 0; c < m->n_codes; c++) {
        m->found[n] = (uint16_t)c;
        n += low[c] + high[c] <= most;
    }
    return n;
}

/* *most: a guess of the distance within which enough points are; what it should have been. */
static void make_list(struct maker *m, int vector, int *most, uint16_t list[AK_NEAR_POINTS])
{
    const uint8_t *low = m->distances[0][vector % m->n_halves],
                  *high = m->distances[1][vector / m->n_halves];
    int starts[DISTANCE_MAX + 2] = { 0 }, n = find_within(m, low, high, *most);
    while (n < AK_NEAR_POINTS)
        n = find_within(m, low, high, ++*most);
    for (int i = 0; i < n; i++)
        starts[low[m->found[i]] + high[m->found[i]] + 1]++;
    for (int d = 0; d <= *most; d++)
        starts[d + 1] += starts[d];
    while (*most > 0 && starts[*most] >= AK_NEAR_POINTS)
        --*most;
    for (int i = 0; i < n; i++) {
        int at = starts[low[m->found[i]] + high[m->found[i]]]++;
        if (at < AK_NEAR_POINTS)
            list[at] = m->codes[m->found[i]];
    }
}

static int power(int base, int exponent)
{
    int product = 1;
    while (exponent-- > 0)
        product *= base;
    return product;
}

bool ak_near_make(const uint16_t *codes, int n_codes, int n_dims, int bits, struct ak_near *out)
{
    int n_levels = bits == 2 ? 3 : 8, n = power(n_levels, n_dims), most = 0;
    struct maker *m = ak_alloc(1, sizeof *m);
    out->codes = ak_alloc((size_t)n, sizeof *out->codes);
    out->index = ak_alloc((size_t)n, sizeof *out->index);
    bool has_all = m && out->codes && out->index;
    if (has_all) {
        m->codes = codes;
        m->n_codes = n_codes;
        m->n_dims = n_dims;
        m->bits = bits;
        m->n_levels = n_levels;
        m->n_halves = power(n_levels, n_dims / 2);
        measure_halves(m);
        for (int vector = 0; vector < n; vector++)
            make_list(m, vector, &most, out->codes[vector]);
        for (int c = 0; c < n_codes; c++)
            out->index[ak_near_vector(codes[c], n_dims, bits)] = (uint16_t)c;
    } else {
        ak_near_clear(out);
    }
    ak_free(m);
    return has_all;
}

void ak_near_clear(struct ak_near *near)
{
    ak_free(near->codes);
    ak_free(near->index);
    *near = (struct ak_near){ .codes = 0 };
}
