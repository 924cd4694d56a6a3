/* Roofline probes: read bandwidth, int8, f32 and BF16 throughput, and the clock. Each is measured
 * on all threads at once, because they share bandwidth and power. */
#include "engine/cpu/backend.h"

#include <string.h>

#include "base/chip.h"
#include "base/mem.h"
#include "base/system.h"
#include "base/thread.h"

static const size_t read_bytes_min = (size_t)192 << 20, read_bytes_max = (size_t)2 << 30;

enum { PAGE = 4096, RUNS_MIN = 3, RUNS_PER_SECOND = 100 };

struct probe {
    struct ak_pool *pool;
    const struct ak_cpu_kernels *kernels;
    uint8_t *memory;
    size_t memory_bytes;
    uint64_t (*work)(size_t rounds, uint64_t *sink);
    size_t rounds;
    uint64_t ops; /* operations of thread 0 */
    uint64_t sink;
};

/* Seconds of the fastest run within `budget` seconds; at least RUNS_MIN runs. */
static double best_of(struct probe *p, ak_task *task, double budget)
{
    double best = 1e9, begin = ak_seconds(), end = begin;
    for (int i = 0; i < RUNS_MIN || end - begin < budget; i++) {
        double start = ak_seconds();
        ak_pool_run(p->pool, task, p);
        end = ak_seconds();
        best = end - start < best ? end - start : best;
    }
    return best > 1e-9 ? best : 1e-9;
}

/* ---- Reading ------------------------------------------------------------ */
static uint8_t *thread_pages(const struct probe *p, unsigned thread, size_t *bytes)
{
    size_t begin, end;
    ak_chunk_range(p->memory_bytes / PAGE, ak_pool_threads(p->pool), thread, &begin, &end);
    *bytes = (end - begin) * PAGE;
    return p->memory + begin * PAGE;
}

/* Each thread first touches the pages it will read, so that they are NUMA-local. */
static void touch_task(void *context, unsigned thread)
{
    size_t bytes;
    uint8_t *memory = thread_pages(context, thread, &bytes);
    memset(memory, 1, bytes);
}

static void read_task(void *context, unsigned thread)
{
    struct probe *p = context;
    size_t bytes;
    const uint8_t *memory = thread_pages(p, thread, &bytes);
    uint64_t sum = p->kernels->probe_read(memory, bytes);
    if (thread == 0)
        p->sink ^= sum;
}

/* Bytes that exceed any cache, for all threads together. */
static size_t bytes_to_read(void)
{
    struct ak_chip chip;
    ak_chip_detect(&chip);
    size_t max_bytes = ak_min_size(read_bytes_max, (size_t)chip.memory_bytes / 16);
    size_t bytes =
        ak_max_size(read_bytes_min, ak_min_size((size_t)chip.l3_total_bytes * 4, max_bytes));
    return bytes / PAGE * PAGE;
}

static ak_status measure_read(struct probe *p, double *out, struct ak_error *error)
{
    p->memory_bytes = bytes_to_read();
    p->memory = ak_pages_alloc(p->memory_bytes);
    if (!p->memory)
        return ak_fail_memory(error, "measuring the memory", p->memory_bytes);
    ak_pool_run(p->pool, touch_task, p);
    *out = (double)p->memory_bytes / best_of(p, read_task, 0.1);
    ak_pages_free(p->memory, p->memory_bytes);
    return AKUNU_OK;
}

/* ---- Arithmetic --------------------------------------------------------- */
static void work_task(void *context, unsigned thread)
{
    struct probe *p = context;
    uint64_t sink, ops = p->work(p->rounds, &sink);
    if (thread == 0) {
        p->ops = ops;
        p->sink ^= sink;
    }
}

/* Operations per second of one thread, from runs of about 10 ms. */
static double measure_work(struct probe *p, uint64_t (*work)(size_t rounds, uint64_t *sink))
{
    p->work = work;
    p->rounds = 1 << 12;
    double once = best_of(p, work_task, 0.0);
    p->rounds = (size_t)((double)p->rounds / once / RUNS_PER_SECOND) + 1;
    double seconds = best_of(p, work_task, 0.05);
    return (double)p->ops / seconds;
}

/* A chain of dependent additions: one per cycle on every supported CPU. The operand is a register,
 * because some cores add constants during register renaming. */
static uint64_t add_chain(size_t rounds, uint64_t *sink)
{
    enum { STEPS = 16 };
    uint64_t x = 0, y = rounds;
    for (size_t i = 0; i < rounds; i++)
#pragma GCC unroll 16
        for (int j = 0; j < STEPS; j++) {
            x += y;
            __asm__ volatile("" : "+r"(x));
        }
    *sink = x;
    return (uint64_t)rounds * STEPS;
}

ak_status ak_cpu_measure_roofline(enum ak_cpu_isa isa, unsigned n_threads, unsigned what,
                                  struct akunu_roofline *out, struct ak_error *error)
{
    struct ak_cpu_kernels kernels;
    struct probe p = { .kernels = &kernels };
    ak_cpu_fill_kernels(isa, &kernels);
    *out = (struct akunu_roofline){ 0 };
    AK_TRY(ak_pool_create(n_threads, &p.pool, error));
    double threads = (double)n_threads;
    ak_status status = AKUNU_OK;
    if (what & AKUNU_MEASURE_READ)
        status = measure_read(&p, &out->read_bytes_per_second, error);
    if (status == AKUNU_OK && (what & AKUNU_MEASURE_INT8))
        out->int8_ops_per_second = threads * measure_work(&p, kernels.probe_int8);
    if (status == AKUNU_OK && (what & AKUNU_MEASURE_F32))
        out->f32_ops_per_second = threads * measure_work(&p, kernels.probe_f32);
    if (status == AKUNU_OK && (what & AKUNU_MEASURE_BF16) && kernels.probe_bf16)
        out->bf16_ops_per_second = threads * measure_work(&p, kernels.probe_bf16);
    if (status == AKUNU_OK && (what & AKUNU_MEASURE_CLOCK))
        out->clock_hz = measure_work(&p, add_chain);
    ak_pool_free(p.pool);
    return status;
}
