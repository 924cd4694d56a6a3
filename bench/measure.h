/* What the bench programs share: a clock, the best of several runs, input. */
#ifndef AK_BENCH_MEASURE_H
#define AK_BENCH_MEASURE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/mem.h"
#include "base/thread.h"
#include "cpu/roofline.h"

static inline double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Seconds of the fastest of `runs` runs. */
static inline double best_seconds(struct ak_pool *pool, ak_task *task, void *context, int runs)
{
    double best = 1e9;
    for (int i = 0; i < runs; i++) {
        double start = seconds_now();
        ak_pool_run(pool, task, context);
        double seconds = seconds_now() - start;
        best = seconds < best ? seconds : best;
    }
    return best;
}

/* Both end the program where there is no memory or no thread. */
static inline struct ak_pool *start_threads(unsigned n)
{
    struct ak_error error = { 0 };
    struct ak_pool *pool;
    if (ak_pool_create(n, &pool, &error) != AKUNU_OK) {
        fprintf(stderr, "%s\n", error.message);
        exit(1);
    }
    return pool;
}

static inline void *new_pages(size_t bytes)
{
    void *p = ak_pages_alloc(bytes);
    if (!p) {
        fprintf(stderr, "no memory for %zu bytes\n", bytes);
        exit(1);
    }
    return p;
}

static inline void fill_random(void *p, size_t bytes)
{
    uint64_t *words = p, state = 88172645463325252u;
    for (size_t i = 0; i < bytes / sizeof *words; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        words[i] = state;
    }
}

static inline void fill_floats(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (float)((i * 2654435761u >> 8) % 2001) * 0.001f - 1.0f;
}

#endif
