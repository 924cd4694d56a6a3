/* A parallel loop: threads take the next index until none is left. */
#include "apps/cli/quality/parallel.h"

#include <pthread.h>
#include <stdatomic.h>

enum { THREADS_MAX = 64 };

struct loop {
    atomic_size_t next;
    size_t n;
    cli_task *task;
    void *user;
};

static void *work(void *argument)
{
    struct loop *loop = argument;
    for (;;) {
        size_t i = atomic_fetch_add_explicit(&loop->next, 1, memory_order_relaxed);
        if (i >= loop->n)
            return NULL;
        loop->task(i, loop->user);
    }
}

void cli_parallel(unsigned n_threads, size_t n, cli_task *task, void *user)
{
    struct loop loop = { .n = n, .task = task, .user = user };
    pthread_t threads[THREADS_MAX];
    unsigned n_started = 0, n_wanted = n_threads < THREADS_MAX ? n_threads : THREADS_MAX;
    while (n_started + 1 < n_wanted && n_started + 1 < n &&
           pthread_create(&threads[n_started], NULL, work, &loop) == 0)
        n_started++;
    work(&loop);
    for (unsigned i = 0; i < n_started; i++)
        pthread_join(threads[i], NULL);
}
