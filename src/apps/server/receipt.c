/* Receipts of answers ("akunu": {"receipt": true}): apps/common/receipt.h says what is in them. The
 * hash of a model's file is computed when a receipt is first asked for, and requests wait
 * meanwhile. */
#include <stdlib.h>
#include <string.h>

#include "apps/server/job.h"

#include "apps/common/json_text.h"

/* ---- The request -------------------------------------------------------- */
static bool asks_for_receipt(const json_t *members)
{
    return json_is_true(json_object_get(json_object_get(members, "akunu"), "receipt"));
}

bool server_wants_receipt(const json_t *body)
{
    return asks_for_receipt(body) || asks_for_receipt(json_object_get(body, "options"));
}

bool server_read_receipt(struct http_exchange *x, const json_t *body, bool *out)
{
    const json_t *own = json_object_get(body, "akunu"), *found = json_object_get(own, "receipt");
    bool is_object = !own || json_is_null(own) || app_json_is_object(own);
    *out = json_is_true(found);
    if (!is_object)
        server_fail_member(x, "akunu", own, "an object");
    else if (found && !json_is_null(found) && !json_is_boolean(found))
        server_fail_member(x, "akunu.receipt", found, "true or false");
    return http_code(x) == 0;
}

bool server_begin_receipt(struct server_source *source, const struct server_params *params,
                          const akunu_token *ids, size_t n_ids)
{
    struct server_job *job = source->job;
    struct akunu_generation_params generation = params->generation;
    int64_t most = (int64_t)akunu_scheduler_context(job->model->scheduler) - (int64_t)n_ids + 1;
    if (!params->receipt || most < 1) /* too long a prompt is refused later */
        return true;
    if (generation.max_tokens < 0 || generation.max_tokens > most)
        generation.max_tokens = most; /* where the context ends it */
    source->receipt =
        app_receipt_begin(job->model->sha256, ids, n_ids, &generation, &params->constraint);
    source->seed = params->sampling.seed;
    return source->receipt != NULL;
}

/* ---- The answer --------------------------------------------------------- */
void server_receipt_add_token(struct server_part *part, const struct server_event *event)
{
    if (!event->source->receipt || event->token < 0)
        return;
    if (!part->tokens)
        part->tokens = json_array();
    if (json_array_append_new(part->tokens, json_integer(event->token)) != 0)
        part->job->no_memory = true;
}

void server_receipt_end(struct server_part *part, const struct server_event *event)
{
    const struct server_source *source = event->source;
    if (!source->receipt)
        return;
    if (!part->tokens)
        part->tokens = json_array();
    part->receipt = json_copy(source->receipt);
    if (!part->receipt || !app_receipt_end(part->receipt, source->seed + event->index, part->tokens,
                                           event->result.chain))
        part->job->no_memory = true;
}

static void add_to_receipt(struct server_job *job, json_t *value, json_t *receipt)
{
    json_t *own = receipt ? json_pack("{s:o}", "receipt", receipt) : NULL;
    if (receipt && (!own || json_object_set_new(value, "akunu", own) != 0))
        job->no_memory = true;
}

void server_add_part_receipt(struct server_part *part, json_t *value)
{
    add_to_receipt(part->job, value, json_incref(part->receipt));
}

void server_add_receipts(struct server_job *job, json_t *value)
{
    json_t *list;
    if (job->n_parts == 1 || !job->parts[0].receipt) {
        server_add_part_receipt(&job->parts[0], value);
        return;
    }
    list = json_array();
    for (size_t i = 0; i < job->n_parts; i++)
        json_array_append(list, job->parts[i].receipt);
    add_to_receipt(job, value, list);
}

/* ---- The hash ----------------------------------------------------------- */
static bool is_stopped(void *user)
{
    const struct server *s = user;
    return s->hasher.stops;
}

static void *run_hasher(void *user)
{
    struct server *s = user;
    struct server_model *m = s->hasher.model;
    char hex[sizeof m->sha256] = "";
    if (akunu_path_sha256(m->loaded.path, is_stopped, s, hex) != AKUNU_OK && !s->hasher.stops)
        app_warn("%s", akunu_last_error());
    memcpy(s->hasher.sha256, hex, sizeof hex);
    s->hasher.is_done = true;
    http_wake(s->http);
    return NULL;
}

void server_take_hash(struct server *s)
{
    if (s->hasher.runs && s->hasher.is_done) {
        struct server_model *m = s->hasher.model;
        pthread_join(s->hasher.thread, NULL);
        s->hasher.runs = false;
        memcpy(m->sha256, s->hasher.sha256, sizeof m->sha256);
        m->wants_hash = false;
        m->n_users--;
        server_end_waiting(m, m->sha256[0]);
    }
    for (size_t i = 0; !s->hasher.runs && i < s->n_models; i++) {
        struct server_model *m = &s->models[i];
        if (!m->wants_hash || m->state != SERVER_MODEL_READY)
            continue;
        s->hasher.model = m;
        s->hasher.is_done = false;
        s->hasher.runs = pthread_create(&s->hasher.thread, NULL, run_hasher, s) == 0;
        m->n_users += s->hasher.runs; /* its path stays */
        if (!s->hasher.runs)
            return; /* tried again at the next tick */
    }
}

void server_stop_hasher(struct server *s)
{
    s->hasher.stops = true;
    if (s->hasher.runs)
        pthread_join(s->hasher.thread, NULL);
    s->hasher.runs = false;
}
