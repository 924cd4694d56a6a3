/* A thread that handles requests with large bodies, so that reading, rendering and tokenizing them
 * delays no others. It holds the server's lock only to take a task, to find the model, and to
 * commit what was prepared. */
#include "apps/server/server.h"

#include <stdlib.h>

enum { SMALL_BYTES = 64 << 10 };

struct server_task {
    struct server_task *next;
    struct http_exchange *x;
};

/* The exchange of the next task whose client is still there, which makes the worker busy; NULL: the
 * thread stops. Without the lock. */
static struct http_exchange *take_task(struct server *s)
{
    struct http_exchange *x = NULL;
    pthread_mutex_lock(&s->lock);
    while (!x && !s->worker.stops) {
        struct server_task *task = s->worker.tasks;
        if (!task) {
            pthread_cond_wait(&s->worker.has_task, &s->lock);
            continue;
        }
        s->worker.tasks = task->next;
        if (http_client_is_gone(task->x))
            http_release(task->x);
        else
            x = task->x;
        free(task);
    }
    s->worker.is_busy = x != NULL;
    pthread_mutex_unlock(&s->lock);
    return x;
}

/* An exchange that waits for its model, or whose request was submitted, is released before another
 * thread can take the lock. */
static void *run_worker(void *user)
{
    struct server *s = user;
    struct server_request r;
    for (struct http_exchange *x; (x = take_task(s)) != NULL;) {
        bool is_read = server_read_request(s, x, &r);
        pthread_mutex_lock(&s->lock);
        if (is_read && server_use_model(&r)) {
            pthread_mutex_unlock(&s->lock);
            server_prepare_request(&r);
            pthread_mutex_lock(&s->lock);
        }
        server_end_request(&r);
        s->worker.is_busy = false;
        http_release(x);
        pthread_mutex_unlock(&s->lock);
    }
    return NULL;
}

/* Bodies that are read at once share what --memory leaves for the values of one. */
static bool can_be_handled_here(const struct server *s, struct http_exchange *x)
{
    size_t n;
    http_body(x, &n);
    return n <= SMALL_BYTES && !(s->worker.is_busy && s->options->model.memory > 0);
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
        pthread_mutex_lock(&s->lock);
        s->worker.stops = true;
        pthread_cond_signal(&s->worker.has_task);
        pthread_mutex_unlock(&s->lock);
        pthread_join(s->worker.thread, NULL);
    }
    while (s->worker.tasks) {
        struct server_task *next = s->worker.tasks->next;
        http_release(s->worker.tasks->x);
        free(s->worker.tasks);
        s->worker.tasks = next;
    }
}
