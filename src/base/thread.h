/* Thread pool for short parallel regions: passes of the CPU backend, packing, quantizing. Also
 * lists of CPUs to pin its threads to, and the number of cores.
 *
 * The calling thread is thread 0 of every region. Between regions and at barriers a thread spins
 * for a moment, then sleeps on a futex, so that an oversubscribed machine makes progress. One
 * region runs at a time; a pool belongs to one calling thread unless it is shared. */
#ifndef AK_BASE_THREAD_H
#define AK_BASE_THREAD_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct ak_pool;

/* Every thread of a region runs the task; `thread` is 0 … n_threads − 1. */
typedef void ak_task(void *context, unsigned thread);

/* n_threads ≥ 1. The caller owns *out after success. */
ak_status ak_pool_create(unsigned n_threads, struct ak_pool **out, struct ak_error *error);
/* One more owner of the pool, who frees it too. */
struct ak_pool *ak_pool_ref(struct ak_pool *pool);
void ak_pool_free(struct ak_pool *pool); /* NULL allowed */

/* From now on several threads may run regions of the pool: one waits for the other. */
void ak_pool_share(struct ak_pool *pool);

/* The pool behind a public handle, which is the pool itself. */
static inline struct ak_pool *ak_pool_from_handle(struct akunu_pool *handle)
{
    return (struct ak_pool *)handle;
}
unsigned ak_pool_threads(const struct ak_pool *pool);

/* Runs `task` on all threads; returns when all have returned. */
void ak_pool_run(struct ak_pool *pool, ak_task *task, void *context);

/* Called by every thread of a running region. Returns when all have arrived; all see what each
 * wrote before. */
void ak_pool_barrier(struct ak_pool *pool, unsigned thread);

/* CPUs to pin threads to. */
enum { AK_CPUS_MAX = 1024 };
struct ak_cpus {
    unsigned n;
    uint16_t cpu[AK_CPUS_MAX];
};

/* Parses a list as "0-3,8,10-11". Duplicates count once. */
ak_status ak_cpus_parse(const char *text, struct ak_cpus *out, struct ak_error *error);

/* Pins thread i, 1 and up, to CPU i mod n of the list. The caller places thread 0. */
ak_status ak_pool_pin(struct ak_pool *pool, const struct ak_cpus *cpus, struct ak_error *error);

/* With several NUMA nodes, pins thread i, 1 and up, to the CPUs of node i · nodes / threads:
 * pages that the thread touches first stay local. */
void ak_pool_pin_numa(struct ak_pool *pool);

/* Physical cores that this process may run on; at least 1. */
unsigned ak_physical_cores(void);
/* Hardware threads that this process may run on; at least 1. */
unsigned ak_hardware_threads(void);

/* Chunk `i` of `n`: items [*begin, *end) of `count`. The first count mod n chunks have one more. */
void ak_chunk_range(size_t count, unsigned n, unsigned i, size_t *begin, size_t *end);

#endif
