/* The largest logits of each rank, for rank 0: a list per row, instead of all logits. Rank 0 has
 * minus infinity for the others' logits that are on no list. A list has all that equal its last
 * element; if these are too many for it, the rank sends all logits after the lists. */
#include <math.h>

#include "engine/cpu/cpu.h"

enum { TIES = 16 };

/* A logit on a list. The first element of each list has its length in `index`. */
struct element {
    uint32_t index;
    float value;
};
#define TOO_MANY UINT32_MAX

/* Elements of a list, its length included. */
static size_t list_elems(const struct ak_cpu_prepared *p)
{
    return 1 + (size_t)p->pass.batch->n_best + TIES;
}

size_t ak_cpu_best_bytes(const struct ak_cpu_prepared *p, const struct ak_cpu_step *step)
{
    size_t elems = list_elems(p), floats = 2 * elems * p->spec->n_ranks;
    bool is_worth_it =
        p->pass.batch->n_best > 0 && floats <= step->command->params.collect.shard.n / 2;
    return is_worth_it ? ak_cpu_rows(p, step->row_set) * elems * sizeof(struct element) : 0;
}

static struct element *list_of(const struct ak_cpu_prepared *p, size_t rows, uint32_t rank,
                               size_t row)
{
    return (struct element *)p->ranks.best + (rank * rows + row) * list_elems(p);
}

/* The n-th largest of x, or minus infinity. `largest` holds n values. */
static float find_threshold(const float *x, size_t n_x, size_t n, float *largest)
{
    size_t found = 0;
    for (size_t i = 0; i < n_x; i++) {
        if (found == n && !(x[i] > largest[n - 1]))
            continue;
        size_t at = found < n ? found++ : n - 1;
        for (; at > 0 && x[i] > largest[at - 1]; at--)
            largest[at] = largest[at - 1];
        largest[at] = x[i];
    }
    return found == n ? largest[n - 1] : -INFINITY;
}

static void make_list(const struct ak_cpu_prepared *p, const float *x, size_t n, uint32_t first,
                      struct element *list)
{
    size_t capacity = list_elems(p) - 1, found = 0;
    float *largest = (float *)(void *)(list + 1); /* before it has elements */
    float threshold = find_threshold(x, n, p->pass.batch->n_best, largest);
    for (size_t i = 0; i < n; i++) {
        if (!(x[i] >= threshold))
            continue;
        if (found < capacity)
            list[1 + found] = (struct element){ first + (uint32_t)i, x[i] };
        found++;
    }
    list[0].index = found <= capacity ? (uint32_t)found : TOO_MANY;
}

/* Logits of this rank's shard, and where it begins. */
static const float *own_logits(const struct ak_cpu_prepared *p, const struct ak_cpu_step *step,
                               size_t row, uint32_t *first, size_t *n)
{
    const struct ak_op_shard *shard = &step->command->params.collect.shard;
    *first = ak_op_shard_begin(shard, p->spec->n_ranks, p->spec->rank);
    *n = ak_op_shard_begin(shard, p->spec->n_ranks, p->spec->rank + 1) - *first;
    return ak_cpu_slot(p, step->command->in) + row * ak_cpu_stride(p, step->command->in);
}

static float *all_logits(const struct ak_cpu_prepared *p, const struct ak_cpu_step *step,
                         size_t row)
{
    return ak_cpu_slot(p, step->command->out) + row * ak_cpu_stride(p, step->command->out);
}

void ak_cpu_prepare_best(struct ak_cpu_prepared *p, const struct ak_cpu_step *step, unsigned thread)
{
    size_t rows = ak_cpu_rows(p, step->row_set), begin, end, n;
    uint32_t first;
    ak_chunk_range(rows, p->n_threads, thread, &begin, &end);
    for (size_t row = begin; row < end; row++) {
        const float *own = own_logits(p, step, row, &first, &n);
        if (p->spec->rank > 0) {
            make_list(p, own, n, first, list_of(p, rows, p->spec->rank, row));
            continue;
        }
        for (size_t i = n; i < step->command->params.collect.shard.n; i++)
            all_logits(p, step, row)[i] = -INFINITY; /* rank 0's are the first */
    }
}

/* Whether a rank has sent a list that is too long. */
static bool has_too_many(const struct ak_cpu_prepared *p, size_t rows, uint32_t rank)
{
    for (size_t row = 0; row < rows; row++)
        if (list_of(p, rows, rank, row)->index == TOO_MANY)
            return true;
    return false;
}

/* Sends all logits of this rank to rank 0, row by row. */
static void send_all(struct ak_cpu_prepared *p, const struct ak_cpu_step *step, size_t rows)
{
    uint32_t first;
    size_t n;
    for (size_t row = 0; row < rows; row++) {
        const float *own = own_logits(p, step, row, &first, &n);
        struct ak_comm_message message = { .rank = 0,
                                           .data = (void *)(uintptr_t)own,
                                           .bytes = n * sizeof *own };
        (void)ak_comm_exchange(p->ranks.comm, &message, 1, NULL, 0, NULL);
    }
}

static void receive_all(struct ak_cpu_prepared *p, const struct ak_cpu_step *step, size_t rows,
                        uint32_t rank)
{
    const struct ak_op_shard *shard = &step->command->params.collect.shard;
    uint32_t first = ak_op_shard_begin(shard, p->spec->n_ranks, rank),
             n = ak_op_shard_begin(shard, p->spec->n_ranks, rank + 1) - first;
    for (size_t row = 0; row < rows; row++) {
        struct ak_comm_message message = { .rank = rank,
                                           .data = all_logits(p, step, row) + first,
                                           .bytes = n * sizeof(float) };
        (void)ak_comm_exchange(p->ranks.comm, NULL, 0, &message, 1, NULL);
    }
}

static void unpack_lists(const struct ak_cpu_prepared *p, const struct ak_cpu_step *step,
                         size_t rows, uint32_t rank)
{
    uint32_t n_all = step->command->params.collect.shard.n;
    for (size_t row = 0; row < rows; row++) {
        const struct element *list = list_of(p, rows, rank, row);
        size_t n = list->index < list_elems(p) ? list->index : 0;
        for (size_t i = 1; i <= n; i++)
            if (list[i].index < n_all)
                all_logits(p, step, row)[list[i].index] = list[i].value;
    }
}

void ak_cpu_collect_best(struct ak_cpu_prepared *p, const struct ak_cpu_step *step)
{
    size_t rows = ak_cpu_rows(p, step->row_set), bytes = ak_cpu_best_bytes(p, step);
    struct ak_comm_rows lists = { .data = list_of(p, rows, p->spec->rank, 0),
                                  .n = 1,
                                  .begins = p->ranks.shard_begins };
    for (uint32_t rank = 0; rank <= p->spec->n_ranks; rank++)
        p->ranks.shard_begins[rank] = rank * bytes;
    (void)ak_comm_collect(p->ranks.comm, &lists, NULL);
    if (p->spec->rank > 0) {
        if (has_too_many(p, rows, p->spec->rank))
            send_all(p, step, rows);
        return;
    }
    for (uint32_t rank = 1; rank < p->spec->n_ranks; rank++) {
        if (has_too_many(p, rows, rank))
            receive_all(p, step, rows, rank);
        else
            unpack_lists(p, step, rows, rank);
    }
}
