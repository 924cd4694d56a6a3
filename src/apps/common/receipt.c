/* Receipts as JSON: writing and reading. */
#include "apps/common/receipt.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/common/sampling.h"

/* ---- Writing ------------------------------------------------------------ */
static json_t *list_ids(const akunu_token *ids, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, json_integer(ids[i]));
    if (json_array_size(list) == n)
        return list;
    json_decref(list);
    return NULL;
}

/* A list of strings that ends with NULL, or has n of them. */
static json_t *list_texts(const char *const *texts, size_t n)
{
    json_t *list = json_array();
    for (size_t i = 0; i < n && texts[i]; i++)
        json_array_append_new(list, json_string(texts[i]));
    return list;
}

/* JSON has no infinity. */
static json_t *bias_value(float bias)
{
    return isinf(bias) ? json_string(bias > 0.0f ? "inf" : "-inf") : json_real((double)bias);
}

static json_t *list_bias(const struct akunu_sampling_params *p)
{
    json_t *list = json_array();
    for (size_t i = 0; i < p->n_logit_bias; i++)
        json_array_append_new(list, json_pack("[i, o]", (int)p->logit_bias[i].token,
                                              bias_value(p->logit_bias[i].bias)));
    return list;
}

static json_t *describe_reasoning(const struct akunu_reasoning *r)
{
    return json_pack("{s:I, s:s?, s:s?, s:s?, s:b, s:b}", "budget", (json_int_t)r->budget, "begin",
                     r->begin, "end", r->end, "closing", r->closing, "begins_anywhere",
                     (int)r->begins_anywhere, "is_open", (int)r->is_open);
}

static json_t *describe_chat(const struct app_constraint *c)
{
    return json_pack("{s:s, s:s, s:s?, s:s?, s:b}", "chat_template", c->chat_template, "prompt",
                     c->prompt, "tools", c->tools, "tool_choice", c->choice, "parallel",
                     (int)c->parallel);
}

/* Sets a member unless it is absent, and takes the value. */
static bool set(json_t *object, const char *name, bool present, json_t *value)
{
    if (present)
        return json_object_set_new(object, name, value) == 0;
    json_decref(value);
    return true;
}

static json_t *describe_sampling(const struct akunu_generation_params *g,
                                 const struct app_constraint *c)
{
    const struct akunu_sampling_params *p = g->sampling;
    const char *const *breakers = p->dry_sequence_breakers;
    json_t *all = json_object();
    bool constrained = p->grammar != NULL;
    bool good =
        app_sampling_list(p, all) &&
        set(all, "max_tokens", true, json_integer((json_int_t)g->max_tokens)) &&
        set(all, "ignore_eos", true, json_boolean(p->ignore_end)) &&
        set(all, "special", true, json_boolean(g->special)) &&
        set(all, "logit_bias", p->n_logit_bias > 0, list_bias(p)) &&
        set(all, "stop", g->n_stops > 0, list_texts(g->stops, g->n_stops)) &&
        set(all, "samplers", p->samplers, json_string(p->samplers ? p->samplers : "")) &&
        set(all, "sampler_seq", p->sampler_seq,
            json_string(p->sampler_seq ? p->sampler_seq : "")) &&
        set(all, "dry_sequence_breakers", breakers,
            breakers ? list_texts(breakers, SIZE_MAX) : json_null()) &&
        set(all, "reasoning", g->reasoning,
            g->reasoning ? describe_reasoning(g->reasoning) : NULL) &&
        set(all, "grammar", constrained && c->grammar, json_string(c->grammar ? c->grammar : "")) &&
        set(all, "json_schema", constrained && c->schema, json_deep_copy(c->schema)) &&
        set(all, "chat", constrained && c->chat_template,
            c->chat_template ? describe_chat(c) : NULL);
    if (good)
        return all;
    json_decref(all);
    return NULL;
}

json_t *app_receipt_begin(const char *sha256, const akunu_token *ids, size_t n_ids,
                          const struct akunu_generation_params *generation,
                          const struct app_constraint *constraint)
{
    json_t *prompt = list_ids(ids, n_ids), *sampling = describe_sampling(generation, constraint);
    if (prompt && sampling)
        return json_pack("{s:s, s:s, s:o, s:o}", "version", akunu_version(), "model", sha256,
                         "prompt", prompt, "sampling", sampling);
    json_decref(prompt);
    json_decref(sampling);
    return NULL;
}

bool app_receipt_end(json_t *receipt, uint64_t seed, json_t *tokens, const uint8_t chain[32])
{
    char hex[65];
    for (int i = 0; i < 32; i++)
        snprintf(hex + 2 * i, 3, "%02x", chain[i]);
    return json_object_set_new(receipt, "seed", json_integer((json_int_t)seed)) == 0 &&
           json_object_set(receipt, "tokens", tokens) == 0 &&
           json_object_set_new(receipt, "chain", json_string(hex)) == 0;
}

/* ---- Reading ------------------------------------------------------------ */
static bool refuse_receipt(char *why, const char *name, const json_t *found, const char *expected)
{
    char shown[APP_DESCRIBED_BYTES];
    app_describe_json(found, shown);
    snprintf(why, APP_PROBLEM_BYTES, "%s is %s; expected %s", name, shown, expected);
    return false;
}

static bool read_hex(const json_t *json, const char *name, const char **out, char *why)
{
    const json_t *found = json_object_get(json, name);
    *out = json_string_value(found);
    return (*out && strlen(*out) == 64 && strspn(*out, "0123456789abcdef") == 64) ||
           refuse_receipt(why, name, found, "64 hexadecimal digits");
}

static bool read_ids(const json_t *json, const char *name, akunu_token **out, size_t *n, char *why)
{
    const json_t *found = json_object_get(json, name), *id;
    size_t i;
    if (!json_is_array(found))
        return refuse_receipt(why, name, found, "a list of token ids");
    *out = calloc(json_array_size(found) + 1, sizeof **out);
    if (!*out)
        return false;
    json_array_foreach (found, i, id) {
        json_int_t value = json_integer_value(id);
        if (!json_is_integer(id) || value < 0 || value > INT32_MAX)
            return refuse_receipt(why, name, id, "a list of token ids");
        (*out)[i] = (akunu_token)value;
    }
    *n = json_array_size(found);
    return true;
}

static bool read_texts(const json_t *json, const char *name, const char **out, size_t max,
                       size_t *n, char *why)
{
    const json_t *found = json_object_get(json, name), *text;
    size_t i;
    if (found && (!json_is_array(found) || json_array_size(found) > max))
        return refuse_receipt(why, name, found, "a list of at most 64 texts");
    json_array_foreach (found, i, text) {
        if (!json_is_string(text))
            return refuse_receipt(why, name, text, "a list of texts");
        out[i] = json_string_value(text);
    }
    *n = json_array_size(found);
    return true;
}

static bool read_text(const json_t *json, const char *name, const char **out, char *why)
{
    const json_t *found = json_object_get(json, name);
    if (found && !json_is_null(found) && !json_is_string(found))
        return refuse_receipt(why, name, found, "a text");
    *out = json_string_value(found);
    return true;
}

static bool read_integer(const json_t *json, const char *name, int64_t low, int64_t *out, char *why)
{
    const json_t *found = json_object_get(json, name);
    json_int_t value = json_integer_value(found);
    if (!found)
        return true;
    if (!json_is_integer(found) || value < low)
        return refuse_receipt(why, name, found, low < 0 ? "an integer" : "an integer from 0");
    *out = (int64_t)value;
    return true;
}

static bool read_bool(const json_t *json, const char *name, bool *out, char *why)
{
    const json_t *found = json_object_get(json, name);
    if (found && !json_is_boolean(found))
        return refuse_receipt(why, name, found, "true or false");
    *out = json_is_true(found);
    return true;
}

static bool read_numbers(const json_t *json, struct akunu_sampling_params *p, char *why)
{
    for (size_t i = 0; i < app_n_sampling_members; i++) {
        const struct app_sampling_member *m = &app_sampling_members[i];
        const json_t *found = json_object_get(json, m->name);
        double value = json_number_value(found);
        if (!found || json_is_null(found)) /* as by default; null is an infinity */
            continue;
        if (!json_is_number(found) ||
            (!m->is_real && !(json_is_integer(found) && fabs(value) <= INT32_MAX)))
            return refuse_receipt(why, m->name, found, m->is_real ? "a number" : "an integer");
        app_sampling_set(p, m, value);
    }
    return true;
}

static bool read_bias(const json_t *json, struct app_receipt *out, char *why)
{
    const json_t *found = json_object_get(json, "logit_bias"), *pair;
    size_t i;
    if (found && (!json_is_array(found) || json_array_size(found) > APP_RECEIPT_BIAS_MAX))
        return refuse_receipt(why, "logit_bias", found, "a list of at most 4096 pairs");
    json_array_foreach (found, i, pair) {
        const json_t *id = json_array_get(pair, 0), *value = json_array_get(pair, 1);
        const char *text = json_string_value(value);
        bool infinite = text && (strcmp(text, "inf") == 0 || strcmp(text, "-inf") == 0);
        json_int_t token = json_integer_value(id);
        if (json_array_size(pair) != 2 || !json_is_integer(id) || token < 0 || token > INT32_MAX ||
            (!infinite && !json_is_number(value)))
            return refuse_receipt(why, "logit_bias", pair, "[token, what is added to its logit]");
        out->bias[i].token = (akunu_token)token;
        out->bias[i].bias = !infinite      ? (float)json_number_value(value) :
                            text[0] == '-' ? -INFINITY :
                                             INFINITY;
    }
    out->sampling.logit_bias = out->bias;
    out->sampling.n_logit_bias = json_array_size(found);
    return true;
}

static bool read_reasoning(const json_t *json, struct app_receipt *out, char *why)
{
    struct akunu_reasoning *r = &out->reasoning;
    const json_t *found = json_object_get(json, "reasoning");
    akunu_reasoning_default(r, sizeof *r);
    if (!found)
        return true;
    if (!json_is_object(found))
        return refuse_receipt(why, "reasoning", found, "an object");
    out->generation.reasoning = r;
    return read_integer(found, "budget", -1, &r->budget, why) &&
           read_text(found, "begin", &r->begin, why) && read_text(found, "end", &r->end, why) &&
           read_text(found, "closing", &r->closing, why) &&
           read_bool(found, "begins_anywhere", &r->begins_anywhere, why) &&
           read_bool(found, "is_open", &r->is_open, why);
}

static bool read_constraint(const json_t *json, struct app_receipt *out, char *why)
{
    struct app_constraint *c = &out->constraint;
    const json_t *chat = json_object_get(json, "chat");
    c->schema = json_object_get(json, "json_schema");
    if (!read_text(json, "grammar", &c->grammar, why))
        return false;
    if (!chat)
        return true;
    if (!json_is_object(chat) || !json_is_string(json_object_get(chat, "chat_template")) ||
        !json_is_string(json_object_get(chat, "prompt")))
        return refuse_receipt(why, "chat", chat, "an object with chat_template and prompt");
    return read_text(chat, "chat_template", &c->chat_template, why) &&
           read_text(chat, "prompt", &c->prompt, why) && read_text(chat, "tools", &c->tools, why) &&
           read_text(chat, "tool_choice", &c->choice, why) &&
           read_bool(chat, "parallel", &c->parallel, why);
}

static bool read_sampling(const json_t *json, struct app_receipt *out, char *why)
{
    struct akunu_sampling_params *p = &out->sampling;
    struct akunu_generation_params *g = &out->generation;
    size_t n_breakers = 0;
    if (!json_is_object(json))
        return refuse_receipt(why, "sampling", json, "an object");
    if (!read_numbers(json, p, why) || !read_bias(json, out, why) ||
        !read_integer(json, "max_tokens", -1, &g->max_tokens, why) ||
        !read_bool(json, "ignore_eos", &p->ignore_end, why) ||
        !read_bool(json, "special", &g->special, why) ||
        !read_texts(json, "stop", out->stops, 64, &g->n_stops, why) ||
        !read_text(json, "samplers", &p->samplers, why) ||
        !read_text(json, "sampler_seq", &p->sampler_seq, why) ||
        !read_texts(json, "dry_sequence_breakers", out->breakers, 64, &n_breakers, why) ||
        !read_reasoning(json, out, why) || !read_constraint(json, out, why))
        return false;
    g->stops = out->stops;
    if (json_object_get(json, "dry_sequence_breakers"))
        p->dry_sequence_breakers = out->breakers;
    return true;
}

bool app_receipt_read(const json_t *json, struct app_receipt *out, char why[APP_PROBLEM_BYTES])
{
    const json_t *found = json_object_get(json_object_get(json, "akunu"), "receipt");
    int64_t seed = 0;
    memset(out, 0, sizeof *out);
    akunu_generation_params_default(&out->generation, sizeof out->generation);
    akunu_sampling_params_default(&out->sampling, sizeof out->sampling);
    out->generation.sampling = &out->sampling;
    *why = '\0';
    if (found)
        json = found;
    if (json_is_array(json))
        return refuse_receipt(why, "akunu.receipt", json, "one receipt; verify each of them alone");
    if (!json_is_object(json))
        return refuse_receipt(why, "the receipt", json, "an object");
    bool good = read_text(json, "version", &out->version, why) &&
                read_hex(json, "model", &out->sha256, why) &&
                read_hex(json, "chain", &out->chain, why) &&
                read_ids(json, "prompt", &out->prompt, &out->n_prompt, why) &&
                read_ids(json, "tokens", &out->tokens, &out->n_tokens, why) &&
                read_sampling(json_object_get(json, "sampling"), out, why) &&
                read_integer(json, "seed", 0, &seed, why);
    out->sampling.seed = (uint64_t)seed;
    return good && (json_object_get(json, "seed") ||
                    refuse_receipt(why, "seed", NULL, "an integer from 0"));
}

void app_receipt_free(struct app_receipt *receipt)
{
    free(receipt->prompt);
    free(receipt->tokens);
    receipt->prompt = receipt->tokens = NULL;
}
