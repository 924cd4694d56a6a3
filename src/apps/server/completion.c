/* POST /completion and /infill: llama-server's own API for texts and gaps. Part p · n + i is
 * completion i of prompt p. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/common/output.h"
#include "apps/server/job.h"

/* What the answers need of the request. */
struct completion {
    bool returns_tokens;
    json_t *settings, *fields; /* fields: those of the answer that are wanted; NULL: all */
    struct server_prompts prompts;
    struct completion_part {
        json_t *tokens, *probabilities; /* not reported yet; NULL: none */
        bool has_newline;
        struct akunu_result result;
    } * parts;
};

static void release_completion(struct completion *c, size_t n_parts)
{
    if (!c)
        return;
    for (size_t i = 0; c->parts && i < n_parts; i++) {
        json_decref(c->parts[i].tokens);
        json_decref(c->parts[i].probabilities);
    }
    free(c->parts);
    server_free_prompts(&c->prompts);
    json_decref(c->settings);
    json_decref(c->fields);
    free(c);
}

static struct completion_part *own_part(const struct server_part *part)
{
    struct completion *c = part->job->own;
    return &c->parts[part->index];
}

/* ---- Reading ------------------------------------------------------------ */
static bool read_completion(struct http_exchange *x, const json_t *body, struct server_params *p,
                            struct completion *c)
{
    int64_t n_top = 0;
    bool after_sampling = false;
    if (!server_get_integer(x, body, "n_probs", 0, 100, &n_top) ||
        !server_get_bool(x, body, "post_sampling_probs", &after_sampling) ||
        !server_get_bool(x, body, "return_tokens", &c->returns_tokens) ||
        !server_get_integer(x, body, "n_cmpl", 1, 128, &p->n))
        return false;
    if (after_sampling) {
        server_fail(x, 400, "post_sampling_probs", NULL, "post_sampling_probs is not supported");
        return false;
    }
    p->n_top = n_top > 0 ? n_top : -1;
    p->generation.n_top_logprobs = (uint32_t)n_top;
    return true;
}

/* "response_fields": ["content", "generation_settings/n_predict"] */
static bool read_fields(struct http_exchange *x, const json_t *body, struct completion *c)
{
    const json_t *found = json_object_get(body, "response_fields");
    bool good = !found || json_is_null(found) || json_is_array(found);
    for (size_t i = 0; good && i < json_array_size(found); i++)
        good = json_is_string(json_array_get(found, i));
    if (!good)
        server_fail_member(x, "response_fields", found, "a list of names of the answer's members");
    else if (json_array_size(found) > 0)
        c->fields = json_incref((json_t *)(uintptr_t)found);
    return good;
}

/* ---- Answers ------------------------------------------------------------ */
/* A token with its log-probability, and the most likely ones. */
static json_t *probability_of(const struct server_model *m, const struct server_event *event)
{
    json_t *top = json_array(), *bytes, *text;
    for (size_t i = 0; i < event->n_top && event->top[i].token >= 0; i++) {
        text = server_token_text(m, event->top[i].token, &bytes);
        json_array_append_new(top, json_pack("{s:i, s:o, s:o, s:o}", "id", (int)event->top[i].token,
                                             "token", text, "bytes", bytes, "logprob",
                                             app_json_real((double)event->top[i].logprob)));
    }
    text = server_token_text(m, event->token, &bytes);
    return json_pack("{s:i, s:o, s:o, s:o, s:o}", "id", (int)event->token, "token", text, "bytes",
                     bytes, "logprob", app_json_real((double)event->logprob), "top_logprobs", top);
}

/* Takes a list that was not reported yet; empty without any. */
static json_t *take_list(json_t **list)
{
    json_t *taken = *list ? *list : json_array();
    *list = NULL;
    return taken;
}

static void append_json(json_t **list, json_t *value)
{
    if (!*list)
        *list = json_array();
    json_array_append_new(*list, value);
}

static json_t *piece_of(struct server_part *part, const char *text, size_t n, bool stop)
{
    const struct completion *c = part->job->own;
    struct completion_part *own = own_part(part);
    json_t *value =
        json_pack("{s:I, s:o, s:o, s:i, s:b}", "index", (json_int_t)part->index, "content",
                  app_json_text(text, n), "tokens",
                  c->returns_tokens || part->job->stream ? take_list(&own->tokens) : json_array(),
                  "id_slot", 0, "stop", stop);
    if (part->job->n_top >= 0)
        json_object_set_new(value, "completion_probabilities", take_list(&own->probabilities));
    return value;
}

/* The prompt with all its tokens. */
static json_t *prompt_of(const struct server_part *part)
{
    const struct completion *c = part->job->own;
    const struct akunu_tokenizer *t = part->job->model->loaded.tokenizer;
    const struct server_prompt *p =
        &c->prompts.list[part->index / (part->job->n_parts / c->prompts.n)];
    int64_t n = akunu_tokenizer_decode(t, p->ids, p->n, 0, NULL, 0);
    char *text = n >= 0 ? malloc((size_t)n + 1) : NULL;
    if (text)
        akunu_tokenizer_decode(t, p->ids, p->n, 0, text, (size_t)n);
    json_t *value = text ? app_json_text(text, (size_t)n) : NULL;
    free(text);
    return value;
}

/* The members that "response_fields" names; one with a slash is inside of another. */
static json_t *choose_fields(const json_t *fields, json_t *whole)
{
    if (!fields)
        return whole;
    json_t *chosen = json_object();
    for (size_t i = 0; i < json_array_size(fields); i++) {
        char name[64];
        const char *path = json_string_value(json_array_get(fields, i));
        json_t *found = whole;
        for (const char *at = path; found && *at;) {
            size_t n = strcspn(at, "/");
            snprintf(name, sizeof name, "%.*s", (int)(n < sizeof name ? n : sizeof name), at);
            found = json_object_get(found, name);
            at += n + (at[n] == '/');
        }
        if (found && found != whole)
            json_object_set(chosen, path, found);
    }
    json_decref(whole);
    return chosen;
}

/* The last object: with an empty text of a stream, else with all of it. */
static json_t *end_of(struct server_part *part)
{
    const struct completion *c = part->job->own;
    const struct completion_part *own = own_part(part);
    const struct akunu_result *r = &own->result;
    static const char *const stops[] = { [AKUNU_STOP_END] = "eos",
                                         [AKUNU_STOP_LENGTH] = "limit",
                                         [AKUNU_STOP_CONTEXT] = "limit",
                                         [AKUNU_STOP_CALLBACK] = "limit",
                                         [AKUNU_STOP_TEXT] = "word" };
    const char *word = server_stop_text(part->job, r);
    json_t *value = piece_of(part, part->text.bytes, part->text.n, true);
    json_t *end = json_pack(
        "{s:s, s:I, s:I, s:I, s:O, s:o, s:b, s:b, s:s, s:s, s:o}", "model", part->job->model->id,
        "tokens_predicted", (json_int_t)r->n_generated, "tokens_evaluated",
        (json_int_t)(r->n_prompt + r->n_kept), "tokens_cached", (json_int_t)r->n_kept,
        "generation_settings", c->settings, "prompt", prompt_of(part), "has_new_line",
        own->has_newline, "truncated", r->stop == AKUNU_STOP_CONTEXT, "stop_type", stops[r->stop],
        "stopping_word", word ? word : "", "timings", server_timings(r));
    json_object_update(value, end);
    part->job->no_memory |= !end;
    json_decref(end);
    server_add_part_receipt(part, value);
    return choose_fields(c->fields, value);
}

static void on_token(struct server_part *part, const struct server_event *event)
{
    struct completion_part *own = own_part(part);
    own->has_newline |= event->n_bytes > 0 && memchr(event->text, '\n', event->n_bytes);
    if (event->token >= 0) {
        append_json(&own->tokens, json_integer(event->token));
        if (part->job->n_top >= 0)
            append_json(&own->probabilities, probability_of(part->job->model, event));
    }
    if (!part->job->stream)
        part->job->no_memory |= !server_text_add(&part->text, event->text, event->n_bytes);
    else if (event->n_bytes > 0)
        server_sse_write(part->job, piece_of(part, event->text, event->n_bytes, false));
}

static void completion_on_end(struct server_part *part, const struct server_event *event)
{
    own_part(part)->result = event->result;
    if (part->job->stream)
        server_sse_write(part->job, end_of(part));
}

static void completion_on_done(struct server_job *job)
{
    if (server_job_failed(job))
        return;
    if (job->stream) {
        http_finish(job->x);
        return;
    }
    json_t *answer = job->n_parts > 1 ? json_array() : end_of(&job->parts[0]);
    for (size_t i = 0; job->n_parts > 1 && i < job->n_parts; i++)
        json_array_append_new(answer, end_of(&job->parts[i]));
    server_answer(job->x, 200, answer);
}

static void completion_release(struct server_job *job)
{
    release_completion(job->own, job->n_parts);
}

static const struct server_style style = { .prefix = "",
                                           .token = on_token,
                                           .end = completion_on_end,
                                           .done = completion_on_done,
                                           .release = completion_release };

/* ---- Gaps --------------------------------------------------------------- */
static bool read_gap(struct server_model *m, struct http_exchange *x, const json_t *body,
                     struct server_prompt *out)
{
    const struct akunu_tokenizer *t = m->loaded.tokenizer;
    const json_t *extra = json_object_get(body, "input_extra");
    struct akunu_infill gap;
    akunu_infill_default(&gap, sizeof gap);
    gap.prefix = gap.suffix = "";
    if (!server_get_string(x, body, "input_prefix", &gap.prefix) ||
        !server_get_string(x, body, "input_suffix", &gap.suffix))
        return false;
    if (json_array_size(extra) > 0) {
        server_fail(x, 400, "input_extra", NULL, "input_extra is not supported");
        return false;
    }
    gap.n_prefix_bytes = json_string_length(json_object_get(body, "input_prefix"));
    gap.n_suffix_bytes = json_string_length(json_object_get(body, "input_suffix"));
    int64_t n = akunu_tokenizer_encode_infill(t, &gap, NULL, 0);
    out->ids = n >= 0 ? malloc(((size_t)n + 1) * sizeof *out->ids) : NULL;
    if (out->ids)
        out->n = (size_t)akunu_tokenizer_encode_infill(t, &gap, out->ids, (size_t)n);
    if (n < 0)
        server_fail_library(x, "input_prefix");
    else if (!out->ids)
        server_fail_memory(x);
    return out->ids != NULL;
}

/* ---- Requests ----------------------------------------------------------- */
/* Reads the prompts of one of the routes; false: it has answered. */
typedef bool read_fn(struct server_model *m, struct http_exchange *x, const json_t *body,
                     struct server_prompts *out);

static bool read_prompts(struct server_model *m, struct http_exchange *x, const json_t *body,
                         struct server_prompts *out)
{
    return server_read_prompts(m, x, "prompt", json_object_get(body, "prompt"),
                               AKUNU_ADD_SPECIAL | AKUNU_PARSE_SPECIAL, NULL,
                               (size_t)m->options->server.queue, out);
}

static bool read_gaps(struct server_model *m, struct http_exchange *x, const json_t *body,
                      struct server_prompts *out)
{
    *out = (struct server_prompts){ .list = calloc(1, sizeof *out->list), .n = 1 };
    if (out->list)
        return read_gap(m, x, body, &out->list[0]);
    out->n = 0;
    server_fail_memory(x);
    return false;
}

/* A job for `c`, which it takes; NULL: it has answered, and `c` stays. */
static struct server_job *make_job(struct server_model *m, struct http_exchange *x,
                                   const struct server_params *p, struct completion *c)
{
    c->settings = server_settings(p);
    c->parts = calloc(c->prompts.n * (size_t)p->n, sizeof *c->parts);
    if (!c->settings || !c->parts) {
        server_fail_memory(x);
        return NULL;
    }
    struct server_job *job = server_job_new(m, x, &style, p, c->prompts.list, c->prompts.n);
    if (job)
        job->own = c;
    return job;
}

static struct server_commit complete(struct server_model *m, struct http_exchange *x,
                                     const json_t *body, read_fn *read)
{
    struct server_submission *s = calloc(1, sizeof *s);
    struct completion *c = calloc(1, sizeof *c);
    if (!s || !c)
        server_fail_memory(x);
    else if (server_read_params(m, x, body, &s->params) &&
             read_completion(x, body, &s->params, c) && read_fields(x, body, c) &&
             server_read_grammar(x, body, &s->params) && read(m, x, body, &c->prompts))
        s->job = make_job(m, x, &s->params, c);
    if (!s || !s->job)
        release_completion(c, 0);
    return server_submission_commit(s);
}

struct server_commit server_completion(struct server_model *m, struct http_exchange *x,
                                       const json_t *body)
{
    return complete(m, x, body, read_prompts);
}

struct server_commit server_infill(struct server_model *m, struct http_exchange *x,
                                   const json_t *body)
{
    return complete(m, x, body, read_gaps);
}
