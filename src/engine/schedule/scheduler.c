/* Creates schedulers and their thread. What other threads ask for goes through the lock: requests
 * into the inbox, wishes into flags, which the owner takes over before each pass. */
#include "engine/schedule/internal.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/system.h"

static double system_clock(void *user)
{
    (void)user;
    return ak_seconds();
}

/* ---- Creating ----------------------------------------------------------- */
static ak_status create_session(struct ak_sched *s, struct ak_model *model,
                                const struct akunu_session_params *params, struct ak_error *error)
{
    enum { SEQUENCES_DEFAULT = AK_SKINNY_MAX };
    struct akunu_session_params own = *params;
    if (own.max_sequences == 0)
        own.max_sequences = SEQUENCES_DEFAULT;
    if (own.pool) {
        s->pool = ak_pool_ref(ak_pool_from_handle(own.pool));
    } else {
        AK_TRY(ak_session_create_pool(own.n_threads, own.cpus, &model->profile, &s->pool, error));
        own.pool = (struct akunu_pool *)s->pool;
        own.n_threads = 0;
        own.cpus = NULL;
    }
    AK_TRY(ak_session_create(model, &own, &s->session, error));
    AK_TRY(ak_session_needs_text(s->session, error));
    if (s->session->batch < own.max_sequences)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "max_sequences is %u, and a pass has at most %u tokens",
                       (unsigned)own.max_sequences, (unsigned)s->session->batch);
    return AKUNU_OK;
}

static ak_status allocate_queues(struct ak_sched *s, struct ak_error *error)
{
    s->max_running = s->session->kv.n_sequences;
    s->running = ak_alloc(s->max_running, sizeof(struct ak_sched_task *));
    s->sampling = ak_alloc(s->max_running, sizeof(struct ak_sched_task *));
    s->slots = ak_alloc(s->max_running, sizeof *s->slots);
    s->pass = ak_alloc(s->session->batch, sizeof *s->pass);
    if (!s->running || !s->sampling || !s->slots || !s->pass)
        return ak_fail_memory(error, "the scheduler", 0);
    return AKUNU_OK;
}

static void init_condition(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

ak_status ak_sched_create(struct ak_model *model, const struct akunu_session_params *params,
                          const struct ak_sched_options *options, struct ak_sched **out,
                          struct ak_error *error)
{
    struct ak_sched *s = ak_alloc(1, sizeof *s);
    if (!s)
        return ak_fail_memory(error, "the scheduler", sizeof *s);
    pthread_mutex_init(&s->lock, NULL);
    init_condition(&s->changed);
    s->options = *options;
    s->options.clock = options->clock ? options->clock : system_clock;
    s->round = 1; /* 0: those that return to the queue */
    ak_status status = create_session(s, model, params, error);
    if (status == AKUNU_OK)
        status = allocate_queues(s, error);
    if (status == AKUNU_OK)
        status = ak_sched_open_prompts(s, options->prompts, error);
    if (status != AKUNU_OK) {
        ak_sched_free(s);
        return status;
    }
    ak_sched_tree_init(&s->tree, &s->session->kv);
    s->has_tree = !options->no_prefix_cache && s->session->kv.shape.state_elems == 0;
    ak_sched_publish(s);
    *out = s;
    return AKUNU_OK;
}

/* ---- The thread --------------------------------------------------------- */
static double earliest_deadline(const struct ak_sched *s)
{
    double earliest = INFINITY;
    for (const struct ak_sched_request *r = s->requests; r; r = r->next)
        if (r->deadline > 0.0 && r->deadline < earliest)
            earliest = r->deadline;
    return earliest;
}

/* Waits for news, a deadline, or until `seconds` have passed; true: they have. */
static bool wait_for_news(struct ak_sched *s, double seconds)
{
    pthread_mutex_lock(&s->lock);
    double deadline = earliest_deadline(s) - ak_sched_now(s);
    double left = deadline < seconds ? fmax(deadline, 0.0) : seconds;
    int code = 0;
    if (left == INFINITY) {
        while (!s->has_news && !s->stops)
            pthread_cond_wait(&s->changed, &s->lock);
    } else {
        double until = ak_seconds() + left;
        struct timespec at = { .tv_sec = (time_t)until };
        at.tv_nsec = (long)((until - (double)at.tv_sec) * 1e9);
        while (!s->has_news && !s->stops && code != ETIMEDOUT)
            code = pthread_cond_timedwait(&s->changed, &s->lock, &at);
    }
    pthread_mutex_unlock(&s->lock);
    return code == ETIMEDOUT && left == seconds;
}

static bool stops(struct ak_sched *s)
{
    pthread_mutex_lock(&s->lock);
    bool stop = s->stops;
    pthread_mutex_unlock(&s->lock);
    return stop;
}

static void *run_thread(void *context)
{
    const double idle_seconds = 30.0; /* then texts are kept: a chat goes on before that */
    struct ak_sched *s = context;
    bool is_idle = false;
    while (!stops(s)) {
        if (ak_sched_step(s))
            is_idle = false;
        else if (!is_idle || !ak_sched_keep_text(s))
            is_idle = wait_for_news(s, s->has_prompts && !is_idle ? idle_seconds : INFINITY);
    }
    return NULL;
}

ak_status ak_sched_start(struct ak_sched *s, struct ak_error *error)
{
    sigset_t all, old;
    sigfillset(&all); /* signals are the host's, and for its threads */
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int code = pthread_create(&s->thread, NULL, run_thread, s);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (code != 0)
        return ak_fail(error, AKUNU_ERROR_MEMORY, "a thread cannot be started: %s", strerror(code));
    s->has_thread = true;
    return AKUNU_OK;
}

/* Ends all requests; the thread has ended. */
static void end_all(struct ak_sched *s)
{
    struct ak_error error = { 0 };
    ak_fail(&error, AKUNU_ERROR_CANCELLED, "the scheduler was freed");
    ak_sched_take_requests(s);
    while (s->n_running > 0)
        ak_sched_finish(s, s->running[s->n_running - 1], &error);
    while (s->queue)
        ak_sched_finish(s, s->queue, &error);
}

void ak_sched_free(struct ak_sched *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    s->stops = true;
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->lock);
    if (s->has_thread)
        pthread_join(s->thread, NULL);
    if (s->running && s->sampling && s->pass)
        end_all(s);
    while (s->has_prompts && ak_sched_keep_text(s))
        continue;
    ak_sched_close_prompts(s);
    ak_sched_tree_clear(&s->tree);
    ak_session_free(s->session);
    ak_pool_free(s->pool);
    ak_free(s->running);
    ak_free(s->sampling);
    ak_free(s->slots);
    ak_free(s->pass);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    ak_free(s);
}

/* ---- Other threads ------------------------------------------------------ */
/* To be called with the lock. */
static void wake_owner(struct ak_sched *s)
{
    s->has_news = true;
    pthread_cond_signal(&s->changed);
}

static ak_status add_request(struct ak_sched *s, struct ak_sched_request *r, struct ak_error *error)
{
    if (s->stops)
        return ak_fail(error, AKUNU_ERROR_CANCELLED, "the scheduler was freed");
    if (s->n_waiting >= s->options.max_waiting)
        return ak_fail(error, AKUNU_ERROR_BUSY, "%u requests wait already, as many as may",
                       (unsigned)s->n_waiting);
    r->id = ++s->last_id;
    r->next = s->requests;
    s->requests = r;
    s->n_requests++;
    s->n_waiting++;
    for (size_t i = 0; i < r->n_tasks; i++) {
        r->tasks[i].next = s->inbox;
        s->inbox = &r->tasks[i];
    }
    wake_owner(s);
    return AKUNU_OK;
}

ak_status ak_sched_submit(struct ak_sched *s, const struct akunu_request *given, uint64_t *id,
                          struct ak_error *error)
{
    struct ak_sched_request *r;
    AK_TRY(ak_sched_request_create(s, given, &r, error));
    pthread_mutex_lock(&s->lock);
    ak_status status = add_request(s, r, error);
    if (status == AKUNU_OK && id)
        *id = r->id;
    pthread_mutex_unlock(&s->lock);
    if (status != AKUNU_OK)
        ak_sched_request_free(r);
    return status;
}

/* NULL: it has ended. To be called with the lock. */
static struct ak_sched_request *find_request(struct ak_sched *s, uint64_t id)
{
    struct ak_sched_request *r = s->requests;
    while (r && r->id != id)
        r = r->next;
    return r;
}

void ak_sched_cancel(struct ak_sched *s, uint64_t id)
{
    pthread_mutex_lock(&s->lock);
    struct ak_sched_request *r = find_request(s, id);
    if (r) {
        r->wants_cancel = true;
        wake_owner(s);
    }
    pthread_mutex_unlock(&s->lock);
}

void ak_sched_pause(struct ak_sched *s, uint64_t id, bool paused)
{
    pthread_mutex_lock(&s->lock);
    struct ak_sched_request *r = find_request(s, id);
    if (r) {
        r->wants_pause = paused;
        wake_owner(s);
    }
    pthread_mutex_unlock(&s->lock);
}

void ak_sched_get_stats(struct ak_sched *s, struct akunu_scheduler_stats *out)
{
    pthread_mutex_lock(&s->lock);
    *out = s->published;
    out->n_waiting = s->n_waiting;
    out->n_running = s->n_requests - s->n_waiting;
    pthread_mutex_unlock(&s->lock);
}

bool ak_sched_slot_at(struct ak_sched *s, size_t i, struct akunu_scheduler_slot *out)
{
    if (i >= s->max_running)
        return false;
    pthread_mutex_lock(&s->lock);
    *out = s->slots[i];
    pthread_mutex_unlock(&s->lock);
    return true;
}

const struct ak_session *ak_sched_session(const struct ak_sched *s)
{
    return s->session;
}

/* ---- The owner ---------------------------------------------------------- */
void ak_sched_take_requests(struct ak_sched *s)
{
    struct ak_sched_task *oldest = NULL;
    pthread_mutex_lock(&s->lock);
    while (s->inbox) {
        struct ak_sched_task *t = s->inbox;
        s->inbox = t->next;
        t->next = oldest;
        oldest = t;
    }
    for (struct ak_sched_request *r = s->requests; r; r = r->next) {
        r->is_cancelled = r->wants_cancel;
        r->is_paused = r->wants_pause;
    }
    s->has_news = false;
    pthread_mutex_unlock(&s->lock);
    while (oldest) {
        struct ak_sched_task *next = oldest->next;
        ak_sched_queue_add(s, oldest);
        oldest = next;
    }
}

void ak_sched_count_start(struct ak_sched *s, struct ak_sched_request *r)
{
    r->has_started = true;
    pthread_mutex_lock(&s->lock);
    s->n_waiting--;
    pthread_mutex_unlock(&s->lock);
}

void ak_sched_forget(struct ak_sched *s, struct ak_sched_request *r)
{
    pthread_mutex_lock(&s->lock);
    struct ak_sched_request **link = &s->requests;
    while (*link != r)
        link = &(*link)->next;
    *link = r->next;
    s->n_requests--;
    s->n_waiting -= !r->has_started;
    pthread_mutex_unlock(&s->lock);
    ak_sched_request_free(r);
}

static void publish_counts(struct ak_sched *s)
{
    pthread_mutex_lock(&s->lock);
    s->published = s->stats;
    pthread_mutex_unlock(&s->lock);
}

/* Under the lock. */
static void publish_slots(struct ak_sched *s)
{
    memset(s->slots, 0, s->max_running * sizeof *s->slots);
    for (uint32_t i = 0; i < s->n_running; i++) {
        const struct ak_sched_task *t = s->running[i];
        uint32_t n_prompt = t->request->n_prompt, length = ak_sched_sequence(s, t)->length;
        s->slots[t->sequence] = (struct akunu_scheduler_slot){
            .request = t->request->id,
            .index = t->index,
            .n_prompt = n_prompt,
            .n_cached = (uint32_t)t->result.n_kept,
            .n_done = length < n_prompt ? length : n_prompt,
            .n_generated = (uint32_t)t->result.n_generated,
        };
    }
}

void ak_sched_count_end(struct ak_sched *s, ak_status status)
{
    s->stats.n_requests++;
    s->stats.n_cancelled += status == AKUNU_ERROR_CANCELLED;
    publish_counts(s);
}

void ak_sched_publish(struct ak_sched *s)
{
    enum { EXACT_EACH = 64 }; /* passes: counting walks over the whole tree */
    const struct ak_session_kv *kv = &s->session->kv;
    s->stats.n_pages = kv->shape.n_pages;
    if (s->has_tree && (s->n_running == 0 || s->stats.n_passes % EXACT_EACH == 0))
        s->stats.n_cached_pages = ak_sched_tree_count_evictable(&s->tree);
    uint32_t n_held = kv->shape.n_pages - kv->n_free;
    if (s->stats.n_cached_pages > n_held)
        s->stats.n_cached_pages = n_held;
    s->stats.n_used_pages = n_held - s->stats.n_cached_pages;
    s->stats.page_bytes = ak_kv_page_bytes(&kv->shape);
    s->stats.session_bytes = kv->pool_bytes + ak_session_scratch_bytes(s->session);
    publish_counts(s);
    pthread_mutex_lock(&s->lock);
    publish_slots(s);
    pthread_mutex_unlock(&s->lock);
}
