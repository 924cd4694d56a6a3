/* Cross-attention as a path through tokens and positions. */
#include "speech/search/align.h"

#include <math.h>
#include <string.h>

#include "base/math.h"
#include "base/mem.h"

enum { FILTER = 7, HALF = FILTER / 2 };

struct matrix {
    float *data; /* [rows][columns] */
    size_t rows, columns;
};

static void softmax(float *x, size_t n)
{
    float max = -INFINITY;
    double sum = 0.0;
    for (size_t i = 0; i < n; i++)
        max = x[i] > max ? x[i] : max;
    for (size_t i = 0; i < n; i++)
        x[i] = ak_expf_unfused(x[i] - max);
    for (size_t i = 0; i < n; i++)
        sum += (double)x[i];
    for (size_t i = 0; i < n; i++)
        x[i] = (float)((double)x[i] / sum);
}

/* Brings each position's weights to mean 0 and variance 1 over the tokens. */
static void standardize(float *weights, size_t rows, size_t stride, size_t columns)
{
    for (size_t j = 0; j < columns; j++) {
        double sum = 0.0, squares = 0.0;
        for (size_t i = 0; i < rows; i++)
            sum += (double)weights[i * stride + j];
        double mean = sum / (double)rows;
        for (size_t i = 0; i < rows; i++) {
            double d = (double)weights[i * stride + j] - mean;
            squares += d * d;
        }
        double deviation = sqrt(squares / (double)rows);
        double factor = deviation > 0.0 ? 1.0 / deviation : 0.0;
        for (size_t i = 0; i < rows; i++)
            weights[i * stride + j] = (float)(((double)weights[i * stride + j] - mean) * factor);
    }
}

/* Brings the middle of seven numbers to x[3], by comparing pairs. */
static float find_median(float x[FILTER])
{
    static const unsigned char pairs[][2] = { { 0, 5 }, { 0, 3 }, { 1, 6 }, { 2, 4 }, { 0, 1 },
                                              { 3, 5 }, { 2, 6 }, { 2, 3 }, { 3, 6 }, { 4, 5 },
                                              { 1, 4 }, { 1, 3 }, { 3, 4 } };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        float *a = &x[pairs[i][0]], *b = &x[pairs[i][1]], low = *a < *b ? *a : *b;
        *b = *a < *b ? *b : *a;
        *a = low;
    }
    return x[HALF];
}

/* Adds the row, with each number replaced by the median of those around it; at the ends the row is
 * mirrored. */
static void add_filtered(const float *row, size_t n, float *sums)
{
    if (n <= HALF) { /* too short to be mirrored */
        for (size_t j = 0; j < n; j++)
            sums[j] += row[j];
        return;
    }
    for (size_t j = 0; j < n; j++) {
        float around[FILTER];
        for (size_t k = 0; k < FILTER; k++) {
            size_t at = j + k < HALF ? HALF - j - k : j + k - HALF;
            around[k] = row[at < n ? at : 2 * (n - 1) - at];
        }
        sums[j] += find_median(around);
    }
}

/* What the alignment costs: the heads' weights, filtered, their mean with the opposite sign. */
static void fill_costs(const struct ak_speech_scores *s, size_t first, struct matrix *costs)
{
    for (size_t head = 0; head < s->n_heads; head++) {
        float *weights = s->data + head * s->n_tokens * s->n_positions;
        for (size_t i = 0; i < s->n_tokens; i++)
            softmax(weights + i * s->n_positions, costs->columns);
        standardize(weights, s->n_tokens, s->n_positions, costs->columns);
        for (size_t i = 0; i < costs->rows; i++)
            add_filtered(weights + (first + i) * s->n_positions, costs->columns,
                         costs->data + i * costs->columns);
    }
    for (size_t i = 0; i < costs->rows * costs->columns; i++)
        costs->data[i] = -costs->data[i] / (float)s->n_heads;
}

/* ---- Dynamic time warping ----------------------------------------------- */
enum step { BOTH, TOKEN, POSITION };

/* The cheapest step to each cell: steps[(i + 1) · (columns + 1) + j + 1]. `above` and `here` have
 * room for columns + 1 sums. */
static void find_steps(const struct matrix *costs, float *above, float *here, unsigned char *steps)
{
    size_t stride = costs->columns + 1;
    for (size_t j = 0; j < stride; j++)
        above[j] = j == 0 ? 0.0f : INFINITY;
    for (size_t i = 1; i <= costs->rows; i++) {
        const float *row = costs->data + (i - 1) * costs->columns;
        here[0] = INFINITY;
        for (size_t j = 1; j < stride; j++) {
            float both = above[j - 1], token = above[j], position = here[j - 1];
            enum step step = both < token && both < position  ? BOTH :
                             token < both && token < position ? TOKEN :
                                                                POSITION;
            float before = step == BOTH ? both : step == TOKEN ? token : position;
            here[j] = (float)((double)row[j - 1] + (double)before);
            steps[i * stride + j] = (unsigned char)step;
        }
        float *swapped = above;
        above = here;
        here = swapped;
    }
}

/* Follows the steps back from the last cell, and notes each token's first position. */
static void trace_back(const struct matrix *costs, const unsigned char *steps, uint32_t *at)
{
    size_t i = costs->rows, j = costs->columns, stride = costs->columns + 1;
    while (i > 0 || j > 0) {
        if (i > 0)
            at[i - 1] = j > 0 ? (uint32_t)(j - 1) : 0;
        enum step step = i == 0 ? POSITION : j == 0 ? TOKEN : steps[i * stride + j];
        i -= step != POSITION;
        j -= step != TOKEN;
    }
}

ak_status ak_speech_align(const struct ak_speech_scores *scores, size_t used, size_t first,
                          size_t end, uint32_t *at, struct ak_error *error)
{
    struct matrix costs = { .rows = end - first, .columns = used };
    size_t cells = (costs.rows + 1) * (costs.columns + 1);
    costs.data = ak_alloc(costs.rows * costs.columns, sizeof *costs.data);
    float *sums = ak_alloc(2 * (costs.columns + 1), sizeof *sums);
    unsigned char *steps = ak_alloc(cells, 1);
    ak_status status = AKUNU_OK;
    if (costs.data && sums && steps) {
        fill_costs(scores, first, &costs);
        find_steps(&costs, sums, sums + costs.columns + 1, steps);
        trace_back(&costs, steps, at);
    } else {
        status = ak_fail_memory(error, "the times of words", cells * sizeof *costs.data);
    }
    ak_free(costs.data);
    ak_free(sums);
    ak_free(steps);
    return status;
}
