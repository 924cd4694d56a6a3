/* POST /v1/embeddings. A thread of its own runs a session for them, on the threads that it shares
 * with the scheduler's session: their passes take turns. */
#include "server/embed.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output.h"
#include "server/job.h"
#include "server/memory.h"

struct embedding_job {
    struct server_owner owner; /* first: the exchange's data */
    struct embedding_job *next;
    struct server_model *model; /* has it in use */
    struct http_exchange *x;    /* NULL: the client is gone */
    struct akunu_ids *texts;    /* [n] */
    size_t n, n_tokens, width, dimensions;
    bool base64;
    float *rows; /* [n, width] */
    _Atomic bool is_cancelled;
    enum akunu_status status;
    char message[512];
};

struct server_embedder {
    struct akunu_session *session;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* under the lock */
    struct embedding_job *waiting, *running, *done;
    bool stops;
};

static void free_job(struct embedding_job *job)
{
    job->model->n_users--;
    for (size_t i = 0; job->texts && i < job->n; i++)
        free((void *)(uintptr_t)job->texts[i].ids);
    free(job->texts);
    free(job->rows);
    free(job);
}

/* ---- The thread --------------------------------------------------------- */
static bool is_cancelled(void *user)
{
    const struct embedding_job *job = user;
    return job->is_cancelled;
}

static void run_job(struct server_embedder *e, struct embedding_job *job)
{
    struct akunu_embedding embedding = job->model->options->embedding;
    embedding.normalize = AKUNU_NORMALIZE_L2; /* as OpenAI's are */
    job->status = akunu_session_embed(e->session, job->texts, job->n, &embedding, is_cancelled, job,
                                      job->rows);
    if (job->status != AKUNU_OK)
        snprintf(job->message, sizeof job->message, "%s", akunu_last_error());
}

/* The next job, in the order in which they came; NULL: the thread stops. */
static struct embedding_job *wait_for_job(struct server_embedder *e)
{
    pthread_mutex_lock(&e->lock);
    while (!e->waiting && !e->stops)
        pthread_cond_wait(&e->changed, &e->lock);
    struct embedding_job *job = e->stops ? NULL : e->waiting;
    if (job)
        e->waiting = job->next;
    e->running = job;
    pthread_mutex_unlock(&e->lock);
    return job;
}

static void *run_thread(void *user)
{
    struct server_model *m = user;
    struct server_embedder *e = m->embedder;
    for (struct embedding_job *job; (job = wait_for_job(e)) != NULL;) {
        run_job(e, job);
        pthread_mutex_lock(&e->lock);
        job->next = e->done;
        e->done = job;
        e->running = NULL;
        pthread_mutex_unlock(&e->lock);
        http_wake(m->server->http);
    }
    return NULL;
}

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
        akunu_memory_report(m->loaded.model, m->embedder->session, &r, sizeof r) != AKUNU_OK)
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
    struct embedding_job *lists[] = { e->waiting, e->done };
    for (int i = 0; i < 2; i++)
        while (lists[i]) {
            struct embedding_job *next = lists[i]->next;
            if (lists[i]->x)
                http_set_data(lists[i]->x, NULL);
            free_job(lists[i]);
            lists[i] = next;
        }
    akunu_session_free(e->session);
    pthread_cond_destroy(&e->changed);
    pthread_mutex_destroy(&e->lock);
    free(e);
    m->embedder = NULL;
}

/* ---- Answers ------------------------------------------------------------ */
/* The floats as little-endian bytes in base64 (RFC 4648). */
static json_t *encode_base64(const float *values, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t n_bytes = n * sizeof *values, at = 0;
    unsigned char *bytes = malloc(n_bytes + 3);
    char *text = malloc((n_bytes + 2) / 3 * 4 + 1);
    json_t *value = NULL;
    if (bytes && text) {
        memcpy(bytes, values, n_bytes);
        bytes[n_bytes] = bytes[n_bytes + 1] = 0;
        for (size_t i = 0; i < n_bytes; i += 3) {
            unsigned word = (unsigned)bytes[i] << 16 | (unsigned)bytes[i + 1] << 8 | bytes[i + 2];
            for (int k = 0; k < 4; k++)
                text[at++] = i + (size_t)k > n_bytes ? '=' : digits[word >> (18 - 6 * k) & 63];
        }
        value = json_stringn(text, at);
    }
    free(bytes);
    free(text);
    return value;
}

/* Scales to unit length, after elements were left out. */
static void normalize(float *values, size_t n)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i++)
        sum += (double)values[i] * (double)values[i];
    for (size_t i = 0; sum > 0.0 && i < n; i++)
        values[i] = (float)((double)values[i] / sqrt(sum));
}

static json_t *embedding_of(const struct embedding_job *job, size_t i)
{
    float *row = job->rows + i * job->width;
    if (job->dimensions < job->width)
        normalize(row, job->dimensions);
    json_t *value = job->base64 ? encode_base64(row, job->dimensions) : json_array();
    for (size_t k = 0; !job->base64 && k < job->dimensions; k++)
        json_array_append_new(value, json_real((double)row[k]));
    return json_pack("{s:s, s:I, s:o}", "object", "embedding", "index", (json_int_t)i, "embedding",
                     value);
}

static void answer(struct embedding_job *job)
{
    json_t *data = json_array();
    http_counts(job->x)[SERVER_PROMPT] = job->n_tokens;
    if (job->status != AKUNU_OK) {
        bool full = job->status == AKUNU_ERROR_CONTEXT, memory = job->status == AKUNU_ERROR_MEMORY;
        json_decref(data);
        server_fail(job->x, memory ? 503 : 400, "input", full ? "context_length_exceeded" : NULL,
                    "%s", job->message);
        return;
    }
    bool plain = server_is_ollama(job->x); /* whose embeddings are lists in a list */
    for (size_t i = 0; i < job->n; i++) {
        json_t *one = embedding_of(job, i);
        json_array_append_new(data, plain ? json_incref(json_object_get(one, "embedding")) :
                                            json_incref(one));
        json_decref(one);
    }
    if (plain) {
        server_answer(job->x, 200,
                      json_pack("{s:s, s:o, s:I, s:I, s:I}", "model", job->model->id, "embeddings",
                                data, "total_duration", (json_int_t)(http_age(job->x) * 1e9),
                                "load_duration", (json_int_t)0, "prompt_eval_count",
                                (json_int_t)job->n_tokens));
        return;
    }
    json_t *value = json_pack("{s:s, s:o, s:s, s:{s:I, s:I}}", "object", "list", "data", data,
                              "model", job->model->id, "usage", "prompt_tokens",
                              (json_int_t)job->n_tokens, "total_tokens", (json_int_t)job->n_tokens);
    if (value && json_array_size(data) != job->n) {
        json_decref(value);
        value = NULL;
    }
    server_answer(job->x, 200, value);
}

void server_take_embeddings(struct server_model *m)
{
    struct server_embedder *e = m->embedder;
    if (!e)
        return;
    pthread_mutex_lock(&e->lock);
    struct embedding_job *job = e->done;
    e->done = NULL;
    pthread_mutex_unlock(&e->lock);
    while (job) {
        struct embedding_job *next = job->next;
        if (job->x) {
            http_set_data(job->x, NULL);
            answer(job);
        }
        free_job(job);
        job = next;
    }
}

/* ---- The request -------------------------------------------------------- */
static void leave(void *self)
{
    struct embedding_job *job = self;
    job->x = NULL;
    job->is_cancelled = true;
}

/* The texts, which the job then owns. */
static bool read_input(struct embedding_job *job, const json_t *body)
{
    enum { INPUTS_MAX = 2048 }; /* as in OpenAI's API */
    struct server_prompts inputs;
    bool good = server_read_prompts(job->model, job->x, "input", json_object_get(body, "input"),
                                    AKUNU_ADD_SPECIAL, INPUTS_MAX, &inputs);
    job->texts = calloc(inputs.n, sizeof *job->texts);
    job->rows = calloc(inputs.n, job->width * sizeof *job->rows);
    if (good && (!job->texts || !job->rows)) {
        server_fail_memory(job->x);
        good = false;
    }
    for (size_t i = 0; good && i < inputs.n; i++) {
        job->texts[i] = (struct akunu_ids){ .ids = inputs.list[i].ids, .n = inputs.list[i].n };
        job->n_tokens += inputs.list[i].n;
        inputs.list[i].ids = NULL;
    }
    job->n = good ? inputs.n : 0;
    server_free_prompts(&inputs);
    return good;
}

static bool read_options(struct embedding_job *job, const json_t *body)
{
    const char *format = "float";
    int64_t dimensions = (int64_t)job->width;
    if (!server_get_string(job->x, body, "encoding_format", &format) ||
        !server_get_integer(job->x, body, "dimensions", 1, (int64_t)job->width, &dimensions))
        return false;
    job->base64 = strcmp(format, "base64") == 0;
    job->dimensions = (size_t)dimensions;
    if (job->base64 || strcmp(format, "float") == 0)
        return true;
    server_fail_member(job->x, "encoding_format", json_object_get(body, "encoding_format"),
                       "float or base64");
    return false;
}

static void submit(struct server_embedder *e, struct embedding_job *job)
{
    struct embedding_job **last = &e->waiting;
    http_set_data(job->x, &job->owner);
    pthread_mutex_lock(&e->lock);
    while (*last)
        last = &(*last)->next;
    *last = job;
    pthread_cond_signal(&e->changed);
    pthread_mutex_unlock(&e->lock);
}

void server_embeddings(struct server_model *m, struct http_exchange *x, const json_t *body)
{
    struct embedding_job *job = calloc(1, sizeof *job);
    if (!job) {
        server_fail_memory(x);
        return;
    }
    job->owner = (struct server_owner){ .leave = leave };
    job->model = m;
    job->x = x;
    job->width = m->loaded.info.width;
    m->n_users++;
    if (read_options(job, body) && read_input(job, body))
        submit(m->embedder, job);
    else
        free_job(job);
}
