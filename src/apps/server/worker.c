/* A thread that handles requests with large bodies, so that reading, rendering and tokenizing them
 * delays no others. It holds the server's lock, as the thread of http_run does, but for such work:
 * see server_unlock. */
#include "apps/server/server.h"

#include <stdlib.h>

enum { SMALL_BYTES = 64 << 10 };

struct server_task {
    struct server_task *next;
    struct http_exchange *x;
};

static _Thread_local bool is_worker;

/* A thread that takes the lock twice, or gives up one that it does not hold, would corrupt what
 * others work on, or wait for ever. */
void server_init_lock(struct server *s)
{
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&s->worker.lock, &kind);
    pthread_mutexattr_destroy(&kind);
}

void server_unlock(struct server *s)
{
    if (is_worker && pthread_mutex_unlock(&s->worker.lock) != 0)
        abort();
}

void server_lock(struct server *s)
{
    if (is_worker && pthread_mutex_lock(&s->worker.lock) != 0)
        abort();
}

static struct server_task *wait_for_task(struct server *s)
{
    while (!s->worker.tasks && !s->worker.stops)
        pthread_cond_wait(&s->worker.has_task, &s->worker.lock);
    struct server_task *task = s->worker.stops ? NULL : s->worker.tasks;
    if (task)
        s->worker.tasks = task->next;
    return task;
}

static void *run_worker(void *user)
{
    struct server *s = user;
    is_worker = true;
    pthread_mutex_lock(&s->worker.lock);
    for (struct server_task *task; (task = wait_for_task(s)) != NULL;) {
        s->worker.is_busy = true;
        if (!http_client_is_gone(task->x))
            server_ask_model(s, task->x);
        s->worker.is_busy = false;
        http_release(task->x);
        free(task);
    }
    pthread_mutex_unlock(&s->worker.lock);
    return NULL;
}

/* Bodies that are read at once share what --memory leaves for the values of one. */
static bool can_be_handled_here(const struct server *s, struct http_exchange *x)
{
    size_t n;
    http_body(x, &n);
    return n <= SMALL_BYTES && !(s->worker.is_busy && s->options->memory > 0);
}

void server_handle(struct server *s, struct http_exchange *x)
{
    if (can_be_handled_here(s, x)) {
        server_ask_model(s, x);
        return;
    }
    struct server_task *task = malloc(sizeof *task), **last = &s->worker.tasks;
    s->worker.runs = s->worker.runs || pthread_create(&s->worker.thread, NULL, run_worker, s) == 0;
    if (!task || !s->worker.runs) {
        free(task);
        server_fail_memory(x);
        return;
    }
    *task = (struct server_task){ NULL, x };
    while (*last)
        last = &(*last)->next;
    *last = task;
    http_hold(x);
    pthread_cond_signal(&s->worker.has_task);
}

void server_stop_worker(struct server *s)
{
    if (s->worker.runs) {
        pthread_mutex_lock(&s->worker.lock);
        s->worker.stops = true;
        pthread_cond_signal(&s->worker.has_task);
        pthread_mutex_unlock(&s->worker.lock);
        pthread_join(s->worker.thread, NULL);
    }
    while (s->worker.tasks) {
        struct server_task *next = s->worker.tasks->next;
        http_release(s->worker.tasks->x);
        free(s->worker.tasks);
        s->worker.tasks = next;
    }
}
