#include "cpu/roofline.h"

#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/thread.h"

enum {
    READ_BYTES = 192 << 20, /* beyond any cache, all threads together */
    REPEATS = 5,
    INT8_SECONDS_INVERSE = 50 /* 20 ms a repeat */
};

struct probe {
    const struct ak_kernels *kernels;
    struct ak_pool *pool;
    const uint8_t *memory;
    size_t rounds;
    uint64_t ops;   /* of thread 0 */
    uint64_t sinks[2];
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void read_task(void *context, unsigned thread)
{
    struct probe *p = context;
    size_t begin, end;
    ak_split(READ_BYTES / 4096, ak_pool_threads(p->pool), thread, &begin, &end);
    uint64_t sum = p->kernels->probe_read(p->memory + begin * 4096, (end - begin) * 4096);
    if (thread == 0)
        p->sinks[0] ^= sum;
}

static void int8_task(void *context, unsigned thread)
{
    struct probe *p = context;
    uint64_t sink, ops = p->kernels->probe_int8(p->rounds, &sink);
    if (thread == 0) {
        p->ops = ops;
        p->sinks[1] ^= sink;
    }
}

/* Seconds of the fastest of several runs. */
static double best_of(struct probe *p, ak_task *task)
{
    double best = 1e9;
    for (int i = 0; i < REPEATS; i++) {
        double start = now();
        ak_pool_run(p->pool, task, p);
        double seconds = now() - start;
        best = seconds < best ? seconds : best;
    }
    return best;
}

ak_status ak_roofline_measure(enum ak_isa isa, unsigned n_threads, struct ak_roofline *out, struct ak_error *error)
{
    struct ak_kernels kernels;
    struct probe p = { .kernels = &kernels, .rounds = 1 << 12 };
    ak_kernels_fill(isa, &kernels);
    uint8_t *memory = ak_pages_alloc(READ_BYTES);
    if (!memory)
        return ak_fail_memory(error, "measuring the memory", READ_BYTES);
    memset(memory, 1, READ_BYTES);
    p.memory = memory;
    ak_status status = ak_pool_create(n_threads, &p.pool, error);
    if (status == AKUNU_OK) {
        out->read_bytes_per_second = (double)READ_BYTES / best_of(&p, read_task);
        double once = best_of(&p, int8_task);
        p.rounds = (size_t)((double)p.rounds / once / INT8_SECONDS_INVERSE) + 1;
        double seconds = best_of(&p, int8_task);
        out->int8_ops_per_second = (double)p.ops * ak_pool_threads(p.pool) / seconds;
    }
    ak_pool_free(p.pool);
    ak_pages_free(memory, READ_BYTES);
    return status;
}
