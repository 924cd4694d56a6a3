/* The thread that encodes texts. Requests take turns: each turn runs as many of a request's texts
 * as fill a pass. */
#include "apps/server/embedder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/server/memory.h"

struct server_embedder {
    struct akunu_session *session;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* under its lock */
    struct server_encoding *waiting, *running, *done;
    size_t n_waiting;
    bool stops;
};

/* ---- Encodings ---------------------------------------------------------- */
static void leave_queue(void *self)
{
    struct server_encoding *e = self;
    e->x = NULL;
    e->is_cancelled = true;
}

struct server_encoding *server_encoding_new(struct server_model *m, struct http_exchange *x,
                                            size_t n, size_t width, void *own)
{
    struct server_encoding *e = calloc(1, sizeof *e);
    if (e) {
        e->texts = calloc(n + 1, sizeof *e->texts);
        e->rows = calloc(n + 1, width * sizeof *e->rows);
    }
    if (!e || !e->texts || !e->rows) {
        if (e) {
            free(e->texts);
            free(e->rows);
        }
        free(e);
        free(own);
        server_fail_memory(x);
        return NULL;
    }
    e->owner = (struct server_owner){ .leave = leave_queue };
    e->model = m;
    e->x = x;
    e->width = width;
    e->own = own;
    return e;
}

void server_encoding_add(struct server_encoding *e, akunu_token *ids, size_t n, size_t second)
{
    e->texts[e->n++] = (struct akunu_pair){ .ids = ids, .n = n, .second = second };
    e->n_tokens += n;
}

void server_encoding_free(struct server_encoding *e)
{
    for (size_t i = 0; i < e->n; i++)
        free((void *)(uintptr_t)e->texts[i].ids);
    free(e->texts);
    free(e->rows);
    if (e->release)
        e->release(e->own);
    free(e->own);
    free(e);
}

/* ---- Turns -------------------------------------------------------------- */
enum { TURN_MAX = 256 };

static bool is_cancelled(void *user)
{
    const struct server_encoding *e = user;
    return e->is_cancelled;
}

/* The texts of the next turn: at least one. */
static size_t count_turn(const struct server_embedder *m, const struct server_encoding *e)
{
    size_t n = 0, n_tokens = 0, batch = akunu_session_batch(m->session);
    while (n < TURN_MAX && e->n_done + n < e->n) {
        n_tokens += e->texts[e->n_done + n].n;
        if (n > 0 && n_tokens > batch)
            break;
        n++;
    }
    return n;
}

size_t server_embedder_max_tokens(const struct server_model *m)
{
    const struct akunu_session *session = m->embedder->session;
    uint32_t context = akunu_session_context(session), batch = akunu_session_batch(session);
    return m->loaded.info.encoder && batch < context ? batch : context;
}

/* Answers if a text cannot be encoded; true: all can. */
static bool check_texts(const struct server_embedder *m, const struct server_encoding *e)
{
    size_t max = server_embedder_max_tokens(e->model);
    bool in_pass = max < akunu_session_context(m->session);
    char where[64];
    for (size_t i = 0; i < e->n; i++) {
        size_t n = e->texts[i].n;
        snprintf(where, sizeof where, e->is_list ? "%s[%zu]" : "%s", e->name, i);
        if (n > max)
            server_fail(e->x, 400, e->name, "context_length_exceeded",
                        "%s is too long: it has %zu tokens, but the %s holds %zu", where, n,
                        in_pass ? "pass" : "context", max);
        else if (n <= e->n_prompt)
            server_fail(e->x, 400, e->name, NULL, "%s has no tokens%s", where,
                        n > 0 ? " behind its prompt" : "");
        if (n > max || n <= e->n_prompt)
            return false;
    }
    return true;
}

static enum akunu_status embed(struct server_embedder *m, struct server_encoding *e, size_t n,
                               float *out)
{
    struct akunu_embedding_params embedding = e->model->options->embedding;
    struct akunu_ids texts[TURN_MAX];
    embedding.normalize = AKUNU_NORMALIZE_L2; /* as OpenAI's are */
    embedding.width = e->width;
    embedding.n_prompt = e->n_prompt;
    embedding.cancel = is_cancelled;
    embedding.user = e;
    for (size_t i = 0; i < n; i++)
        texts[i] = (struct akunu_ids){ .ids = e->texts[e->n_done + i].ids,
                                       .n = e->texts[e->n_done + i].n };
    return akunu_session_embed(m->session, texts, n, &embedding, out);
}

static void run_turn(struct server_embedder *m, struct server_encoding *e)
{
    size_t n = count_turn(m, e);
    float *out = e->rows + e->n_done * e->width;
    akunu_session_number_texts(m->session, e->n_done);
    e->status = e->scores ?
                    akunu_session_score(m->session, e->texts + e->n_done, n, is_cancelled, e, out) :
                    embed(m, e, n, out);
    e->n_done += n;
    if (e->status != AKUNU_OK)
        snprintf(e->message, sizeof e->message, "%s", akunu_last_error());
}

static void append_encoding(struct server_encoding **list, struct server_encoding *e)
{
    while (*list)
        list = &(*list)->next;
    e->next = NULL;
    *list = e;
}

/* The next one; NULL: the thread stops. */
static struct server_encoding *wait_for_turn(struct server_embedder *m)
{
    pthread_mutex_lock(&m->lock);
    while (!m->waiting && !m->stops)
        pthread_cond_wait(&m->changed, &m->lock);
    struct server_encoding *e = m->stops ? NULL : m->waiting;
    if (e) {
        m->waiting = e->next;
        m->n_waiting--;
    }
    m->running = e;
    pthread_mutex_unlock(&m->lock);
    return e;
}

/* Whether the encoding is complete. */
static bool end_turn(struct server_embedder *m, struct server_encoding *e)
{
    bool ended = e->status != AKUNU_OK || e->n_done == e->n;
    pthread_mutex_lock(&m->lock);
    append_encoding(ended ? &m->done : &m->waiting, e);
    m->n_waiting += !ended;
    m->running = NULL;
    pthread_mutex_unlock(&m->lock);
    return ended;
}

static void *run_thread(void *user)
{
    struct server_model *m = user;
    for (struct server_encoding *e; (e = wait_for_turn(m->embedder)) != NULL;) {
        run_turn(m->embedder, e);
        if (end_turn(m->embedder, e))
            http_wake(m->server->http);
    }
    return NULL;
}

static void queue_encoding(struct server_model *model, struct http_exchange *x, void *own)
{
    struct server_embedder *m = model->embedder;
    struct server_encoding *e = own;
    size_t most = (size_t)model->options->server.queue;
    pthread_mutex_lock(&m->lock);
    bool fits = m->n_waiting < most;
    if (fits) {
        model->n_users++;
        http_set_data(x, &e->owner);
        append_encoding(&m->waiting, e);
        m->n_waiting++;
        pthread_cond_signal(&m->changed);
    }
    pthread_mutex_unlock(&m->lock);
    if (fits)
        return;
    server_encoding_free(e);
    server_fail(x, 429, NULL, NULL, "%zu requests wait already (--queue)", most);
}

struct server_commit server_encoding_commit(struct server_encoding *e)
{
    if (check_texts(e->model->embedder, e))
        return (struct server_commit){ queue_encoding, e };
    server_encoding_free(e);
    return server_answered;
}

/* ---- The thread --------------------------------------------------------- */
bool server_open_embedder(struct server_model *m)
{
    struct akunu_session_params params = m->options->session;
    struct server_embedder *e = calloc(1, sizeof *e);
    if (!e)
        return false;
    params.max_sequences = 0;
    params.pool = m->server->pool;
    params.n_threads = 0;
    params.cpus = NULL;
    if (!m->loaded.info.encoder)
        params.max_sequences = 8; /* short texts share a pass */
    server_memory_limit_embedder(m, &params);
    e->session = akunu_session_new(m->loaded.model, &params);
    if (!e->session) {
        free(e);
        return false;
    }
    pthread_mutex_init(&e->lock, NULL);
    pthread_cond_init(&e->changed, NULL);
    m->embedder = e;
    if (pthread_create(&e->thread, NULL, run_thread, m) == 0)
        return true;
    akunu_session_free(e->session);
    free(e);
    m->embedder = NULL;
    return false;
}

uint64_t server_embedder_bytes(const struct server_model *m)
{
    struct akunu_memory r = { 0 };
    if (!m->embedder ||
        akunu_model_get_memory(m->loaded.model, m->embedder->session, &r, sizeof r) != AKUNU_OK)
        return 0;
    return r.kv + r.scratch;
}

void server_close_embedder(struct server_model *m)
{
    struct server_embedder *e = m->embedder;
    if (!e)
        return;
    pthread_mutex_lock(&e->lock);
    e->stops = true;
    if (e->running)
        e->running->is_cancelled = true;
    pthread_cond_signal(&e->changed);
    pthread_mutex_unlock(&e->lock);
    pthread_join(e->thread, NULL);
    struct server_encoding *lists[] = { e->waiting, e->done };
    for (int i = 0; i < 2; i++)
        while (lists[i]) {
            struct server_encoding *next = lists[i]->next;
            if (lists[i]->x)
                http_set_data(lists[i]->x, NULL);
            server_encoding_free(lists[i]);
            lists[i] = next;
        }
    akunu_session_free(e->session);
    pthread_cond_destroy(&e->changed);
    pthread_mutex_destroy(&e->lock);
    free(e);
    m->embedder = NULL;
}

/* ---- Answers ------------------------------------------------------------ */
static void answer_encoding(struct server_encoding *e)
{
    bool full = e->status == AKUNU_ERROR_CONTEXT, memory = e->status == AKUNU_ERROR_MEMORY;
    http_set_data(e->x, NULL);
    http_counts(e->x)[SERVER_PROMPT] = e->n_tokens;
    if (e->status == AKUNU_OK)
        e->answer(e);
    else
        server_fail(e->x, memory ? 503 : 400, e->name, full ? "context_length_exceeded" : NULL,
                    "%s", e->message);
}

void server_take_encodings(struct server_model *m)
{
    struct server_embedder *embedder = m->embedder;
    if (!embedder)
        return;
    pthread_mutex_lock(&embedder->lock);
    struct server_encoding *e = embedder->done;
    embedder->done = NULL;
    pthread_mutex_unlock(&embedder->lock);
    while (e) {
        struct server_encoding *next = e->next;
        if (e->x)
            answer_encoding(e);
        m->n_users--;
        server_encoding_free(e);
        e = next;
    }
}
