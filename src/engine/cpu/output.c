/* Passes that want only the largest logits of each row, over an output matrix in slices: reads the
 * high slice of all rows and the low slice of those that can be among the largest. Their logits are
 * the same bits as in other passes; the others are minus infinity.
 *
 * Three steps. The product with the high slice gives an estimate and an upper bound of each logit;
 * each thread keeps the rows with its largest estimates. Then the rows with the largest estimates
 * of all threads are computed exactly: the least of their logits is a lower bound of the logits
 * that are wanted. Last, so are all tiles with an upper bound that is not below it. */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "engine/cpu/cpu.h"

/* Consecutive tiles that one thread scans, a power of two; survivors come in clusters. */
enum { SCAN_TILES = 64 };

bool ak_cpu_wants_best(const struct ak_cpu_prepared *p, const struct ak_cpu_step *step)
{
    const struct ak_pack_weight *packed = &p->weights->packed[step->command->weight];
    uint32_t n = ak_cpu_rows(p, step->row_set);
    return packed->layout == AK_CPU_LAYOUT_SLICES_1 && p->pass.output.has_slices &&
           p->pass.batch->n_best && n <= AK_BEST_ROWS_MAX &&
           p->pass.batch->n_best <= AK_BEST_MAX / n;
}

/* ‖x‖ + AK_SLICES_SUM_WEIGHT · ‖s‖ of both terms of a token's activations: what a row's bound is
 * multiplied with. Infinity: too large or no number, so nothing is bounded. */
static float measure_reach(const struct ak_cpu_act32 *first, const struct ak_cpu_act32 *second,
                           size_t n_blocks)
{
    double squares = 0.0, sums = 0.0;
    for (size_t b = 0; b < n_blocks; b++) {
        double sum = 0.0;
        for (size_t i = 0; i < AK_BLOCK_K; i++) {
            double x =
                (double)first[b].scale * first[b].q[i] + (double)second[b].scale * second[b].q[i];
            squares += x * x;
            sum += x;
        }
        sums += sum * sum;
    }
    double reach = (sqrt(squares) + AK_SLICES_SUM_WEIGHT * sqrt(sums)) * (1.0 + 0x1p-16);
    return reach < 0x1p60 ? (float)reach : INFINITY;
}

/* Forgets the last pass, and measures the activations of this one. */
static void begin_pass(const struct ak_cpu_prepared *p, struct ak_cpu_best *best,
                       const uint8_t *activations, size_t act_bytes, size_t n_blocks)
{
    best->pass = p->pass.number;
    for (uint32_t t = 0; t < p->pass.batch->n_logits; t++) {
        const uint8_t *terms = activations + t * AK_TERMS_MAX * act_bytes;
        best->n[t] = 0;
        best->reach[t] =
            measure_reach((const struct ak_cpu_act32 *)(const void *)terms,
                          (const struct ak_cpu_act32 *)(const void *)(terms + act_bytes), n_blocks);
    }
}

/* Keeps the n_best rows with the largest estimates, in descending order. */
static void insert(struct ak_cpu_best *best, uint32_t t, uint32_t n_best, float estimate,
                   uint32_t row)
{
    struct ak_cpu_estimate *list = best->list + (size_t)t * n_best;
    uint32_t i = best->n[t] < n_best ? best->n[t]++ : n_best - 1;
    for (; i > 0 && (list[i - 1].value < estimate ||
                     (list[i - 1].value == estimate && list[i - 1].row > row));
         i--)
        list[i] = list[i - 1];
    list[i] = (struct ak_cpu_estimate){ estimate, row };
}

static float last_of(const struct ak_cpu_best *best, uint32_t t, uint32_t n_best)
{
    return best->n[t] < n_best ? -INFINITY : best->list[(size_t)t * n_best + n_best - 1].value;
}

/* The maximum of 16 numbers, by halves, which compilers vectorize. */
static float max16(const float x[AK_TILE_ROWS])
{
    float max[AK_TILE_ROWS / 2];
    for (size_t i = 0; i < AK_TILE_ROWS / 2; i++)
        max[i] = x[i] > x[i + AK_TILE_ROWS / 2] ? x[i] : x[i + AK_TILE_ROWS / 2];
    for (size_t i = 0; i < AK_TILE_ROWS / 4; i++)
        max[i] = max[i] > max[i + AK_TILE_ROWS / 4] ? max[i] : max[i + AK_TILE_ROWS / 4];
    float a = max[0] > max[1] ? max[0] : max[1], b = max[2] > max[3] ? max[2] : max[3];
    return a > b ? a : b;
}

/* Estimates, upper bound of the tile, and rows that may be among the largest. */
static float bound_tile(struct ak_cpu_best *best, uint32_t t, uint32_t n_best,
                        const float *restrict terms, const float *restrict bounds,
                        uint32_t first_row, uint32_t n_rows)
{
    float estimates[AK_TILE_ROWS], upper[AK_TILE_ROWS], reach = best->reach[t];
    for (size_t r = 0; r < AK_TILE_ROWS; r++) {
        float slack = bounds[r] * reach;
        estimates[r] = 8.0f * (terms[r] + terms[AK_TILE_ROWS + r]);
        /* the last factor is of the rounding of this sum */
        upper[r] =
            slack < 0x1p120f ? estimates[r] + slack + fabsf(estimates[r]) * 0x1p-21f : INFINITY;
    }
    for (size_t r = n_rows; r < AK_TILE_ROWS; r++) /* no rows of the matrix */
        estimates[r] = upper[r] = -INFINITY;
    if (max16(estimates) > last_of(best, t, n_best))
        for (uint32_t r = 0; r < n_rows; r++)
            if (estimates[r] > last_of(best, t, n_best))
                insert(best, t, n_best, estimates[r], first_row + r);
    return max16(upper);
}

void ak_cpu_output_estimate(const struct ak_cpu_step *step, struct ak_cpu_prepared *p,
                            unsigned thread, uint32_t begin, uint32_t end)
{
    const struct ak_pack_weight *packed = &p->weights->packed[step->command->weight];
    const struct ak_pack_part *part = &packed->parts[0];
    struct ak_cpu_scratch *scratch = &p->memory.scratch[thread];
    struct ak_cpu_best *best = scratch->best;
    size_t k = packed->cols, act_bytes = ak_cpu_act_bytes(AK_CPU_ACT_Q8_32, k);
    const uint8_t *activations = scratch->activations[AK_CPU_ACT_Q8_32];
    float *y = ak_cpu_slot(p, step->command->out) + part->output_offset;
    size_t y_stride = ak_cpu_stride(p, step->command->out);
    uint32_t n = p->pass.batch->n_logits, n_best = p->pass.batch->n_best;
    if (best->pass != p->pass.number)
        begin_pass(p, best, activations, act_bytes, k / AK_BLOCK_K);
    struct ak_cpu_slices slices = ak_cpu_get_slices(part->data, k, begin / AK_TILE_ROWS), next;
    for (uint32_t row = begin; row < end; row += AK_TILE_ROWS, slices = next) {
        size_t tile = row / AK_TILE_ROWS;
        next = ak_cpu_get_slices(part->data, k, tile + 1);
        p->cpu->kernels.tile[AK_QUANT_Q5_0].dot_tiles(
            slices.high, 1, k, activations, act_bytes, n * AK_TERMS_MAX, scratch->terms,
            AK_TILE_ROWS, (size_t)(next.high - slices.high));
        uint32_t n_rows = part->rows - row < AK_TILE_ROWS ? part->rows - row : AK_TILE_ROWS;
        for (uint32_t t = 0; t < n; t++) {
            p->pass.output.tile_bounds[t * p->pass.output.n_tiles + tile] =
                bound_tile(best, t, n_best, scratch->terms + t * AK_TERMS_MAX * AK_TILE_ROWS,
                           slices.bounds, row, n_rows);
            for (size_t r = 0; r < AK_TILE_ROWS; r++)
                y[t * y_stride + row + r] = -INFINITY;
        }
    }
}

/* The logits of a tile's rows for token t, as other passes compute them. Tile `next` follows. */
static void multiply_tile(const struct ak_pack_weight *packed, struct ak_cpu_prepared *p,
                          unsigned thread, size_t tile, size_t next, uint32_t t,
                          float y[AK_TILE_ROWS])
{
    struct ak_cpu_scratch *scratch = &p->memory.scratch[thread];
    size_t k = packed->cols, act_bytes = ak_cpu_act_bytes(AK_CPU_ACT_Q8_32, k);
    const uint8_t *data = packed->parts[0].data;
    struct ak_cpu_slices slices = ak_cpu_get_slices(data, k, tile),
                         following = ak_cpu_get_slices(data, k, next);
    p->cpu->kernels.dot_slices(&slices, &following, k,
                               scratch->activations[AK_CPU_ACT_Q8_32] +
                                   t * AK_TERMS_MAX * act_bytes,
                               act_bytes, AK_TERMS_MAX, scratch->terms, AK_TILE_ROWS);
    ak_cpu_add_terms(scratch->terms, 1, AK_TILE_ROWS, y, AK_TILE_ROWS);
}

/* The next of all threads' estimates for row t of the logits, in descending order; at[j] are taken
 * of thread j's. NULL: there are no more. */
static const struct ak_cpu_estimate *take_next(const struct ak_cpu_prepared *p, uint32_t t,
                                               uint32_t *at)
{
    const struct ak_cpu_estimate *next = NULL;
    unsigned owner = 0;
    for (unsigned j = 0; j < p->n_threads; j++) {
        const struct ak_cpu_best *best = p->memory.scratch[j].best;
        const struct ak_cpu_estimate *first =
            best->list + (size_t)t * p->pass.batch->n_best + at[j];
        if (best->pass != p->pass.number || at[j] == best->n[t])
            continue;
        if (!next || first->value > next->value ||
            (first->value == next->value && first->row < next->row)) {
            next = first;
            owner = j;
        }
    }
    if (next)
        at[owner]++;
    return next;
}

/* Computes this thread's share of the n_best rows with the largest estimates. */
static void compute_largest(const struct ak_pack_weight *packed, struct ak_cpu_prepared *p,
                            unsigned thread, uint32_t t)
{
    uint32_t n_best = p->pass.batch->n_best, *at = p->memory.scratch[thread].best->cursors;
    uint32_t rows[AK_BEST_MAX], n = 0;
    float *largest = p->pass.output.largest + (size_t)t * n_best;
    memset(at, 0, p->n_threads * sizeof *at);
    for (uint32_t i = 0; i < n_best; i++) {
        const struct ak_cpu_estimate *next = take_next(p, t, at);
        if (i % p->n_threads != thread)
            continue;
        largest[i] = -INFINITY;
        if (next)
            rows[n++] = next->row;
    }
    for (uint32_t i = 0; i < n; i++) {
        float y[AK_TILE_ROWS];
        multiply_tile(packed, p, thread, rows[i] / AK_TILE_ROWS,
                      rows[i + 1 < n ? i + 1 : i] / AK_TILE_ROWS, t, y);
        float logit = y[rows[i] % AK_TILE_ROWS];
        /* NaN counts as minus infinity */
        largest[thread + (size_t)i * p->n_threads] = logit > -INFINITY ? logit : -INFINITY;
    }
}

void ak_cpu_step_output_largest(const struct ak_cpu_step *step, struct ak_cpu_prepared *p,
                                unsigned thread)
{
    const struct ak_pack_weight *packed = &p->weights->packed[step->command->weight];
    for (uint32_t t = 0; ak_cpu_wants_best(p, step) && t < p->pass.batch->n_logits; t++)
        compute_largest(packed, p, thread, t);
}

/* Finds the thread's next tile, from `tile` on, with a bound not below `smallest`; n_tiles: none.
 */
static uint32_t find_tile(const struct ak_cpu_prepared *p, unsigned thread, const float *bounds,
                          float smallest, uint32_t tile)
{
    for (; tile < p->pass.output.n_tiles; tile++) {
        if (tile / SCAN_TILES % p->n_threads != thread)
            tile |= SCAN_TILES - 1; /* the last one of these */
        else if (!(bounds[tile] < smallest))
            break;
    }
    return tile < p->pass.output.n_tiles ? tile : p->pass.output.n_tiles;
}

/* Computes the tiles that can have one of the n_best largest logits. */
static void compute_rest(const struct ak_pack_weight *packed, struct ak_cpu_prepared *p,
                         unsigned thread, uint32_t t, float *to)
{
    uint32_t n_best = p->pass.batch->n_best, n_tiles = p->pass.output.n_tiles,
             rows = packed->parts[0].rows;
    const float *bounds = p->pass.output.tile_bounds + t * n_tiles,
                *largest = p->pass.output.largest + (size_t)t * n_best;
    float smallest = INFINITY;
    for (uint32_t i = 0; i < n_best; i++)
        smallest = largest[i] < smallest ? largest[i] : smallest;
    for (uint32_t tile = find_tile(p, thread, bounds, smallest, 0), next; tile < n_tiles;
         tile = next) {
        float y[AK_TILE_ROWS];
        uint32_t row = tile * AK_TILE_ROWS,
                 n = rows - row < AK_TILE_ROWS ? rows - row : AK_TILE_ROWS;
        next = find_tile(p, thread, bounds, smallest, tile + 1);
        multiply_tile(packed, p, thread, tile, next < n_tiles ? next : tile, t, y);
        memcpy(to + row, y, n * sizeof *y);
    }
}

void ak_cpu_step_output_rest(const struct ak_cpu_step *step, struct ak_cpu_prepared *p,
                             unsigned thread)
{
    const struct ak_pack_weight *packed = &p->weights->packed[step->command->weight];
    float *to = ak_cpu_slot(p, step->command->out) + packed->parts[0].output_offset;
    size_t y_stride = ak_cpu_stride(p, step->command->out);
    for (uint32_t t = 0; ak_cpu_wants_best(p, step) && t < p->pass.batch->n_logits; t++)
        compute_rest(packed, p, thread, t, to + t * y_stride);
}
