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

/* The nearest points, by counting how many are at each distance. */
static void make_list(const struct maker *m, int vector, uint16_t list[AK_NEAR_POINTS])
{
    const uint8_t *low = m->distances[0][vector % m->n_halves],
                  *high = m->distances[1][vector / m->n_halves];
    int starts[DISTANCE_MAX + 1] = { 0 }, n = 0;
    for (int c = 0; c < m->n_codes; c++)
        starts[low[c] + high[c]]++;
    for (int d = 0; d <= DISTANCE_MAX; d++) {
        int n_points = starts[d];
        starts[d] = n;
        n += n_points;
    }
    for (int c = 0; c < m->n_codes; c++) {
        int at = starts[low[c] + high[c]]++;
        if (at < AK_NEAR_POINTS)
            list[at] = m->codes[c];
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
    int n_levels = bits == 2 ? 3 : 8, n = power(n_levels, n_dims);
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
            make_list(m, vector, out->codes[vector]);
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
