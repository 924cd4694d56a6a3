/* Sampling parameters of a request, under the names of OpenAI and of llama-server. */
#include "apps/server/server.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/common/json_text.h"
#include "apps/common/output.h"
#include "apps/common/sampling.h"

static bool read_number(struct http_exchange *x, const json_t *body, const char *name,
                        const struct app_sampling_member *m, struct akunu_sampling_params *p)
{
    double value = app_sampling_get(p, m);
    int64_t whole = (int64_t)value;
    if (m->is_real ? !server_get_real(x, body, name, m->low, m->high, &value) :
                     !server_get_integer(x, body, name, (int64_t)m->low, (int64_t)m->high, &whole))
        return false;
    app_sampling_set(p, m, m->is_real ? value : (double)whole);
    return true;
}

/* repetition_penalty is what vLLM and Hugging Face call repeat_penalty. */
static bool read_numbers(struct http_exchange *x, const json_t *body,
                         struct akunu_sampling_params *p)
{
    for (size_t i = 0; i < app_n_sampling_members; i++) {
        const struct app_sampling_member *m = &app_sampling_members[i];
        bool has_alias = m->offset == offsetof(struct akunu_sampling_params, repeat_penalty);
        if (!read_number(x, body, m->name, m, p) ||
            (has_alias && !read_number(x, body, "repetition_penalty", m, p)))
            return false;
    }
    return true;
}

/* ---- Seeds, bias, stops ------------------------------------------------- */
/* A seed that JSON can carry exactly; null and -1 ask for a random one. */
static bool read_seed(struct http_exchange *x, const json_t *body, struct akunu_sampling_params *p)
{
    int64_t seed = -1;
    if (!server_get_integer(x, body, "seed", -1, INT64_MAX, &seed))
        return false;
    if (seed >= 0)
        p->seed = (uint64_t)seed;
    return true;
}

static bool add_bias(struct server_params *p, int64_t token, const json_t *value)
{
    size_t n = p->sampling.n_logit_bias;
    if (token < 0 || token > INT32_MAX || n == sizeof p->bias / sizeof *p->bias ||
        !(json_is_number(value) || json_is_false(value)))
        return false;
    float bias = json_is_false(value) ? -INFINITY : (float)json_number_value(value);
    p->bias[n] = (struct akunu_logit_bias){ .token = (akunu_token)token, .bias = bias };
    p->sampling.n_logit_bias = n + 1;
    return true;
}

/* A token's id as text; else each token of the text. */
static bool add_text_bias(struct server_model *m, struct server_params *p, const char *text,
                          const json_t *value)
{
    const struct app_text whole = { (char *)(uintptr_t)text, strlen(text) };
    akunu_token *ids = NULL;
    size_t n = 0;
    int64_t id;
    if (app_parse_int(text, &id))
        return add_bias(p, id, value);
    bool good = app_tokenize_text(m->loaded.tokenizer, &whole, 0, &ids, &n) == APP_EXIT_OK && n > 0;
    for (size_t i = 0; good && i < n; i++)
        good = add_bias(p, ids[i], value);
    free(ids);
    return good;
}

/* {"15043": 1.5}, as OpenAI has it, or [[15043, 1.5], [" a text", false]] as llama-server. */
static bool read_bias(struct server_model *m, struct http_exchange *x, const json_t *body,
                      struct server_params *p)
{
    const json_t *found = json_object_get(body, "logit_bias"), *value;
    const char *id;
    bool good = !found || json_is_null(found) || app_json_is_object(found) || json_is_array(found);
    if (found && !json_is_null(found)) {
        p->sampling.logit_bias = p->bias;
        p->sampling.n_logit_bias = 0;
    }
    json_object_foreach ((json_t *)(uintptr_t)found, id, value)
        good = good && add_text_bias(m, p, id, value);
    for (size_t i = 0; good && i < json_array_size(found); i++) {
        const json_t *pair = json_array_get(found, i), *token = json_array_get(pair, 0);
        value = json_array_get(pair, 1);
        good = json_array_size(pair) == 2 &&
               (json_is_string(token) ?
                    add_text_bias(m, p, json_string_value(token), value) :
                    json_is_integer(token) && add_bias(p, json_integer_value(token), value));
    }
    if (!good)
        server_fail_member(x, "logit_bias", found,
                           "an object of token ids or texts and what is added to their logits");
    return good;
}

static bool read_stops(struct http_exchange *x, const json_t *body, struct server_params *p)
{
    const json_t *found = json_object_get(body, "stop");
    size_t n = json_is_array(found) ? json_array_size(found) : json_is_string(found), i = 0;
    bool good = !found || json_is_null(found) || json_is_string(found) || json_is_array(found);
    good = good && n <= sizeof p->stops / sizeof *p->stops;
    for (; good && i < n; i++) {
        const json_t *stop = json_is_array(found) ? json_array_get(found, i) : found;
        p->stops[i] = json_string_value(stop);
        good = json_string_length(stop) > 0 && strlen(p->stops[i]) == json_string_length(stop);
    }
    if (!good) {
        server_fail_member(x, "stop", found, "a text of 1 to 1024 bytes, or a list of at most 64");
        return false;
    }
    if (n > 0) {
        p->generation.stops = p->stops;
        p->generation.n_stops = n;
    }
    return true;
}

/* A list of names; names with ';' between them; or letters, as in --sampler-seq. */
static bool read_samplers(struct http_exchange *x, const json_t *body, struct server_params *p)
{
    const json_t *found = json_object_get(body, "samplers");
    const char *text = json_string_value(found);
    size_t n = 0;
    bool good = !found || json_is_null(found) || text || json_is_array(found);
    for (size_t i = 0; good && i < json_array_size(found); i++) {
        const char *name = json_string_value(json_array_get(found, i));
        size_t room = sizeof p->samplers - n;
        int got = name ? snprintf(p->samplers + n, room, "%s%s", i ? ";" : "", name) : -1;
        good = got >= 0 && (size_t)got < room;
        n += good ? (size_t)got : 0;
    }
    if (!good) {
        server_fail_member(x, "samplers", found, "names of samplers, as a text or a list");
        return false;
    }
    if (text || json_is_array(found)) {
        bool letters = text && *text && strspn(text, "edskypmxta") == strlen(text);
        p->samplers[n] = '\0';
        p->sampling.samplers = letters ? NULL : text ? text : p->samplers;
        p->sampling.sampler_seq = letters ? text : NULL;
    }
    return true;
}

/* ---- All of it ---------------------------------------------------------- */
/* Of several names that the body has, the newest, which is the last one here, counts. */
static bool read_max_tokens(struct http_exchange *x, const json_t *body, int64_t *out)
{
    static const char *const names[] = { "n_predict", "max_tokens", "max_completion_tokens" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!server_get_integer(x, body, names[i], -1, INT64_MAX, out))
            return false;
    return true;
}

static bool read_stream(struct http_exchange *x, const json_t *body, struct server_params *p)
{
    const json_t *options = json_object_get(body, "stream_options");
    if (!server_get_bool(x, body, "stream", &p->stream))
        return false;
    if (options && !json_is_null(options) && !app_json_is_object(options)) {
        server_fail_member(x, "stream_options", options, "an object");
        return false;
    }
    return server_get_bool(x, options, "include_usage", &p->include_usage);
}

static bool refuse_best_of(struct http_exchange *x, const json_t *body, int64_t n)
{
    int64_t best_of = n;
    if (!server_get_integer(x, body, "best_of", 1, INT32_MAX, &best_of))
        return false;
    if (best_of > n) {
        server_fail(x, 400, "best_of", NULL, "best_of is %lld: only as many as n are generated",
                    (long long)best_of);
        return false;
    }
    return true;
}

bool server_read_params(struct server_model *m, struct http_exchange *x, const json_t *body,
                        struct server_params *p)
{
    /* the request points into it until this thread has submitted it, before it reads another */
    static _Thread_local struct app_sampling flags;
    if (app_sampling(m->options, &flags) != APP_EXIT_OK) {
        server_fail(x, 500, NULL, NULL, "the server's sampling flags are wrong");
        return false;
    }
    p->sampling = flags.params;
    p->generation = app_generation(m->options, &flags);
    p->generation.sampling = &p->sampling;
    p->generation.speculation = AKUNU_SPECULATION_AUTO;
    p->n = 1;
    p->n_top = -1;
    p->stream = p->include_usage = p->prompt_logprobs = false;
    p->grammar = NULL;
    p->constraint = (struct app_constraint){ .grammar = NULL };
    p->timeout = (double)m->options->server.timeout;
    bool ignore = p->sampling.ignore_end;
    if (!read_numbers(x, body, &p->sampling) || !read_seed(x, body, &p->sampling) ||
        !read_bias(m, x, body, p) || !read_stops(x, body, p) ||
        !read_max_tokens(x, body, &p->generation.max_tokens) || !read_stream(x, body, p) ||
        !server_get_integer(x, body, "n", 1, 128, &p->n) || !refuse_best_of(x, body, p->n) ||
        !read_samplers(x, body, p) || !server_get_bool(x, body, "ignore_eos", &ignore) ||
        !server_read_receipt(x, body, &p->receipt))
        return false;
    p->sampling.ignore_end = ignore;
    if (akunu_sampling_check(&p->sampling) != AKUNU_OK) {
        server_fail_library(x, NULL);
        return false;
    }
    return true;
}

bool server_check_one_choice(struct http_exchange *x, const struct server_params *p)
{
    if (p->n > 1)
        server_fail(x, 400, "n", NULL, "n is %lld: this API gives one answer", (long long)p->n);
    return p->n == 1;
}

/* ---- Grammars ----------------------------------------------------------- */
bool server_read_grammar(struct http_exchange *x, const json_t *body, struct server_params *params)
{
    const char *text = NULL, *name = "grammar";
    const json_t *schema = json_object_get(body, "json_schema");
    if (!server_get_string(x, body, "grammar", &text))
        return false;
    if (text && *text && schema && !json_is_null(schema)) {
        server_fail(x, 400, "grammar", NULL,
                    "grammar and json_schema: only one of them can be given");
        return false;
    }
    if (!(text && *text) && (!schema || json_is_null(schema)))
        return true;
    if (text && *text) {
        params->grammar =
            akunu_grammar_parse(text, json_string_length(json_object_get(body, "grammar")));
    } else {
        char *own = app_json_write(schema, JSON_COMPACT | JSON_ENCODE_ANY);
        name = "json_schema";
        params->grammar = own ? akunu_grammar_from_schema(own, strlen(own), NULL) : NULL;
        free(own);
    }
    params->sampling.grammar = params->grammar;
    params->constraint = (struct app_constraint){ .grammar = text && *text ? text : NULL,
                                                  .schema = text && *text ? NULL : schema };
    if (!params->grammar)
        server_fail_library(x, name);
    return params->grammar != NULL;
}

/* ---- Settings ----------------------------------------------------------- */
/* The names of the chain: "a;b" as a list. */
static json_t *list_samplers(const struct akunu_sampling_params *p)
{
    if (p->sampler_seq)
        return json_string(p->sampler_seq);
    json_t *list = json_array();
    for (const char *at = p->samplers ? p->samplers : AKUNU_SAMPLERS; *at;) {
        size_t n = strcspn(at, ";");
        json_array_append_new(list, json_stringn(at, n));
        at += n + (at[n] == ';');
    }
    return list;
}

static json_t *list_bias(const struct akunu_sampling_params *p)
{
    json_t *list = json_array();
    for (size_t i = 0; i < p->n_logit_bias; i++)
        json_array_append_new(list,
                              json_pack("{s:i, s:o}", "token", (int)p->logit_bias[i].token, "bias",
                                        app_json_real((double)p->logit_bias[i].bias)));
    return list;
}

json_t *server_settings(const struct server_params *params)
{
    const struct akunu_sampling_params *p = &params->sampling;
    json_int_t n_predict = (json_int_t)params->generation.max_tokens;
    json_t *stops = json_array(), *all;
    for (size_t i = 0; i < params->generation.n_stops; i++)
        json_array_append_new(stops, json_string(params->generation.stops[i]));
    all =
        json_pack("{s:I, s:I, s:I, s:I, s:I, s:b, s:b, s:o, s:o, s:o}", "seed", (json_int_t)p->seed,
                  "max_tokens", n_predict, "n_predict", n_predict, "n_cmpl", (json_int_t)params->n,
                  "n_probs", (json_int_t)(params->n_top > 0 ? params->n_top : 0), "ignore_eos",
                  (int)p->ignore_end, "stream", (int)params->stream, "stop", stops, "logit_bias",
                  list_bias(p), "samplers", list_samplers(p));
    app_sampling_list(p, all);
    return all;
}
