/* POST /completion and /infill: llama-server's own API for texts and gaps. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output.h"
#include "server/job.h"

/* What the answer needs of the request. */
struct completion {
    bool returns_tokens;
    json_t *tokens, *probabilities; /* not reported yet; NULL: none */
    struct akunu_result result;
};

/* ---- Reading ------------------------------------------------------------ */
/* The grammar of "grammar" or "json_schema"; *out NULL: neither is there. */
static bool read_grammar(struct http_exchange *x, const json_t *body, struct akunu_grammar **out)
{
    const char *text = NULL, *name = "grammar";
    const json_t *schema = json_object_get(body, "json_schema");
    *out = NULL;
    if (!server_get_string(x, body, "grammar", &text))
        return false;
    if (text && *text) {
        *out = akunu_grammar_parse(text, strlen(text));
    } else if (schema && !json_is_null(schema)) {
        char *own = json_dumps(schema, JSON_COMPACT | JSON_ENCODE_ANY);
        name = "json_schema";
        *out = own ? akunu_grammar_from_schema(own, strlen(own), NULL) : NULL;
        free(own);
    } else {
        return true;
    }
    if (!*out)
        server_fail_library(x, name);
    return *out != NULL;
}

static bool read_options(struct http_exchange *x, const json_t *body, struct server_params *p,
                         struct completion *c)
{
    int64_t n_top = 0;
    bool after_sampling = false;
    if (!server_get_integer(x, body, "n_probs", 0, 100, &n_top) ||
        !server_get_bool(x, body, "post_sampling_probs", &after_sampling) ||
        !server_get_bool(x, body, "return_tokens", &c->returns_tokens))
        return false;
    if (after_sampling) {
        server_fail(x, 400, "post_sampling_probs", NULL, "post_sampling_probs is not supported");
        return false;
    }
    p->n_top = n_top > 0 ? n_top : -1;
    p->generation.n_top_logprobs = (uint32_t)n_top;
    p->n = 1;
    return true;
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
                                             cli_json_real((double)event->top[i].logprob)));
    }
    text = server_token_text(m, event->token, &bytes);
    return json_pack("{s:i, s:o, s:o, s:o, s:o}", "id", (int)event->token, "token", text, "bytes",
                     bytes, "logprob", cli_json_real((double)event->logprob), "top_logprobs", top);
}

/* Takes a list that was not reported yet; empty without any. */
static json_t *take(json_t **list)
{
    json_t *taken = *list ? *list : json_array();
    *list = NULL;
    return taken;
}

static void append(json_t **list, json_t *value)
{
    if (!*list)
        *list = json_array();
    json_array_append_new(*list, value);
}

static json_t *rate(const char *ms_name, const char *rate_name, json_int_t n, double seconds)
{
    double each = seconds > 0.0 ? (double)n / seconds : 0.0;
    return json_pack("{s:f, s:f}", ms_name, seconds * 1e3, rate_name, each);
}

static json_t *timings_of(const struct completion *c)
{
    json_int_t n_prompt = (json_int_t)c->result.n_prompt,
               n_generated = (json_int_t)c->result.n_generated;
    json_t *timings = json_pack("{s:I, s:I}", "prompt_n", n_prompt, "predicted_n", n_generated);
    json_t *prompt = rate("prompt_ms", "prompt_per_second", n_prompt, c->result.prompt_seconds);
    json_t *text =
        rate("predicted_ms", "predicted_per_second", n_generated, c->result.generate_seconds);
    json_object_update(timings, prompt);
    json_object_update(timings, text);
    json_decref(prompt);
    json_decref(text);
    return timings;
}

static json_t *piece_of(struct server_part *part, const char *text, size_t n, bool stop)
{
    struct completion *c = part->job->own;
    json_t *value = json_pack(
        "{s:I, s:o, s:o, s:b}", "index", (json_int_t)part->index, "content", cli_json_text(text, n),
        "tokens", c->returns_tokens || part->job->stream ? take(&c->tokens) : json_array(), "stop",
        stop);
    if (part->job->n_top >= 0)
        json_object_set_new(value, "completion_probabilities", take(&c->probabilities));
    return value;
}

/* The last object: with an empty text of a stream, else with all of it. */
static json_t *end_of(struct server_part *part)
{
    const struct completion *c = part->job->own;
    const struct server_job *job = part->job;
    static const char *const stops[] = { [AKUNU_STOP_END] = "eos",
                                         [AKUNU_STOP_LENGTH] = "limit",
                                         [AKUNU_STOP_CONTEXT] = "limit",
                                         [AKUNU_STOP_CALLBACK] = "none",
                                         [AKUNU_STOP_TEXT] = "word" };
    json_t *value = piece_of(part, part->text.bytes, part->text.n, true);
    json_object_set_new(value, "id_slot", json_integer(0));
    json_object_set_new(value, "model", json_string(job->model->id));
    json_object_set_new(value, "tokens_predicted", json_integer((json_int_t)job->n_generated));
    json_object_set_new(value, "tokens_evaluated", json_integer((json_int_t)job->n_prompt));
    json_object_set_new(value, "tokens_cached", json_integer((json_int_t)job->n_cached));
    json_object_set_new(value, "truncated", json_false());
    json_object_set_new(value, "stop_type", json_string(stops[c->result.stop]));
    json_object_set_new(value, "stopping_word", json_string(""));
    json_object_set_new(value, "timings", timings_of(c));
    return value;
}

static void on_token(struct server_part *part, const struct server_event *event)
{
    struct completion *c = part->job->own;
    if (event->token >= 0) {
        append(&c->tokens, json_integer(event->token));
        if (part->job->n_top >= 0)
            append(&c->probabilities, probability_of(part->job->model, event));
    }
    if (!part->job->stream)
        part->job->no_memory |= !server_text_add(&part->text, event->text, event->n_bytes);
    else if (event->n_bytes > 0)
        server_sse_write(part->job, piece_of(part, event->text, event->n_bytes, false));
}

static void on_end(struct server_part *part, const struct server_event *event)
{
    struct completion *c = part->job->own;
    c->result = event->result;
}

static void on_done(struct server_job *job)
{
    if (server_job_failed(job))
        return;
    json_t *end = end_of(&job->parts[0]);
    if (!job->stream) {
        server_answer(job->x, 200, end);
        return;
    }
    server_sse_write(job, end);
    http_finish(job->x);
}

static void release(struct server_job *job)
{
    struct completion *c = job->own;
    if (!c)
        return;
    json_decref(c->tokens);
    json_decref(c->probabilities);
    free(c);
}

static const struct server_style style = {
    .token = on_token, .end = on_end, .done = on_done, .release = release
};

/* ---- Requests ----------------------------------------------------------- */
/* Reads the prompt of one of the routes; false: it has answered. */
typedef bool read_fn(struct server_model *m, struct http_exchange *x, const json_t *body,
                     struct server_prompt *out);

static bool read_prompt(struct server_model *m, struct http_exchange *x, const json_t *body,
                        struct server_prompt *out)
{
    return server_read_prompt(m, x, json_object_get(body, "prompt"), out);
}

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
    if (n < 0) {
        server_fail_library(x, "input_prefix");
        return false;
    }
    out->ids = malloc(((size_t)n + 1) * sizeof *out->ids);
    if (!out->ids) {
        server_fail_memory(x);
        return false;
    }
    out->n = (size_t)akunu_tokenizer_encode_infill(t, &gap, out->ids, (size_t)n);
    return true;
}

static void complete(struct server_model *m, struct http_exchange *x, const json_t *body,
                     read_fn *read)
{
    struct server_params params;
    struct server_prompt prompt = { 0 };
    struct akunu_grammar *grammar = NULL;
    struct completion *c = calloc(1, sizeof *c);
    bool good = c && server_read_params(m, x, body, &params) && read_options(x, body, &params, c) &&
                read_grammar(x, body, &grammar) && read(m, x, body, &prompt);
    if (!c)
        server_fail_memory(x);
    struct server_job *job = NULL;
    if (good) {
        params.sampling.grammar = grammar;
        job = server_job_new(m, x, &style, "", &params, 1);
    }
    if (job) {
        job->own = c;
        server_job_submit(job, 0, &params, prompt.ids, prompt.n, false);
    } else {
        free(c);
    }
    akunu_grammar_free(grammar);
    free(prompt.ids);
}

void server_completion(struct server_model *m, struct http_exchange *x, const json_t *body)
{
    complete(m, x, body, read_prompt);
}

void server_infill(struct server_model *m, struct http_exchange *x, const json_t *body)
{
    complete(m, x, body, read_gap);
}
