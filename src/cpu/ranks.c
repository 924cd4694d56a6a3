/* Exchange of shards with the other ranks. Rows are copied into a buffer, rank after rank, and from
 * there to where they belong; one thread sends and receives. */
#include <string.h>

#include "cpu/cpu.h"

/* Elements of the shards before a rank's, in each row. */
static size_t begin_of(const struct ak_cpu_prepared *p, const struct ak_op_shard *shard,
                       uint32_t rank)
{
    return ak_op_shard_begin(shard, p->spec->n_ranks, rank);
}

/* This rank's elements `at` … of each row. */
static void pack_rows(const struct ak_cpu_step *step, struct ak_cpu_prepared *p, unsigned thread,
                      const struct ak_op_shard *shard, uint32_t at)
{
    size_t rows = ak_cpu_rows(p, step->row_set), own = begin_of(p, shard, p->spec->rank),
           n = begin_of(p, shard, p->spec->rank + 1) - own, begin, end;
    ak_chunk_range(rows, p->n_threads, thread, &begin, &end);
    for (size_t t = begin; t < end; t++)
        memcpy(p->shards + rows * own + t * n,
               ak_cpu_slot(p, step->command->in) + t * ak_cpu_stride(p, step->command->in) + at,
               n * sizeof(float));
}

/* The elements of all ranks, as elements `to` … of each row. */
static void unpack_rows(const struct ak_cpu_step *step, struct ak_cpu_prepared *p, unsigned thread,
                        const struct ak_op_shard *shard, uint32_t to)
{
    size_t rows = ak_cpu_rows(p, step->row_set), begin, end;
    ak_chunk_range(rows, p->n_threads, thread, &begin, &end);
    for (uint32_t rank = 0; rank < p->spec->n_ranks; rank++) {
        size_t first = begin_of(p, shard, rank), n = begin_of(p, shard, rank + 1) - first;
        for (size_t t = begin; t < end; t++)
            memcpy(ak_cpu_slot(p, step->command->out) + t * ak_cpu_stride(p, step->command->out) +
                       to + first,
                   p->shards + rows * first + t * n, n * sizeof(float));
    }
}

/* A failure stays in the communicator, where the end of the pass finds it. */
typedef ak_status exchange_fn(struct ak_comm *comm, void *data, const size_t *begins,
                              struct ak_error *error);

static void exchange_rows(const struct ak_cpu_step *step, struct ak_cpu_prepared *p,
                          unsigned thread, const struct ak_op_shard *shard, exchange_fn *exchange)
{
    size_t row_bytes = ak_cpu_rows(p, step->row_set) * sizeof(float);
    if (thread != 0)
        return;
    for (uint32_t rank = 0; rank <= p->spec->n_ranks; rank++)
        p->shard_begins[rank] = row_bytes * begin_of(p, shard, rank);
    (void)exchange(p->comm, p->shards, p->shard_begins, NULL);
}

/* ---- All ranks get all shards ------------------------------------------- */
static void step_pack(const struct ak_cpu_step *step, struct ak_cpu_prepared *p, unsigned thread)
{
    const struct ak_op_all_gather_params *g = &step->command->params.all_gather;
    pack_rows(step, p, thread, &g->shard, g->at);
}

static void step_gather(const struct ak_cpu_step *step, struct ak_cpu_prepared *p, unsigned thread)
{
    exchange_rows(step, p, thread, &step->command->params.all_gather.shard, ak_comm_all_gather);
}

static void step_unpack(const struct ak_cpu_step *step, struct ak_cpu_prepared *p, unsigned thread)
{
    const struct ak_op_all_gather_params *g = &step->command->params.all_gather;
    unpack_rows(step, p, thread, &g->shard, g->to);
}

/* ---- Rank 0 gets all logits --------------------------------------------- */
static void step_pack_logits(const struct ak_cpu_step *step, struct ak_cpu_prepared *p,
                             unsigned thread)
{
    const struct ak_op_shard *shard = &step->command->params.collect.shard;
    if (ak_cpu_best_bytes(p, step) > 0)
        ak_cpu_pack_best(p, step, thread);
    else
        pack_rows(step, p, thread, shard, 0);
}

static void step_collect(const struct ak_cpu_step *step, struct ak_cpu_prepared *p, unsigned thread)
{
    if (ak_cpu_best_bytes(p, step) == 0)
        exchange_rows(step, p, thread, &step->command->params.collect.shard, ak_comm_collect);
    else if (thread == 0)
        ak_cpu_collect_best(p, step);
}

static void step_unpack_logits(const struct ak_cpu_step *step, struct ak_cpu_prepared *p,
                               unsigned thread)
{
    if (p->spec->rank == 0 && ak_cpu_best_bytes(p, step) == 0)
        unpack_rows(step, p, thread, &step->command->params.collect.shard, 0);
}

const struct ak_cpu_op ak_cpu_op_all_gather = { .steps = { step_pack, step_gather, step_unpack } };
const struct ak_cpu_op ak_cpu_op_collect = { .steps = { step_pack_logits, step_collect,
                                                        step_unpack_logits } };
