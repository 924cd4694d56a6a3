/* Requests of lanes in a queue. A decoder's pass is formed in the order in which they came. */
#include "speech/transcribe/meeting.h"

#include <pthread.h>

#include "base/mem.h"

enum kind { CALL, USE, DECODE };

struct request {
    enum kind kind;
    ak_meeting_fn *fn;
    void *user;
    struct ak_meeting_pass *pass; /* DECODE */
    struct ak_error *error;
    ak_status status;
    bool prepared, done;
    size_t first; /* index of its first token in the pass */
    pthread_cond_t answered;
    struct request *next;
};

struct ak_meeting {
    struct ak_session *s;
    bool threaded;
    struct akunu_batch_token *batch; /* [session's batch] */
    pthread_mutex_t mutex;
    pthread_cond_t changed;   /* for the thread that serves */
    struct request *waiting;  /* oldest first */
    size_t n_waiting;         /* of them, those that use the session */
    size_t n_joined, n_ended; /* lanes */
};

ak_status ak_meeting_new(struct ak_session *s, bool threaded, struct ak_meeting **out,
                         struct ak_error *error)
{
    struct ak_meeting *m = ak_alloc(1, sizeof *m);
    *out = NULL;
    if (!m)
        return ak_fail_memory(error, "a meeting", sizeof *m);
    *m = (struct ak_meeting){ .s = s,
                              .threaded = threaded,
                              .batch = ak_alloc(s->batch, sizeof *m->batch) };
    if (!m->batch) {
        ak_free(m);
        return ak_fail_memory(error, "a batch", s->batch * sizeof *m->batch);
    }
    pthread_mutex_init(&m->mutex, NULL);
    pthread_cond_init(&m->changed, NULL);
    *out = m;
    return AKUNU_OK;
}

void ak_meeting_free(struct ak_meeting *m)
{
    if (!m)
        return;
    pthread_cond_destroy(&m->changed);
    pthread_mutex_destroy(&m->mutex);
    ak_free(m->batch);
    ak_free(m);
}

/* ---- Passes ------------------------------------------------------------- */
static void take_rows(const struct ak_meeting *m, const struct ak_meeting_pass *pass, size_t first)
{
    for (size_t i = 0; i < pass->n; i++)
        pass->rows[i] = pass->tokens[i].logits ? ak_session_logits(m->s, first + i) : NULL;
}

/* Runs a pass that the lane has for itself. */
static ak_status decode_alone(struct ak_meeting *m, struct ak_meeting_pass *pass,
                              struct ak_error *error)
{
    AK_TRY(pass->prepare(pass->user, error));
    AK_TRY(ak_session_decode(m->s, pass->tokens, pass->n, error));
    take_rows(m, pass, 0);
    return AKUNU_OK;
}

static ak_status prepare_pass(struct request *r, size_t n_max)
{
    if (r->prepared)
        return AKUNU_OK;
    r->prepared = true;
    r->status = r->pass->prepare(r->pass->user, r->error);
    if (r->status == AKUNU_OK && r->pass->n > n_max)
        r->status =
            ak_fail(r->error, AKUNU_ERROR_ARGUMENT,
                    "%zu tokens at once; a pass of the session takes %zu", r->pass->n, n_max);
    return r->status;
}

/* Runs the requests of one pass. Those that failed, or found room in it, are done. */
static void decode_together(struct ak_meeting *m)
{
    struct ak_error error = { 0 };
    size_t n = 0;
    for (struct request *r = m->waiting; r; r = r->next) {
        if (prepare_pass(r, m->s->batch) != AKUNU_OK) {
            r->done = true;
            continue;
        }
        if (r->pass->n > m->s->batch - n)
            break;
        r->first = n;
        for (size_t i = 0; i < r->pass->n; i++)
            m->batch[n++] = r->pass->tokens[i];
        r->done = true;
    }
    ak_status status = n > 0 ? ak_session_decode(m->s, m->batch, n, &error) : AKUNU_OK;
    for (struct request *r = m->waiting; r; r = r->next) {
        if (!r->done || r->status != AKUNU_OK)
            continue;
        r->status = status;
        if (status == AKUNU_OK)
            take_rows(m, r->pass, r->first);
        else
            *r->error = error;
    }
}

/* ---- Requests ----------------------------------------------------------- */
static void lock(struct ak_meeting *m)
{
    if (m->threaded)
        pthread_mutex_lock(&m->mutex);
}

static void unlock(struct ak_meeting *m)
{
    if (!m->threaded)
        return;
    pthread_cond_signal(&m->changed);
    pthread_mutex_unlock(&m->mutex);
}

void ak_meeting_join(struct ak_meeting *m)
{
    lock(m);
    m->n_joined++;
    unlock(m);
}

void ak_meeting_leave(struct ak_meeting *m)
{
    lock(m);
    m->n_joined--;
    unlock(m);
}

void ak_meeting_end(struct ak_meeting *m)
{
    lock(m);
    m->n_ended++;
    unlock(m);
}

static ak_status ask(struct ak_meeting *m, struct request *r)
{
    pthread_cond_init(&r->answered, NULL);
    pthread_mutex_lock(&m->mutex);
    struct request **at = &m->waiting;
    while (*at)
        at = &(*at)->next;
    *at = r;
    m->n_waiting += r->kind != CALL;
    pthread_cond_signal(&m->changed);
    while (!r->done)
        pthread_cond_wait(&r->answered, &m->mutex);
    pthread_mutex_unlock(&m->mutex);
    pthread_cond_destroy(&r->answered);
    return r->status;
}

ak_status ak_meeting_call(struct ak_meeting *m, ak_meeting_fn *fn, void *user,
                          struct ak_error *error)
{
    struct request r = { .kind = CALL, .fn = fn, .user = user, .error = error };
    return m->threaded ? ask(m, &r) : fn(user, error);
}

ak_status ak_meeting_use(struct ak_meeting *m, ak_meeting_fn *fn, void *user,
                         struct ak_error *error)
{
    struct request r = { .kind = USE, .fn = fn, .user = user, .error = error };
    return m->threaded ? ask(m, &r) : fn(user, error);
}

ak_status ak_meeting_decode(struct ak_meeting *m, struct ak_meeting_pass *pass,
                            struct ak_error *error)
{
    struct request r = { .kind = DECODE, .pass = pass, .error = error };
    return m->threaded ? ask(m, &r) : decode_alone(m, pass, error);
}

/* ---- Serving ------------------------------------------------------------ */
static struct request *find_request(const struct ak_meeting *m, enum kind kind)
{
    struct request *r = m->waiting;
    while (r && r->kind != kind)
        r = r->next;
    return r;
}

/* What can run now. NULL: a pass of the decoder can, if all lanes wait. */
static struct request *find_next(const struct ak_meeting *m)
{
    struct request *call = find_request(m, CALL);
    return call || m->n_waiting < m->n_joined ? call : find_request(m, USE);
}

/* Hands the requests that are done back to their lanes. A lane may be gone right after. */
static void answer_requests(struct ak_meeting *m)
{
    for (struct request **at = &m->waiting; *at;) {
        struct request *r = *at;
        if (!r->done) {
            at = &r->next;
            continue;
        }
        *at = r->next;
        m->n_waiting -= r->kind != CALL;
        pthread_cond_signal(&r->answered);
    }
}

void ak_meeting_serve(struct ak_meeting *m, size_t n)
{
    pthread_mutex_lock(&m->mutex);
    while (m->n_ended < n) {
        struct request *r = find_next(m);
        if (!r && (!m->waiting || m->n_waiting < m->n_joined)) {
            pthread_cond_wait(&m->changed, &m->mutex);
            continue;
        }
        if (r) {
            pthread_mutex_unlock(&m->mutex);
            r->status = r->fn(r->user, r->error);
            pthread_mutex_lock(&m->mutex);
            r->done = true;
        } else {
            decode_together(m); /* lanes that have not joined wait meanwhile */
        }
        answer_requests(m);
    }
    pthread_mutex_unlock(&m->mutex);
}
