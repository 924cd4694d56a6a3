#include <stdatomic.h>

#include "cpu/cpu.h"

uint32_t ak_cpu_rows(const struct ak_cpu_prepared *p, enum ak_op_row_set row_set)
{
    switch (row_set) {
    case AK_OP_ROWS_LOGITS: return p->batch->n_logits;
    case AK_OP_ROWS_EXPERTS: return p->batch->n * p->spec->config.n_experts_used;
    default: return p->batch->n;
    }
}

static uint32_t unit_of_shares(const struct ak_cpu_prepared *p)
{
    return ak_cpu_is_few(p->batch->n) && !p->kept ? AK_TILE_ROWS : p->unit;
}

uint32_t ak_cpu_first_row(const struct ak_cpu_prepared *p, uint32_t n, uint32_t share)
{
    uint32_t unit = unit_of_shares(p);
    uint64_t units = (n + unit - 1) / unit, shares = (uint64_t)p->n_threads * AK_SHARES;
    uint32_t row = (uint32_t)(units * share / shares) * unit;
    return row < n ? row : n;
}

void ak_cpu_own_rows(const struct ak_cpu_prepared *p, uint32_t n, unsigned thread, uint32_t *begin,
                     uint32_t *end)
{
    const struct ak_thread_scratch *own = &p->scratch[thread];
    *begin = ak_cpu_first_row(p, n, own->share);
    *end = ak_cpu_first_row(p, n, own->share + own->n_shares);
}

static bool ends_stage(const struct ak_cpu_step *step, bool few)
{
    return few ? step->barrier_few : step->barrier_many;
}

/* Runs steps [first, end) on shares [share, share + n). */
static void run_shares(struct ak_cpu_prepared *p, uint32_t first, uint32_t end, uint32_t share,
                       uint32_t n, unsigned thread)
{
    p->scratch[thread].share = share;
    p->scratch[thread].n_shares = n;
    for (uint32_t i = first; i < end; i++)
        p->steps[i].run(&p->steps[i], p, thread);
}

/* Takes one of the last shares of `owner` in stage `stage`. What is left of an
 * earlier stage counts as none taken. */
static bool take(struct ak_tail *tail, uint64_t stage, uint32_t *index)
{
    uint64_t none = stage * (AK_SHARES_STOLEN + 1),
             found = atomic_load_explicit(&tail->taken, memory_order_relaxed), next;
    do {
        next = found < none ? none : found;
        if (next - none >= AK_SHARES_STOLEN)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&tail->taken, &found, next + 1,
                                                    memory_order_relaxed, memory_order_relaxed));
    *index = (uint32_t)(next - none);
    return true;
}

/* Whether a product of steps [first, end) is one call for all threads. */
static bool has_blas(const struct ak_cpu_prepared *p, uint32_t first, uint32_t end)
{
    for (uint32_t i = first; i < end; i++) {
        const struct ak_command *c = p->steps[i].command;
        if (c->op == AK_OP_LINEAR && ak_cpu_takes_blas(p->cpu, &p->weights->packed[c->weight],
                                                       ak_cpu_rows(p, p->steps[i].row_set)))
            return true;
    }
    return false;
}

/* Shares that have a unit of the rows of a stage's weight together. */
static uint32_t shares_of_unit(const struct ak_cpu_prepared *p, const struct ak_cpu_step *step)
{
    uint32_t unit = unit_of_shares(p), units = (step->n_rows + unit - 1) / unit,
             shares = p->n_threads * AK_SHARES;
    return units > 0 && units < shares ? shares / units : 1;
}

/* One stage's part on rows. With many tokens a share at a time, or as many as have rows,
 * so that what a step leaves for the next one stays in the cache. */
static void run_stage(struct ak_cpu_prepared *p, uint32_t first, uint32_t end, bool few,
                      uint64_t stage, unsigned thread)
{
    if (has_blas(p, first, end)) {
        run_shares(p, first, end, thread * AK_SHARES, AK_SHARES, thread);
        return;
    }
    uint32_t n = p->n_threads > 1 && p->steps[first].steal ? AK_SHARES - AK_SHARES_STOLEN :
                                                             AK_SHARES,
             index;
    uint32_t at_once = few ? n : shares_of_unit(p, &p->steps[first]);
    for (uint32_t i = 0; i < n; i += at_once)
        run_shares(p, first, end, thread * AK_SHARES + i, n - i < at_once ? n - i : at_once,
                   thread);
    for (unsigned i = 0; n < AK_SHARES && i < p->n_threads; i++) {
        unsigned owner = (thread + i) % p->n_threads;
        while (take(&p->tails[owner], stage, &index))
            run_shares(p, first, end, owner * AK_SHARES + n + index, 1, thread);
    }
}

static void walk(void *context, unsigned thread)
{
    struct ak_cpu_prepared *p = context;
    uint64_t stage = p->n_stages;
    for (uint32_t i = 0, end; i < p->n_steps; i = end) {
        const struct ak_cpu_step *step = &p->steps[i];
        uint32_t rows = ak_cpu_rows(p, step->row_set);
        bool few = ak_cpu_is_few(rows);
        end = i + 1;
        if (rows == 0)
            break; /* no logits wanted */
        if (step->on_rows) {
            while (!ends_stage(&p->steps[end - 1], few))
                end++;
            run_stage(p, i, end, few, ++stage, thread);
        } else {
            step->run(step, p, thread);
        }
        if (ends_stage(&p->steps[end - 1], few))
            ak_pool_barrier(p->pool, thread);
    }
    if (thread == 0)
        p->n_stages = stage;
}

/* Cuts the batch into runs of one sequence that attention takes at once. */
static void find_blocks(struct ak_cpu_prepared *p)
{
    const struct ak_batch *batch = p->batch;
    uint32_t group = p->spec->config.n_heads / p->spec->config.n_kv_heads;
    uint32_t most = AK_ATTEND_ROWS / group ? AK_ATTEND_ROWS / group : 1;
    p->n_blocks = 0;
    for (uint32_t i = 0, stop; i < batch->n; i = stop) {
        for (stop = i + 1; stop < batch->n && batch->sequences[stop] == batch->sequences[i];)
            stop++;
        for (uint32_t first = i, n; first < stop; first += n) {
            n = stop - first < most ? stop - first : most;
            p->blocks[p->n_blocks++] = (struct ak_token_block){
                .first = first, .n = n, .end = batch->positions[stop - 1] + 1
            };
        }
    }
}

void ak_cpu_run(struct ak_prepared *prepared, const struct ak_batch *batch)
{
    struct ak_cpu_prepared *p = (struct ak_cpu_prepared *)prepared;
    p->batch = batch;
    find_blocks(p);
    ak_pool_run(p->pool, walk, p);
    p->batch = NULL;
}
