#include "cpu/cpu.h"

uint32_t ak_cpu_rows(const struct ak_cpu_prepared *p, enum ak_domain domain)
{
    return domain == AK_DOMAIN_TOKENS ? p->batch->n : p->batch->n_logits;
}

void ak_cpu_own_rows(const struct ak_cpu_prepared *p, uint32_t n, unsigned thread, uint32_t *begin, uint32_t *end)
{
    size_t first, last;
    ak_split((n + AK_TILE_ROWS - 1) / AK_TILE_ROWS, p->n_threads, thread, &first, &last);
    *begin = (uint32_t)first * AK_TILE_ROWS;
    *end = (uint32_t)last * AK_TILE_ROWS;
    *end = *end < n ? *end : n;
}

static void walk(void *context, unsigned thread)
{
    struct ak_cpu_prepared *p = context;
    for (uint32_t i = 0; i < p->n_steps; i++) {
        const struct ak_cpu_step *step = &p->steps[i];
        uint32_t rows = ak_cpu_rows(p, step->domain);
        if (rows == 0)
            break; /* no logits wanted */
        step->run(step, p, thread);
        if (ak_cpu_is_few(rows) ? step->barrier_few : step->barrier_many)
            ak_pool_barrier(p->pool, thread);
    }
}

/* Cuts the batch into runs of one sequence that attention takes at once. */
static void find_blocks(struct ak_cpu_prepared *p)
{
    const struct ak_batch *batch = p->batch;
    uint32_t group = p->spec->config.n_heads / p->spec->config.n_kv_heads;
    uint32_t most = AK_ATTEND_ROWS / group ? AK_ATTEND_ROWS / group : 1;
    p->n_blocks = 0;
    for (uint32_t i = 0, n; i < batch->n; i += n) {
        n = 1;
        while (n < most && i + n < batch->n && batch->sequences[i + n] == batch->sequences[i])
            n++;
        p->blocks[p->n_blocks++] = (struct ak_token_block){ .first = i, .n = n };
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
