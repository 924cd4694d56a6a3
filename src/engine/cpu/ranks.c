/* Exchange of activations with the other ranks, from and to the rows of slots. The op before has
 * written this rank's shard where it belongs if its slot is a part of the other; else the shard is
 * copied. One thread sends and receives. */
#include <string.h>

#include "engine/cpu/cpu.h"

/* Elements of the shards before a rank's, in each row. */
static size_t begin_of(const struct ak_cpu_prepared *p, const struct ak_op_shard *shard,
                       uint32_t rank)
{
    return ak_op_shard_begin(shard, p->spec->n_ranks, rank);
}

/* Copies this rank's elements `at` … of each row of `in` to where they are in `out`. */
static void copy_own(const struct ak_cpu_step *step, struct ak_cpu_prepared *p, unsigned thread,
                     const struct ak_op_shard *shard, uint32_t at, uint32_t to)
{
    const struct ak_command *c = step->command;
    size_t rows = ak_cpu_rows(p, step->row_set), own = begin_of(p, shard, p->spec->rank),
           n = begin_of(p, shard, p->spec->rank + 1) - own, begin, end;
    ak_chunk_range(rows, p->n_threads, thread, &begin, &end);
    for (size_t t = begin; t < end; t++)
        memcpy(ak_cpu_slot(p, c->out) + t * ak_cpu_stride(p, c->out) + to + own,
               ak_cpu_slot(p, c->in) + t * ak_cpu_stride(p, c->in) + at, n * sizeof(float));
}

/* The elements `to` … of the rows of `out`. */
static struct ak_comm_rows shard_rows(const struct ak_cpu_step *step, struct ak_cpu_prepared *p,
                                      const struct ak_op_shard *shard, uint32_t to)
{
    struct ak_comm_rows rows = { .data = ak_cpu_slot(p, step->command->out) + to,
                                 .n = ak_cpu_rows(p, step->row_set),
                                 .stride = ak_cpu_stride(p, step->command->out) * sizeof(float),
                                 .begins = p->ranks.shard_begins };
    for (uint32_t rank = 0; rank <= p->spec->n_ranks; rank++)
        p->ranks.shard_begins[rank] = begin_of(p, shard, rank) * sizeof(float);
    return rows;
}

/* ---- All ranks get all shards ------------------------------------------- */
void ak_cpu_step_copy_shard(const struct ak_cpu_step *step, struct ak_cpu_prepared *p,
                            unsigned thread)
{
    const struct ak_op_all_gather_params *g = &step->command->params.all_gather;
    copy_own(step, p, thread, &g->shard, g->at, g->to);
}

/* A failure stays in the communicator, where the end of the pass finds it. */
void ak_cpu_step_send_shard(const struct ak_cpu_step *step, struct ak_cpu_prepared *p,
                            unsigned thread)
{
    const struct ak_op_all_gather_params *g = &step->command->params.all_gather;
    if (thread != 0)
        return;
    struct ak_comm_rows rows = ak_cpu_gathers_activations(p, step) ?
                                   ak_cpu_sent_shards(step, p) :
                                   shard_rows(step, p, &g->shard, g->to);
    (void)ak_comm_all_gather(p->ranks.comm, p->ranks.lane, &rows, NULL);
}

void ak_cpu_step_await_shards(const struct ak_cpu_step *step, struct ak_cpu_prepared *p,
                              unsigned thread)
{
    (void)step;
    if (thread == 0)
        (void)ak_comm_finish(p->ranks.comm, p->ranks.lane, NULL);
}

/* ---- Rank 0 gets all logits --------------------------------------------- */
static void step_copy_logits(const struct ak_cpu_step *step, struct ak_cpu_prepared *p,
                             unsigned thread)
{
    if (p->spec->rank == 0 && !ak_cpu_is_in_place(p, step->command))
        copy_own(step, p, thread, &step->command->params.collect.shard, 0, 0);
    if (ak_cpu_best_bytes(p, step) > 0)
        ak_cpu_prepare_best(p, step, thread);
}

static void step_collect(const struct ak_cpu_step *step, struct ak_cpu_prepared *p, unsigned thread)
{
    if (thread != 0)
        return;
    if (ak_cpu_best_bytes(p, step) > 0) {
        ak_cpu_collect_best(p, step);
        return;
    }
    struct ak_comm_rows rows = shard_rows(step, p, &step->command->params.collect.shard, 0);
    (void)ak_comm_collect(p->ranks.comm, &rows, NULL);
}

/* ---- The next rank gets all rows ---------------------------------------- */
/* Rows are sent from a copy, while this rank computes the next pass. */
static void step_wait(const struct ak_cpu_step *step, struct ak_cpu_prepared *p, unsigned thread)
{
    (void)step;
    if (thread == 0)
        (void)ak_comm_finish(p->ranks.comm, AK_COMM_LATER, NULL);
}

static void step_copy_rows(const struct ak_cpu_step *step, struct ak_cpu_prepared *p,
                           unsigned thread)
{
    size_t width = ak_cpu_stride(p, step->command->in), begin, end;
    ak_chunk_range(ak_cpu_rows(p, step->row_set), p->n_threads, thread, &begin, &end);
    memcpy(p->ranks.sent + begin * width, ak_cpu_slot(p, step->command->in) + begin * width,
           (end - begin) * width * sizeof(float));
}

/* Rows of a slot, which lie one after another. */
static struct ak_comm_message message_of(const struct ak_cpu_step *step,
                                         const struct ak_cpu_prepared *p, uint32_t rank, void *rows)
{
    return (struct ak_comm_message){ .rank = rank,
                                     .data = rows,
                                     .bytes = ak_cpu_rows(p, step->row_set) *
                                              ak_cpu_stride(p, step->command->out) *
                                              sizeof(float) };
}

static void step_send(const struct ak_cpu_step *step, struct ak_cpu_prepared *p, unsigned thread)
{
    struct ak_comm_message message =
        message_of(step, p, step->command->params.send.to, p->ranks.sent);
    if (thread == 0)
        (void)ak_comm_begin(p->ranks.comm, AK_COMM_LATER, &message, 1, NULL, 0, NULL);
}

static void step_receive(const struct ak_cpu_step *step, struct ak_cpu_prepared *p, unsigned thread)
{
    struct ak_comm_message message =
        message_of(step, p, step->command->params.receive.from, ak_cpu_slot(p, step->command->out));
    if (thread == 0)
        (void)ak_comm_exchange(p->ranks.comm, NULL, 0, &message, 1, NULL);
}

const struct ak_cpu_op ak_cpu_op_send = { .steps = { step_wait, step_copy_rows, step_send } };
const struct ak_cpu_op ak_cpu_op_receive = { .steps = { ak_cpu_step_angles, step_receive } };
const struct ak_cpu_op ak_cpu_op_all_gather = {
    .steps = { ak_cpu_step_copy_shard, ak_cpu_step_quantize_shard, ak_cpu_step_send_shard,
               ak_cpu_step_await_shards }
};
const struct ak_cpu_op ak_cpu_op_collect = { .steps = { step_copy_logits, step_collect } };
