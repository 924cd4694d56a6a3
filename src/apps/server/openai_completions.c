/* POST /v1/completions: texts, or ids, that are continued as they are. One request may have many
 * prompts; choice p · n + i is completion i of prompt p. With echo the prompt comes first, with the
 * log-probabilities of its tokens if any are asked for. */
#include "apps/server/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/common/conversation.h"
#include "apps/common/message.h"
#include "apps/common/output.h"

static const char object[] = "text_completion";

enum { TOKENS, LOGPROBS, TOP, OFFSETS, N_LISTS };

/* What the answer needs of the request. */
struct completion_answer {
    bool echo;
    struct server_prompts prompts;
    struct offsets {
        json_t *lists[N_LISTS]; /* of `logprobs`, not reported yet; NULL: nothing yet */
        struct characters {
            char pending[4]; /* the beginning of a character */
            size_t n_pending, n;
        } begun;        /* characters of the tokens so far */
        size_t n_shown; /* characters of the text so far, which may end earlier */
        bool is_cut;    /* a stop sequence ended the text */
    } * offsets;        /* by part */
};

/* ---- Life --------------------------------------------------------------- */
static void release_answer(struct completion_answer *a, size_t n_parts)
{
    if (!a)
        return;
    for (size_t i = 0; a->offsets && i < n_parts; i++) {
        for (int k = 0; k < N_LISTS; k++)
            json_decref(a->offsets[i].lists[k]);
    }
    server_free_prompts(&a->prompts);
    free(a->offsets);
    free(a);
}

static void completions_release(struct server_job *job)
{
    release_answer(job->own, job->n_parts);
}

/* ---- Characters --------------------------------------------------------- */
/* Can more bytes complete the character? */
static bool is_beginning(const char *bytes, size_t n)
{
    char whole[4] = { 0 };
    unsigned char first = (unsigned char)bytes[0];
    if (n < 2)
        return first >= 0xc2 && first <= 0xf4;
    memset(whole, 0x80, sizeof whole);
    memcpy(whole, bytes, n);
    return app_utf8_length(whole, sizeof whole) > n;
}

/* Counts the characters that end in n more bytes of a text. What is not UTF-8 is shown as U+FFFD.
 */
static void count_characters(struct characters *c, const char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        c->pending[c->n_pending++] = bytes[i];
        if (c->n_pending > 1 && app_utf8_length(c->pending, c->n_pending) == 0 &&
            !is_beginning(c->pending, c->n_pending)) {
            c->n++; /* the bytes before this one were none */
            c->pending[0] = bytes[i];
            c->n_pending = 1;
        }
        if (is_beginning(c->pending, c->n_pending))
            continue;
        c->n++;
        c->n_pending = 0;
    }
}

/* The prompt of a part. */
static const struct server_prompt *prompt_of(const struct server_part *part)
{
    const struct completion_answer *a = part->job->own;
    return &a->prompts.list[part->index / (part->job->n_parts / a->prompts.n)];
}

/* Whether the text shows a token, and does so without a space that begins it. */
static unsigned flags_of(const struct server_prompt *p, size_t i, bool has_begun)
{
    return (p->is_text[i] ? 0u : (unsigned)AKUNU_SKIP_SPECIAL) |
           (has_begun ? (unsigned)AKUNU_CONTINUE : 0u);
}

/* ---- Log-probabilities -------------------------------------------------- */
/* The name of a token: its text, or "bytes:\xe2\x80" if it holds a part of a character. */
static json_t *token_name(const struct server_model *m, akunu_token token)
{
    size_t n, at = 0;
    char *bytes = app_token_bytes(m->loaded.tokenizer, token, AKUNU_CONTINUE, &n);
    for (size_t length = 1; bytes && at < n && length > 0; at += length)
        length = app_utf8_length(bytes + at, n - at);
    json_t *name = bytes ? json_stringn(bytes, n) : NULL; /* NULL if it is not UTF-8 */
    struct server_text spelled = { 0 };
    for (size_t i = 0; bytes && !name && i <= n; i++) {
        char text[8];
        int length = i ? snprintf(text, sizeof text, "\\x%02x", (unsigned char)bytes[i - 1]) :
                         snprintf(text, sizeof text, "bytes:");
        if (!server_text_add(&spelled, text, (size_t)length))
            break;
    }
    if (!name && spelled.bytes)
        name = json_stringn(spelled.bytes, spelled.n);
    free(spelled.bytes);
    free(bytes);
    return name;
}

/* {"token": logprob, …} of the most likely tokens; null without any. */
static json_t *top_of(const struct server_model *m, const struct server_event *event)
{
    if (event->n_top == 0)
        return json_null();
    json_t *top = json_object();
    for (size_t i = 0; i < event->n_top && event->top[i].token >= 0; i++) {
        json_t *text = token_name(m, event->top[i].token);
        json_object_setn_new(top, json_string_value(text), json_string_length(text),
                             app_json_real((double)event->top[i].logprob));
        json_decref(text);
    }
    return top;
}

/* Counts the characters of a token. A control token has none, unless the prompt's text has it. */
static void count_token(struct server_part *part, const struct server_event *event)
{
    const struct completion_answer *a = part->job->own;
    struct characters *c = &a->offsets[part->index].begun;
    unsigned flags = AKUNU_SKIP_SPECIAL | AKUNU_CONTINUE;
    size_t n;
    if (event->kind == AKUNU_REQUEST_PROMPT)
        flags = flags_of(prompt_of(part), event->prompt_index, c->n + c->n_pending > 0);
    char *bytes = app_token_bytes(part->job->model->loaded.tokenizer, event->token, flags, &n);
    if (bytes)
        count_characters(c, bytes, n);
    else
        part->job->no_memory = true;
    free(bytes);
}

static void add_logprobs(struct server_part *part, const struct server_event *event)
{
    struct completion_answer *a = part->job->own;
    struct offsets *o = &a->offsets[part->index];
    if (part->job->n_top < 0 || event->token < 0)
        return;
    json_t *values[N_LISTS] = {
        [TOKENS] = token_name(part->job->model, event->token),
        [LOGPROBS] = app_json_real((double)event->logprob),
        [TOP] = top_of(part->job->model, event),
        [OFFSETS] = json_integer((json_int_t)o->begun.n),
    };
    count_token(part, event);
    for (int k = 0; k < N_LISTS; k++) {
        if (!o->lists[k])
            o->lists[k] = json_array();
        if (json_array_append_new(o->lists[k], values[k]) != 0)
            part->job->no_memory = true;
    }
}

/* Takes the first n values of a list, which may be NULL. */
static json_t *take_first(json_t **list, size_t n)
{
    json_t *first = json_array(), *rest = json_array();
    for (size_t i = 0; i < json_array_size(*list); i++)
        json_array_append(i < n ? first : rest, json_array_get(*list, i));
    json_decref(*list);
    *list = rest;
    return first;
}

/* What was not reported yet; null if no log-probabilities are asked for. A token is reported with
 * the text that it begins, because a stop sequence may still cut that; `all`: no more text comes.
 */
static json_t *take_logprobs(struct server_part *part, bool all)
{
    struct completion_answer *a = part->job->own;
    struct offsets *o = &a->offsets[part->index];
    json_t *taken[N_LISTS];
    size_t n = 0, n_waiting = json_array_size(o->lists[OFFSETS]);
    if (part->job->n_top < 0)
        return json_null();
    while (n < n_waiting &&
           (all || (size_t)json_integer_value(json_array_get(o->lists[OFFSETS], n)) < o->n_shown))
        n++;
    for (int k = 0; k < N_LISTS; k++)
        taken[k] = take_first(&o->lists[k], n);
    return json_pack("{s:o, s:o, s:o, s:o}", "tokens", taken[TOKENS], "token_logprobs",
                     taken[LOGPROBS], "top_logprobs", taken[TOP], "text_offset", taken[OFFSETS]);
}

/* ---- Text --------------------------------------------------------------- */
/* `finish`: why the text ended; NULL: it goes on. */
static json_t *choice_of(struct server_part *part, json_t *text, const char *finish)
{
    const struct completion_answer *a = part->job->own;
    return json_pack("{s:I, s:o, s:o, s:s?}", "index", (json_int_t)part->index, "text", text,
                     "logprobs", take_logprobs(part, finish && !a->offsets[part->index].is_cut),
                     "finish_reason", finish);
}

static void completions_add_text(struct server_part *part, const char *text, size_t n)
{
    const struct completion_answer *a = part->job->own;
    for (size_t i = 0; i < n; i++)
        a->offsets[part->index].n_shown += ((unsigned char)text[i] & 0xc0) != 0x80;
    if (part->job->stream)
        server_sse_write_choice(part->job, object, choice_of(part, app_json_text(text, n), NULL));
    else if (!server_text_add(&part->text, text, n))
        part->job->no_memory = true;
}

/* The text of a prompt, for echo. */
static void add_prompt(struct server_part *part)
{
    const struct server_prompt *p = prompt_of(part);
    struct server_text all = { 0 };
    bool good = true;
    for (size_t i = 0; good && i < p->n; i++) {
        size_t n;
        char *bytes = app_token_bytes(part->job->model->loaded.tokenizer, p->ids[i],
                                      flags_of(p, i, all.n > 0), &n);
        good = bytes && server_text_add(&all, bytes, n);
        free(bytes);
    }
    if (good)
        completions_add_text(part, all.bytes ? all.bytes : "", all.n);
    else
        part->job->no_memory = true;
    free(all.bytes);
}

static void on_token(struct server_part *part, const struct server_event *event)
{
    add_logprobs(part, event);
    if (event->n_bytes > 0)
        completions_add_text(part, event->text, event->n_bytes);
}

static void completions_on_end(struct server_part *part, const struct server_event *event)
{
    const struct completion_answer *a = part->job->own;
    part->finish = server_finish_reason(&event->result);
    a->offsets[part->index].is_cut = event->result.stop == AKUNU_STOP_TEXT;
    if (part->job->stream)
        server_sse_write_choice(part->job, object, choice_of(part, json_string(""), part->finish));
}

static json_t *whole_choice(struct server_part *part)
{
    return choice_of(part, app_json_text(part->text.bytes, part->text.n), part->finish);
}

static void completions_on_done(struct server_job *job)
{
    server_end_completions(job, object, whole_choice);
}

/* With echo the prompt comes first. */
static void begin_texts(struct server_job *job)
{
    const struct completion_answer *a = job->own;
    for (size_t i = 0; a->echo && i < job->n_parts; i++)
        add_prompt(&job->parts[i]);
}

static const struct server_style style = { .prefix = "cmpl-",
                                           .begin = begin_texts,
                                           .token = on_token,
                                           .prompt = add_logprobs,
                                           .end = completions_on_end,
                                           .done = completions_on_done,
                                           .release = completions_release };

/* ---- The request -------------------------------------------------------- */
static bool read_completions(struct http_exchange *x, const json_t *body, struct server_params *p,
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
    p->prompt_logprobs = a->echo && n_top >= 0;
    return true;
}

/* A job for `a`, which it takes; NULL: it has answered, and `a` stays. */
static struct server_job *make_job(struct server_model *m, struct http_exchange *x,
                                   const struct server_params *p, struct completion_answer *a)
{
    a->offsets = calloc(a->prompts.n * (size_t)p->n, sizeof *a->offsets);
    if (!a->offsets) {
        server_fail_memory(x);
        return NULL;
    }
    struct server_job *job = server_job_new(m, x, &style, p, a->prompts.list, a->prompts.n);
    if (job)
        job->own = a;
    return job;
}

static bool read_request(struct server_model *m, struct http_exchange *x, const json_t *body,
                         struct server_params *p, struct completion_answer *a)
{
    if (!server_read_params(m, x, body, p))
        return false;
    if (p->generation.max_tokens < 0 && !json_object_get(body, "max_tokens"))
        p->generation.max_tokens = 16; /* OpenAI's default */
    return read_completions(x, body, p, a) && server_read_grammar(x, body, p) &&
           server_read_prompts(m, x, "prompt", json_object_get(body, "prompt"),
                               AKUNU_ADD_SPECIAL | AKUNU_PARSE_SPECIAL, NULL,
                               (size_t)m->options->server.queue, &a->prompts);
}

struct server_commit server_completions(struct server_model *m, struct http_exchange *x,
                                        const json_t *body)
{
    struct server_submission *s = calloc(1, sizeof *s);
    struct completion_answer *a = calloc(1, sizeof *a);
    if (!s || !a)
        server_fail_memory(x);
    else if (read_request(m, x, body, &s->params, a))
        s->job = make_job(m, x, &s->params, a);
    if (!s || !s->job)
        release_answer(a, 0);
    return server_submission_commit(s);
}
