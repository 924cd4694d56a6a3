/* Thread pool: phases, spinning and sleeping, pinning. */
#include "base/thread.h"

#include <assert.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/chip.h"
#include "base/mem.h"
#include "base/refs.h"
#include "base/system.h"

/* A pool counts phases. Thread 0 opens a phase by storing its number in `opened`; each worker
 * closes it by storing the number in its own `closed`. The start of a region and the release of a
 * barrier open a phase; the end of a region and the arrival at a barrier close one. No thread can
 * be a whole phase ahead, so waiting for equality suffices and the numbers may wrap.
 *
 * Each number that threads wait for has its own cache line and a single writer. */
struct signal {
    _Alignas(AK_CACHE_LINE) _Atomic uint32_t value;
    _Atomic uint32_t sleepers;
};

/* Spin limit before sleeping, in pauses. A success doubles it and a sleep halves it, so that
 * threads stop spinning while other work has the CPUs. Every FRESH_START sleeps it is reset. */
struct backoff {
    unsigned spins, sleeps;
};

/* Limits in pauses, which last 10 to 70 ns, depending on the CPU: measured once. */
static struct {
    unsigned first, min, max;
} spin_limits;

struct worker {
    struct signal closed;
    uint32_t phase; /* current phase of this thread; only it uses this and `backoff` */
    struct backoff backoff;
    struct ak_pool *pool;
    unsigned thread;
    pthread_t handle;
};

struct ak_pool {
    struct signal opened;
    struct ak_refs refs;
    bool is_shared;
    pthread_mutex_t lock; /* held while a region of a shared pool runs */
    uint32_t phase;
    ak_task *task; /* NULL: the workers return */
    void *context;
    unsigned n_threads;
    unsigned n_started;     /* workers started; fewer than n_threads − 1 if creation failed */
    struct backoff backoff; /* of thread 0 */
    struct worker *workers; /* [n_threads]; element 0 is unused */
};

enum { MAX_THREADS = 4096, FRESH_START = 32, TIMED_PAUSES = 256 };

/* Spinning, in seconds. A sleep and a wake take 50 to 100 µs on virtual machines
 * (bench/notes/threads.md, "A higher spin limit"). */
static const double spin_first = 80e-6, spin_min = 1e-6, spin_max = 320e-6;

static inline void pause_cpu(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory"); /* yield does nothing on most cores */
#endif
}

static unsigned to_pauses(double seconds, double pause)
{
    double n = seconds / pause;
    return n < 8.0 ? 8 : n > 65536.0 ? 65536 : (unsigned)n;
}

/* The fastest of a few runs: the thread may have been interrupted. */
static void measure_pause(void)
{
    double pause = 1.0;
    for (int run = 0; run < 4; run++) {
        double start = ak_seconds();
        for (int i = 0; i < TIMED_PAUSES; i++)
            pause_cpu();
        double seconds = (ak_seconds() - start) / TIMED_PAUSES;
        pause = seconds < pause ? seconds : pause;
    }
    spin_limits.first = to_pauses(spin_first, pause);
    spin_limits.min = to_pauses(spin_min, pause);
    spin_limits.max = to_pauses(spin_max, pause);
}

/* Stores `value`, then loads `sleepers`; wait_for adds to `sleepers`, then loads `value`. All four
 * are sequentially consistent, so at least one side sees the other: no wakeup is lost. */
static void set_signal(struct signal *s, uint32_t value)
{
    atomic_store(&s->value, value);
    if (atomic_load(&s->sleepers) != 0)
        syscall(SYS_futex, &s->value, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

static void wait_for(struct signal *s, uint32_t value, struct backoff *backoff)
{
    for (unsigned i = 0; i < backoff->spins; i++) {
        if (atomic_load_explicit(&s->value, memory_order_acquire) == value) {
            backoff->spins =
                backoff->spins < spin_limits.max / 2 ? backoff->spins * 2 : spin_limits.max;
            return;
        }
        pause_cpu();
    }
    backoff->spins = backoff->spins > spin_limits.min * 2 ? backoff->spins / 2 : spin_limits.min;
    if (++backoff->sleeps % FRESH_START == 0)
        backoff->spins = spin_limits.first;
    atomic_fetch_add(&s->sleepers, 1);
    for (uint32_t found; (found = atomic_load(&s->value)) != value;)
        syscall(SYS_futex, &s->value, FUTEX_WAIT_PRIVATE, found, NULL, NULL, 0);
    atomic_fetch_sub(&s->sleepers, 1);
}

static void open_phase(struct ak_pool *pool)
{
    set_signal(&pool->opened, ++pool->phase);
}

static void wait_until_closed(struct ak_pool *pool)
{
    for (unsigned i = 1; i <= pool->n_started; i++)
        wait_for(&pool->workers[i].closed, pool->phase, &pool->backoff);
}

static void close_phase_and_wait(struct worker *w)
{
    set_signal(&w->closed, w->phase);
    wait_for(&w->pool->opened, ++w->phase, &w->backoff);
}

static void *run_worker(void *argument)
{
    struct worker *w = argument;
    for (;;) {
        close_phase_and_wait(w);
        if (!w->pool->task)
            return NULL;
        w->pool->task(w->pool->context, w->thread);
    }
}

/* Workers block all signals: the host's own threads handle them. */
static ak_status start_workers(struct ak_pool *pool, struct ak_error *error)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int code = 0;
    for (unsigned i = 1; i < pool->n_threads && code == 0; i++) {
        struct worker *w = &pool->workers[i];
        w->pool = pool;
        w->thread = i;
        w->backoff.spins = spin_limits.first;
        code = pthread_create(&w->handle, NULL, run_worker, w);
        if (code == 0)
            pool->n_started = i;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (code == 0)
        return AKUNU_OK;
    /* EAGAIN: no memory for its stack, or a limit on threads */
    return ak_fail(error, code == EAGAIN ? AKUNU_ERROR_MEMORY : AKUNU_ERROR_SYSTEM,
                   "thread %u of %u cannot be started: %s", pool->n_started + 2, pool->n_threads,
                   strerror(code));
}

ak_status ak_pool_create(unsigned n_threads, struct ak_pool **out, struct ak_error *error)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    *out = NULL;
    if (n_threads < 1 || n_threads > MAX_THREADS)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "%u threads asked for; 1 to %d are possible",
                       n_threads, (int)MAX_THREADS);
    struct ak_pool *pool = ak_alloc_aligned(sizeof *pool);
    if (!pool)
        return ak_fail_memory(error, "a thread pool", sizeof *pool);
    pthread_once(&once, measure_pause);
    pthread_mutex_init(&pool->lock, NULL);
    pool->n_threads = n_threads;
    pool->backoff.spins = spin_limits.first;

    ak_status status;
    pool->workers = ak_alloc_aligned(n_threads * sizeof *pool->workers);
    if (!pool->workers)
        status = ak_fail_memory(error, "a thread pool", n_threads * sizeof *pool->workers);
    else
        status = start_workers(pool, error);
    if (status != AKUNU_OK) {
        ak_pool_free(pool);
        return status;
    }
    *out = pool;
    return AKUNU_OK;
}

struct ak_pool *ak_pool_ref(struct ak_pool *pool)
{
    ak_refs_take(&pool->refs);
    return pool;
}

void ak_pool_share(struct ak_pool *pool)
{
    pool->is_shared = true;
}

void ak_pool_free(struct ak_pool *pool)
{
    if (!pool || !ak_refs_drop(&pool->refs))
        return;
    pool->task = NULL;
    if (pool->n_started > 0)
        open_phase(pool);
    for (unsigned i = 1; i <= pool->n_started; i++)
        pthread_join(pool->workers[i].handle, NULL);
    pthread_mutex_destroy(&pool->lock);
    ak_free(pool->workers);
    ak_free(pool);
}

ak_status ak_pool_pin(struct ak_pool *pool, const struct ak_cpus *cpus, struct ak_error *error)
{
    for (unsigned i = 1; i < pool->n_threads; i++) {
        unsigned cpu = cpus->cpu[i % cpus->n];
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(cpu, &set);
        int code = pthread_setaffinity_np(pool->workers[i].handle, sizeof set, &set);
        if (code != 0)
            return ak_fail(error, AKUNU_ERROR_ARGUMENT, "thread %u cannot run on CPU %u: %s", i,
                           cpu, code == EINVAL ? "this process has no such CPU" : strerror(code));
    }
    return AKUNU_OK;
}

void ak_pool_pin_numa(struct ak_pool *pool)
{
    struct ak_numa_nodes nodes;
    ak_numa_detect(&nodes);
    for (unsigned i = 1; i < pool->n_threads && nodes.n > 1; i++) {
        const cpu_set_t *cpus = &nodes.cpus[i * nodes.n / pool->n_threads];
        /* ignored: on failure the system places the thread */
        (void)pthread_setaffinity_np(pool->workers[i].handle, sizeof *cpus, cpus);
    }
}

unsigned ak_pool_threads(const struct ak_pool *pool)
{
    return pool->n_threads;
}

void ak_pool_run(struct ak_pool *pool, ak_task *task, void *context)
{
    bool locked = pool->is_shared;
    if (locked)
        pthread_mutex_lock(&pool->lock);
    if (pool->n_threads == 1) {
        task(context, 0);
    } else {
        pool->task = task;
        pool->context = context;
        open_phase(pool);
        task(context, 0);
        wait_until_closed(pool);
    }
    if (locked)
        pthread_mutex_unlock(&pool->lock);
}

void ak_pool_barrier(struct ak_pool *pool, unsigned thread)
{
    assert(thread < pool->n_threads);
    if (pool->n_threads == 1)
        return;
    if (thread > 0) {
        close_phase_and_wait(&pool->workers[thread]);
        return;
    }
    wait_until_closed(pool);
    open_phase(pool);
}

void ak_chunk_range(size_t count, unsigned n, unsigned i, size_t *begin, size_t *end)
{
    size_t chunk = count / n, rest = count % n;
    *begin = chunk * i + (i < rest ? i : rest);
    *end = *begin + chunk + (i < rest ? 1 : 0);
}
