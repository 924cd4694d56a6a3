/* A pool of threads for short parallel regions.
 *
 * The calling thread is thread 0 of every region. Between regions and at
 * barriers a thread spins for a moment and then sleeps on a futex, so that an
 * oversubscribed machine makes progress. One region runs at a time; a pool
 * belongs to one calling thread.
 */
#ifndef AK_BASE_THREAD_H
#define AK_BASE_THREAD_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct ak_pool;

/* What every thread of a region runs; `thread` is 0 … n_threads-1. */
typedef void ak_task(void *context, unsigned thread);

/* n_threads ≥ 1. The caller owns *out after success. */
ak_status ak_pool_create(unsigned n_threads, struct ak_pool **out, struct ak_error *error);
void ak_pool_free(struct ak_pool *pool); /* NULL allowed */
unsigned ak_pool_threads(const struct ak_pool *pool);

/* Runs `task` on all threads and returns when the last one has returned. */
void ak_pool_run(struct ak_pool *pool, ak_task *task, void *context);

/* Called by every thread of a running region: returns when all have arrived;
 * what each wrote before is then visible to all. */
void ak_pool_barrier(struct ak_pool *pool, unsigned thread);

/* CPUs to pin threads to. */
enum { AK_CPUS_MAX = 1024 };
struct ak_cpus {
    unsigned n;
    uint16_t cpu[AK_CPUS_MAX];
};

/* Reads a list as "0-3,8,10-11"; each CPU once. */
ak_status ak_cpus_parse(const char *text, struct ak_cpus *out, struct ak_error *error);

/* Pins thread i of the pool, 1 and up, to the i-th CPU, round again where there are
 * fewer. Thread 0 is the caller's to place. */
ak_status ak_pool_pin(struct ak_pool *pool, const struct ak_cpus *cpus, struct ak_error *error);

/* On a machine with several memory nodes, keeps thread i, 1 and up, on the CPUs of node
 * i · nodes / threads, so that the pages which it touches first stay local to it. */
void ak_pool_pin_numa(struct ak_pool *pool);

/* The physical cores that this process may run on; at least 1. */
unsigned ak_physical_cores(void);
/* Their hardware threads; at least 1. */
unsigned ak_hardware_threads(void);

/* Thread `i` of `n` gets items [*begin, *end) of `count`, the first ones one
 * more where it does not divide. */
void ak_chunk_range(size_t count, unsigned n, unsigned i, size_t *begin, size_t *end);

#endif
