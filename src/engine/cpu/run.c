/* Runs a pass: every thread walks the list of steps, takes its chunks of each stage and, when idle,
 * steals chunks of other threads (work stealing). */
#include <stdatomic.h>

#include "base/mem.h"
#include "engine/cpu/cpu.h"

uint32_t ak_cpu_rows(const struct ak_cpu_prepared *p, enum ak_op_row_set row_set)
{
    switch (row_set) {
    case AK_OP_ROWS_LOGITS: return p->pass.batch->n_logits;
    case AK_OP_ROWS_EXPERTS: return p->pass.batch->n * p->spec->config.n_experts_used;
    default: return p->pass.batch->n;
    }
}

static uint32_t chunk_unit(const struct ak_cpu_prepared *p)
{
    return ak_cpu_is_skinny(p->pass.batch->n) && !p->memory.panel_cache ? AK_TILE_ROWS : p->unit;
}

uint32_t ak_cpu_chunk_first_row(const struct ak_cpu_prepared *p, uint32_t n, uint32_t chunk)
{
    uint32_t unit = chunk_unit(p);
    uint64_t units = (n + unit - 1) / unit, chunks = (uint64_t)p->n_threads * AK_CHUNKS_PER_THREAD;
    uint32_t row = (uint32_t)(units * chunk / chunks) * unit;
    return row < n ? row : n;
}

void ak_cpu_chunk_rows(const struct ak_cpu_prepared *p, uint32_t n, unsigned thread,
                       uint32_t *begin, uint32_t *end)
{
    const struct ak_cpu_scratch *scratch = &p->memory.scratch[thread];
    *begin = ak_cpu_chunk_first_row(p, n, scratch->chunk);
    *end = ak_cpu_chunk_first_row(p, n, scratch->chunk + scratch->n_chunks);
}

static bool ends_stage(const struct ak_cpu_step *step, bool is_skinny)
{
    return is_skinny ? step->barrier_skinny : step->barrier_gemm;
}

static void run_step(struct ak_cpu_prepared *p, const struct ak_cpu_step *step, unsigned thread)
{
    if (p->times)
        ak_cpu_time_step(p, step, thread);
    else
        step->run(step, p, thread);
}

/* Lets exchanges that are under way go on. */
static void progress(const struct ak_cpu_prepared *p, unsigned thread)
{
    if (thread == 0 && p->ranks.comm)
        ak_comm_progress(p->ranks.comm);
}

/* Runs steps [first, end) on chunks [chunk, chunk + n). */
static void run_chunks(struct ak_cpu_prepared *p, uint32_t first, uint32_t end, uint32_t chunk,
                       uint32_t n, unsigned thread)
{
    p->memory.scratch[thread].chunk = chunk;
    p->memory.scratch[thread].n_chunks = n;
    for (uint32_t i = first; i < end; i++)
        run_step(p, &p->steps[i], thread);
}

/* Steals one of the last chunks of another thread. A counter left by an earlier stage reads as
 * zero. */
static bool steal_chunk(struct ak_cpu_steal_state *state, uint64_t stage, uint32_t *index)
{
    uint64_t none = stage * (AK_CHUNKS_STEALABLE + 1),
             found = atomic_load_explicit(&state->stolen, memory_order_relaxed), next;
    do {
        next = found < none ? none : found;
        if (next - none >= AK_CHUNKS_STEALABLE)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&state->stolen, &found, next + 1,
                                                    memory_order_relaxed, memory_order_relaxed));
    *index = (uint32_t)(next - none);
    return true;
}

/* Whether steps [first, end) contain a BLAS product, which takes all rows in one call. */
static bool stage_uses_blas(const struct ak_cpu_prepared *p, uint32_t first, uint32_t end)
{
    for (uint32_t i = first; i < end; i++) {
        const struct ak_command *c = p->steps[i].command;
        if (c->op == AK_OP_LINEAR && ak_cpu_uses_blas(p->cpu, &p->weights->packed[c->weight],
                                                      ak_cpu_rows(p, p->steps[i].row_set)))
            return true;
    }
    return false;
}

/* Number of chunks that together cover one unit of the stage's rows; 1 if there are more units than
 * chunks. */
static uint32_t chunks_per_unit(const struct ak_cpu_prepared *p, const struct ak_cpu_step *step)
{
    uint32_t unit = chunk_unit(p), units = (step->n_rows + unit - 1) / unit,
             chunks = p->n_threads * AK_CHUNKS_PER_THREAD;
    return units > 0 && units < chunks ? chunks / units : 1;
}

/* Runs this thread's part of a stage. For GEMM one chunk at a time, or as many as make up a unit,
 * so that the next step finds its rows in cache. */
static void run_stage(struct ak_cpu_prepared *p, uint32_t first, uint32_t end, bool is_skinny,
                      uint64_t stage, unsigned thread)
{
    if (stage_uses_blas(p, first, end)) {
        run_chunks(p, first, end, thread * AK_CHUNKS_PER_THREAD, AK_CHUNKS_PER_THREAD, thread);
        return;
    }
    uint32_t n = p->n_threads > 1 && p->steps[first].is_stealable ?
                     AK_CHUNKS_PER_THREAD - AK_CHUNKS_STEALABLE :
                     AK_CHUNKS_PER_THREAD,
             index;
    uint32_t at_once = is_skinny ? n : chunks_per_unit(p, &p->steps[first]);
    for (uint32_t i = 0; i < n; i += at_once) {
        run_chunks(p, first, end, thread * AK_CHUNKS_PER_THREAD + i,
                   n - i < at_once ? n - i : at_once, thread);
        progress(p, thread);
    }
    for (unsigned i = 0; n < AK_CHUNKS_PER_THREAD && i < p->n_threads; i++) {
        unsigned owner = (thread + i) % p->n_threads;
        while (steal_chunk(&p->pass.steal_states[owner], stage, &index))
            run_chunks(p, first, end, owner * AK_CHUNKS_PER_THREAD + n + index, 1, thread);
    }
}

/* Runs steps from `first` on, to the last one or, in a pass in two halves, to the next one that
 * waits for other ranks. Returns the step after these. */
static uint32_t run_steps(struct ak_cpu_prepared *p, uint32_t first, uint64_t *stage,
                          unsigned thread)
{
    for (uint32_t i = first, end; i < p->n_steps; i = end) {
        const struct ak_cpu_step *step = &p->steps[i];
        uint32_t rows = ak_cpu_rows(p, step->row_set);
        bool is_skinny = ak_cpu_is_skinny(rows);
        end = i + 1;
        if (rows == 0)
            break; /* no logits wanted */
        if (step->run == ak_cpu_step_await_shards && i > first && p->ranks.lane != AK_COMM_NOW)
            return i;
        if (step->is_chunked) {
            while (!ends_stage(&p->steps[end - 1], is_skinny))
                end++;
            run_stage(p, i, end, is_skinny, ++*stage, thread);
        } else {
            run_step(p, step, thread);
        }
        progress(p, thread);
        if (!ends_stage(&p->steps[end - 1], is_skinny))
            continue;
        if (p->times)
            ak_cpu_time_barrier(p, &p->steps[end - 1], thread);
        else
            ak_pool_barrier(p->pool, thread);
    }
    return p->n_steps;
}

static void walk(void *context, unsigned thread)
{
    struct ak_cpu_prepared *p = context;
    uint64_t stage = p->pass.n_stages;
    (void)run_steps(p, 0, &stage, thread);
    if (thread == 0)
        p->pass.n_stages = stage;
}

/* Both halves in turns: while one's shards are exchanged, the other is computed. */
static void walk_halves(void *context, unsigned thread)
{
    struct ak_cpu_prepared *second = context, *halves[] = { second->ranks.first_half, second };
    uint64_t stages[] = { halves[0]->pass.n_stages, halves[1]->pass.n_stages };
    uint32_t next[] = { 0, 0 };
    while (next[0] < halves[0]->n_steps || next[1] < halves[1]->n_steps)
        for (unsigned i = 0; i < 2; i++)
            if (next[i] < halves[i]->n_steps)
                next[i] = run_steps(halves[i], next[i], &stages[i], thread);
    for (unsigned i = 0; i < 2 && thread == 0; i++)
        halves[i]->pass.n_stages = stages[i];
}

/* Splits tokens [begin, end) into blocks that attention processes together. */
static uint32_t add_blocks(const struct ak_cpu_prepared *p, uint32_t begin, uint32_t end,
                           uint32_t visible_end, struct ak_cpu_token_block *blocks)
{
    uint32_t group = p->spec->config.n_heads / p->spec->config.n_kv_heads, n_blocks = 0;
    uint32_t max = AK_ATTN_ROWS_MAX / group ? AK_ATTN_ROWS_MAX / group : 1;
    for (uint32_t first = begin, n; first < end; first += n) {
        n = end - first < max ? end - first : max;
        blocks[n_blocks++] =
            (struct ak_cpu_token_block){ .first = first, .n = n, .end = visible_end };
    }
    return n_blocks;
}

static void find_blocks(struct ak_cpu_prepared *p)
{
    const struct ak_batch *batch = p->pass.batch;
    p->pass.n_blocks = 0;
    for (uint32_t i = 0, stop; i < batch->n; i = stop) {
        for (stop = i + 1; stop < batch->n && batch->sequences[stop] == batch->sequences[i];)
            stop++;
        p->pass.n_blocks += add_blocks(p, i, stop, batch->positions[stop - 1] + 1,
                                       p->pass.blocks + p->pass.n_blocks);
    }
}

static void find_cross_blocks(struct ak_cpu_prepared *p)
{
    const struct ak_batch *batch = p->pass.batch;
    p->pass.n_cross_blocks = 0;
    for (uint32_t i = 0, stop; batch->cross_sequences && i < batch->n; i = stop) {
        uint32_t read = batch->cross_sequences[batch->sequences[i]];
        for (stop = i + 1;
             stop < batch->n && batch->cross_sequences[batch->sequences[stop]] == read;)
            stop++;
        p->pass.n_cross_blocks += add_blocks(p, i, stop, batch->cross_lengths[batch->sequences[i]],
                                             p->pass.cross_blocks + p->pass.n_cross_blocks);
    }
}

static void begin_pass(struct ak_cpu_prepared *p, const struct ak_batch *batch,
                       enum ak_comm_lane lane)
{
    p->pass.batch = batch;
    p->ranks.lane = lane;
    p->pass.number++;
    find_blocks(p);
    find_cross_blocks(p);
}

/* Tokens of a pass's first half; 0: it does not run in halves, the same on all ranks. Logits are
 * those of the second half. */
static uint32_t first_half_tokens(const struct ak_cpu_prepared *p, const struct ak_batch *batch)
{
    uint32_t n = (uint32_t)ak_round_up(batch->n / 2, AK_PANEL_TOKEN_STEP);
    bool fits = p->ranks.first_half && batch->n >= AK_HALVES_TOKENS_MIN && !batch->scores &&
                !batch->importance && !batch->wants_inputs &&
                (batch->n_logits == 0 || batch->logit_rows[0] >= n);
    return fits ? n : 0;
}

static void run_halves(struct ak_cpu_prepared *p, const struct ak_batch *batch, uint32_t n)
{
    struct ak_batch first = *batch, second = *batch;
    first.n = n;
    first.n_logits = 0;
    second.n -= n;
    second.tokens += n;
    second.positions += n;
    second.sequences += n;
    second.hidden = batch->hidden ? batch->hidden + n * batch->hidden_stride : NULL;
    second.logit_rows = p->ranks.half_logit_rows;
    for (uint32_t i = 0; i < batch->n_logits; i++)
        p->ranks.half_logit_rows[i] = batch->logit_rows[i] - n;
    begin_pass(p->ranks.first_half, &first, AK_COMM_LATER);
    begin_pass(p, &second, AK_COMM_LATER_TOO);
    p->ranks.first_half->times = p->times;
    ak_pool_run(p->pool, walk_halves, p);
    p->ranks.first_half->times = NULL;
    p->ranks.first_half->pass.batch = p->pass.batch = NULL;
}

void ak_cpu_run(struct ak_backend_table *prepared, const struct ak_batch *batch)
{
    struct ak_cpu_prepared *p = (struct ak_cpu_prepared *)prepared;
    uint32_t n = first_half_tokens(p, batch);
    if (n > 0) {
        run_halves(p, batch, n);
        return;
    }
    begin_pass(p, batch, AK_COMM_NOW);
    ak_pool_run(p->pool, walk, p);
    p->pass.batch = NULL;
}
