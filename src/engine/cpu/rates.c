/* Measures how fast products of one token read weights of each type: the time of a token is little
 * else. Unlike engine/cpu/tune.c, which compares kernels with each other, this wants bytes per
 * second. */
#include <stdlib.h>

#include "base/chip.h"
#include "base/mem.h"
#include "base/system.h"
#include "base/thread.h"
#include "engine/cpu/backend.h"
#include "engine/cpu/cpu.h"
#include "files/quant/recode.h"
#include "base/math.h"

/* A slice takes less than a time slice of the system, so that other programs disturb few of them,
 * and the lower quartile none. */
enum { K = 2048, ROUNDS = 4, BARRIER_RUNS = 9, SLICE_BYTES = 6 << 20, SAMPLES_MAX = 128 };
/* More than caches hold, also those that a hypervisor hides. */
static const size_t memory_bytes = (size_t)96 << 20;

static const struct ak_backend_profile defaults;

struct probe {
    struct ak_cpu_kernels kernels;
    struct ak_pool *pool;
    uint8_t *weights, *activations;
    float *x, *y; /* [K]; [threads][rows of a chunk] */
    enum ak_quant_type type;
    bool is_tiled;
    size_t unit_bytes; /* a tile row, or a stored row */
    size_t first, n;   /* units of the slice */
};

/* Units that a thread multiplies at once; their results are dropped. */
enum { UNITS = 64 };

static void multiply_task(void *context, unsigned thread)
{
    const struct probe *p = context;
    float *y = p->y + (size_t)thread * UNITS * AK_TILE_ROWS;
    size_t distance = ak_backend_profile_prefetch(&defaults, p->type, 1);
    size_t begin, end;
    ak_chunk_range(p->n, ak_pool_threads(p->pool), thread, &begin, &end);
    for (size_t i = begin, n; i < end; i += n) {
        const uint8_t *weights = p->weights + (p->first + i) * p->unit_bytes;
        n = ak_min_size(end - i, UNITS);
        if (p->is_tiled)
            p->kernels.tile[p->type].dot_tiles(weights, n, K, p->activations,
                                               ak_cpu_act_bytes(ak_cpu_type_act_format(p->type), K),
                                               1, y, n * AK_TILE_ROWS, distance);
        else
            p->kernels.dot_stored[p->type](weights, p->unit_bytes, n, K, p->x, K, 1, y, n,
                                           distance);
    }
}

/* False: the type has no kernel that reads its weights. */
static bool set_type(struct probe *p, enum ak_quant_type type)
{
    uint64_t row = 0;
    p->type = type;
    p->is_tiled = p->kernels.tile[type].dot_tiles != NULL;
    if (!p->is_tiled && !p->kernels.dot_stored[type])
        return false;
    (void)ak_quant_row_bytes(type, K, &row);
    p->unit_bytes = p->is_tiled ? ak_cpu_tile_row_bytes(type, K) : (size_t)row;
    p->n = SLICE_BYTES / p->unit_bytes;
    if (ak_cpu_type_act_format(type) == AK_CPU_ACT_Q8_32)
        p->kernels.quantize32(p->x, K, (struct ak_cpu_act32 *)(void *)p->activations);
    else if (ak_cpu_type_act_format(type) == AK_CPU_ACT_Q8_256)
        p->kernels.quantize256(p->x, K, (struct ak_cpu_act256 *)(void *)p->activations);
    return true;
}

static double measure_type(struct probe *p)
{
    double seconds[SAMPLES_MAX];
    size_t n_samples = 0, all = memory_bytes / p->unit_bytes;
    for (size_t round = 0; round < ROUNDS; round++)
        for (p->first = 0; p->first + p->n <= all && n_samples < SAMPLES_MAX; p->first += p->n) {
            double start = ak_seconds();
            ak_pool_run(p->pool, multiply_task, p);
            seconds[n_samples++] = ak_seconds() - start;
        }
    qsort(seconds, n_samples, sizeof *seconds, ak_compare_doubles);
    return (double)(p->n * p->unit_bytes) / (seconds[n_samples / 4] + 1e-9);
}

/* Bytes without the exponents of NaN and infinity, for any type. */
static void fill_bytes(struct probe *p)
{
    uint64_t state = 88172645463325252u, *words = (uint64_t *)(void *)p->weights;
    for (size_t i = 0; i < memory_bytes / sizeof *words; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        words[i] = state & 0xbfffbfffbfffbfffu;
    }
    for (size_t i = 0; i < K; i++)
        p->x[i] = (float)(i % 7) - 3.0f;
}

enum { BARRIERS = 2000 };

static void barrier_task(void *context, unsigned thread)
{
    const struct probe *p = context;
    for (int i = 0; i < BARRIERS; i++)
        ak_pool_barrier(p->pool, thread);
}

static double measure_barrier(struct probe *p)
{
    double best = 1e9;
    for (size_t i = 0; i < BARRIER_RUNS; i++) {
        double start = ak_seconds();
        ak_pool_run(p->pool, barrier_task, p);
        double seconds = ak_seconds() - start;
        best = seconds < best ? seconds : best;
    }
    return best / BARRIERS;
}

ak_status ak_cpu_measure_types(enum ak_cpu_isa isa, unsigned n_threads,
                               double rates[AK_QUANT_COUNT], double *step, struct ak_error *error)
{
    struct probe *p = ak_alloc(1, sizeof *p);
    if (!p)
        return ak_fail_memory(error, "measuring types", sizeof *p);
    ak_cpu_fill_kernels(isa, &p->kernels);
    p->weights = ak_pages_alloc(memory_bytes);
    p->activations = ak_alloc_aligned(K * sizeof(float) * 2);
    p->x = ak_alloc_aligned(K * sizeof *p->x);
    p->y = ak_alloc_aligned((size_t)n_threads * UNITS * AK_TILE_ROWS * sizeof *p->y);
    ak_status status = ak_pool_create(n_threads, &p->pool, error);
    if (status == AKUNU_OK && !(p->weights && p->activations && p->x && p->y))
        status = ak_fail_memory(error, "measuring types", memory_bytes);
    if (status == AKUNU_OK) {
        fill_bytes(p);
        *step = measure_barrier(p);
    }
    for (int type = 0; status == AKUNU_OK && type < AK_QUANT_COUNT; type++) {
        enum ak_quant_type measured = ak_quant_recoded_type((enum ak_quant_type)type);
        rates[type] =
            measured == (enum ak_quant_type)type && set_type(p, measured) ? measure_type(p) : 0.0;
    }
    for (int type = 0; status == AKUNU_OK && type < AK_QUANT_COUNT; type++)
        if (rates[type] == 0.0)
            rates[type] = rates[ak_quant_recoded_type((enum ak_quant_type)type)];
    ak_pool_free(p->pool);
    if (p->weights)
        ak_pages_free(p->weights, memory_bytes);
    ak_free(p->activations);
    ak_free(p->x);
    ak_free(p->y);
    ak_free(p);
    return status;
}
