/* POST /v1/completions: texts, or ids, that are continued as they are. One request may have many
 * prompts; choice p · n + i is completion i of prompt p. With echo the prompt comes first, with the
 * log-probabilities of its tokens if any are asked for. */
#include "server/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/conversation.h"
#include "cli/output.h"

/* What the answer needs of the request. */
struct completion_answer {
    bool echo, is_scored; /* is_scored: prompts have log-probabilities */
    struct server_prompts prompts;
    struct offsets {
        json_t *tokens, *logprobs, *top, *text; /* lists of `logprobs`; NULL: nothing yet */
        size_t n_bytes;                         /* of text so far */
    } * offsets;                                /* by part */
};

/* ---- Life --------------------------------------------------------------- */
static void release_answer(struct completion_answer *a, size_t n_parts)
{
    for (size_t i = 0; a->offsets && i < n_parts; i++) {
        json_decref(a->offsets[i].tokens);
        json_decref(a->offsets[i].logprobs);
        json_decref(a->offsets[i].top);
        json_decref(a->offsets[i].text);
    }
    server_free_prompts(&a->prompts);
    free(a->offsets);
    free(a);
}

static void release(struct server_job *job)
{
    if (job->own)
        release_answer(job->own, job->n_parts);
}

/* ---- Log-probabilities -------------------------------------------------- */
/* {"token": logprob, …} of the most likely tokens; null without any. */
static json_t *top_of(const struct server_model *m, const struct server_event *event)
{
    if (event->n_top == 0)
        return json_null();
    json_t *top = json_object();
    for (size_t i = 0; i < event->n_top && event->top[i].token >= 0; i++) {
        json_t *text = server_token_text(m, event->top[i].token, NULL);
        json_object_setn_new(top, json_string_value(text), json_string_length(text),
                             cli_json_real((double)event->top[i].logprob));
        json_decref(text);
    }
    return top;
}

static void add_logprobs(struct server_part *part, const struct server_event *event)
{
    struct completion_answer *a = part->job->own;
    struct offsets *o = &a->offsets[part->index];
    if (part->job->n_top < 0 || event->token < 0)
        return;
    if (!o->tokens) {
        o->tokens = json_array();
        o->logprobs = json_array();
        o->top = json_array();
        o->text = json_array();
    }
    json_t *text = server_token_text(part->job->model, event->token, NULL);
    json_array_append_new(o->text, json_integer((json_int_t)o->n_bytes));
    o->n_bytes += json_string_length(text);
    json_array_append_new(o->logprobs, cli_json_real((double)event->logprob));
    json_array_append_new(o->top, top_of(part->job->model, event));
    if (json_array_append_new(o->tokens, text) != 0)
        part->job->no_memory = true;
}

/* What was not reported yet; null if no log-probabilities are asked for. */
static json_t *take_logprobs(struct server_part *part)
{
    struct completion_answer *a = part->job->own;
    struct offsets *o = &a->offsets[part->index], empty = { .n_bytes = o->n_bytes }, all = *o;
    if (part->job->n_top < 0)
        return json_null();
    *o = empty;
    return json_pack("{s:o, s:o, s:o, s:o}", "tokens", all.tokens ? all.tokens : json_array(),
                     "token_logprobs", all.logprobs ? all.logprobs : json_array(), "top_logprobs",
                     all.top ? all.top : json_array(), "text_offset",
                     all.text ? all.text : json_array());
}

/* ---- Text --------------------------------------------------------------- */
static json_t *choice_of(struct server_part *part, json_t *text, const char *finish)
{
    return json_pack("{s:I, s:o, s:o, s:s?}", "index", (json_int_t)part->index, "text", text,
                     "logprobs", take_logprobs(part), "finish_reason", finish);
}

static json_t *completion(const struct server_job *job, json_t *choices)
{
    return json_pack("{s:s, s:s, s:I, s:s, s:s, s:o}", "id", job->id, "object", "text_completion",
                     "created", (json_int_t)job->created, "model", job->model->id,
                     "system_fingerprint", server_fingerprint(), "choices", choices);
}

static void add_text(struct server_part *part, const char *text, size_t n)
{
    if (part->job->stream)
        server_sse_write(
            part->job,
            completion(part->job, json_pack("[o]", choice_of(part, cli_json_text(text, n), NULL))));
    else if (!server_text_add(&part->text, text, n))
        part->job->no_memory = true;
}

/* The text of a prompt, for echo. */
static void add_prompt(struct server_part *part)
{
    const struct completion_answer *a = part->job->own;
    const struct server_prompt *p =
        &a->prompts.list[part->index / (part->job->n_parts / a->prompts.n)];
    const struct akunu_tokenizer *tokenizer = part->job->model->loaded.tokenizer;
    unsigned flags = AKUNU_SKIP_SPECIAL;
    int64_t n = akunu_tokenizer_decode(tokenizer, p->ids, p->n, flags, NULL, 0);
    char *text = n >= 0 ? malloc((size_t)n + 1) : NULL;
    if (text) {
        akunu_tokenizer_decode(tokenizer, p->ids, p->n, flags, text, (size_t)n);
        add_text(part, text, (size_t)n);
    } else {
        part->job->no_memory = true;
    }
    free(text);
}

static void on_token(struct server_part *part, const struct server_event *event)
{
    add_logprobs(part, event);
    if (event->n_bytes > 0)
        add_text(part, event->text, event->n_bytes);
}

static void on_end(struct server_part *part, const struct server_event *event)
{
    part->finish = server_finish_reason(&event->result);
    if (part->job->stream)
        server_sse_write(part->job,
                         completion(part->job, json_pack("[o]", choice_of(part, json_string(""),
                                                                          part->finish))));
}

static void end_stream(struct server_job *job)
{
    if (job->include_usage || job->parts[0].receipt) {
        json_t *last = completion(job, json_array());
        if (job->include_usage)
            json_object_set_new(last, "usage", server_usage(job));
        server_add_receipts(job, last);
        server_sse_write(job, last);
    }
    server_sse_end(job);
}

static void on_done(struct server_job *job)
{
    json_t *choices = json_array();
    if (server_job_failed(job) || job->stream) {
        json_decref(choices);
        if (job->status == AKUNU_OK)
            end_stream(job);
        return;
    }
    for (size_t i = 0; i < job->n_parts; i++) {
        struct server_part *part = &job->parts[i];
        json_array_append_new(
            choices, choice_of(part, cli_json_text(part->text.bytes, part->text.n), part->finish));
    }
    json_t *answer = completion(job, choices);
    json_object_set_new(answer, "usage", server_usage(job));
    server_add_receipts(job, answer);
    server_answer(job->x, 200, json_array_size(choices) == job->n_parts ? answer : NULL);
}

static const struct server_style style = {
    .token = on_token, .prompt = add_logprobs, .end = on_end, .done = on_done, .release = release
};

/* ---- The request -------------------------------------------------------- */
static bool read_options(struct http_exchange *x, const json_t *body, struct server_params *p,
                         struct completion_answer *a)
{
    const char *suffix = NULL;
    int64_t n_top = -1;
    if (!server_get_bool(x, body, "echo", &a->echo) ||
        !server_get_string(x, body, "suffix", &suffix) ||
        !server_get_integer(x, body, "logprobs", 0, 100, &n_top))
        return false;
    if (suffix) {
        server_fail(x, 400, "suffix", NULL, "suffix is not supported: /infill fills gaps");
        return false;
    }
    p->n_top = n_top;
    p->generation.n_top_logprobs = (uint32_t)(n_top > 0 ? n_top : 0);
    a->is_scored = a->echo && n_top >= 0;
    return true;
}

static bool submit_all(struct server_model *m, struct http_exchange *x,
                       const struct server_params *p, struct completion_answer *a)
{
    struct server_job *job = server_job_new(m, x, &style, "cmpl-", p, a->prompts.n);
    if (!job) {
        release_answer(a, 0);
        return false;
    }
    job->own = a;
    a->offsets = calloc(job->n_parts, sizeof *a->offsets);
    if (!a->offsets) {
        server_fail_memory(x);
        server_job_free(job);
        return false;
    }
    for (size_t i = 0; i < a->prompts.n; i++)
        if (!server_job_submit(job, i, p, a->prompts.list[i].ids, a->prompts.list[i].n,
                               a->is_scored))
            return false;
    for (size_t i = 0; a->echo && i < job->n_parts; i++)
        add_prompt(&job->parts[i]);
    return true;
}

void server_completions(struct server_model *m, struct http_exchange *x, const json_t *body)
{
    struct server_params params;
    struct akunu_grammar *grammar = NULL;
    struct completion_answer *a = calloc(1, sizeof *a);
    if (!a) {
        server_fail_memory(x);
        return;
    }
    bool good = server_read_params(m, x, body, &params);
    if (good && params.generation.max_tokens < 0 && !json_object_get(body, "max_tokens"))
        params.generation.max_tokens = 16; /* OpenAI's default */
    good = good && read_options(x, body, &params, a) &&
           server_read_grammar(m, x, body, &params, &grammar) &&
           server_read_prompts(m, x, "prompt", json_object_get(body, "prompt"),
                               AKUNU_ADD_SPECIAL | AKUNU_PARSE_SPECIAL, NULL,
                               (size_t)m->options->queue, &a->prompts);
    if (good)
        submit_all(m, x, &params, a);
    else
        release_answer(a, 0);
    akunu_grammar_free(grammar);
}
