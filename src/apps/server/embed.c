/* POST /v1/embeddings, and Ollama's /api/embed. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/server/embedder.h"
#include "apps/server/job.h"

/* What the request asks for. */
struct embeddings {
    size_t width; /* of the model's embeddings */
    size_t dimensions;
    bool base64;
    bool truncates, truncates_not; /* whether "truncate" says so; neither: it is absent */
    bool names_prompt;             /* it has a "prompt_name" */
    struct akunu_embedding_text how;
};

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

static json_t *embedding_of(const struct server_encoding *e, size_t i)
{
    const struct embeddings *own = e->own;
    float *row = e->rows + i * e->width;
    if (own->dimensions < e->width)
        normalize(row, own->dimensions);
    json_t *value = own->base64 ? encode_base64(row, own->dimensions) : json_array();
    for (size_t k = 0; !own->base64 && k < own->dimensions; k++)
        json_array_append_new(value, json_real((double)row[k]));
    return value;
}

json_t *server_openai_embeddings(const struct server_encoding *e, json_t *rows)
{
    json_t *data = json_array(), *row;
    size_t i;
    json_array_foreach (rows, i, row)
        json_array_append_new(data, json_pack("{s:s, s:I, s:O}", "object", "embedding", "index",
                                              (json_int_t)i, "embedding", row));
    bool is_whole = json_array_size(data) == e->n;
    json_decref(rows);
    json_t *value = json_pack("{s:s, s:o, s:s, s:{s:I, s:I}}", "object", "list", "data", data,
                              "model", e->model->id, "usage", "prompt_tokens",
                              (json_int_t)e->n_tokens, "total_tokens", (json_int_t)e->n_tokens);
    if (is_whole)
        return value;
    json_decref(value);
    return NULL;
}

json_t *server_ollama_embeddings(const struct server_encoding *e, json_t *rows)
{
    return json_pack("{s:s, s:o, s:I, s:I, s:I}", "model", e->model->id, "embeddings", rows,
                     "total_duration", (json_int_t)(http_age(e->x) * 1e9), "load_duration",
                     (json_int_t)0, "prompt_eval_count", (json_int_t)e->n_tokens);
}

static void embed_answer(struct server_encoding *e)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < e->n; i++)
        json_array_append_new(rows, embedding_of(e, i));
    server_answer(e->x, 200, server_api_of(e->x)->embeddings(e, rows));
}

/* ---- The request -------------------------------------------------------- */
/* Reads the prompt's name, and tries it. */
static bool read_prompt(struct server_model *m, struct http_exchange *x, const json_t *body,
                        struct embeddings *out)
{
    akunu_embedding_text_default(&out->how, sizeof out->how);
    out->how.prompt_name = m->options->embed.prompt_name;
    if (!server_get_string(x, body, "prompt_name", &out->how.prompt_name))
        return false;
    out->names_prompt = json_is_string(json_object_get(body, "prompt_name"));
    if (akunu_model_encode_embedding(m->loaded.model, "", 0, &out->how, NULL, 0) >= 0)
        return true;
    server_fail_library(x, "prompt_name");
    return false;
}

static bool read_embeddings(struct server_model *m, struct http_exchange *x, const json_t *body,
                            struct embeddings *out)
{
    const char *format = "float";
    const json_t *truncate = json_object_get(body, "truncate");
    out->width = akunu_model_embedding_width(m->loaded.model, m->options->embedding.pooling);
    int64_t dimensions = (int64_t)out->width;
    bool truncates = false;
    if ((server_api_of(x)->has_base64 && !server_get_string(x, body, "encoding_format", &format)) ||
        !server_get_integer(x, body, "dimensions", 1, (int64_t)out->width, &dimensions) ||
        !server_get_bool(x, body, "truncate", &truncates) || !read_prompt(m, x, body, out))
        return false;
    out->truncates = json_is_true(truncate);
    out->truncates_not = json_is_false(truncate);
    out->base64 = strcmp(format, "base64") == 0;
    out->dimensions = (size_t)dimensions;
    if (out->base64 || strcmp(format, "float") == 0)
        return true;
    server_fail_member(x, "encoding_format", json_object_get(body, "encoding_format"),
                       "float or base64");
    return false;
}

/* Whether the inputs are as the request wants them; false: it has answered. */
static bool check_inputs(struct http_exchange *x, const struct server_prompts *inputs,
                         const struct embeddings *asked)
{
    size_t n_texts = 0;
    for (size_t i = 0; i < inputs->n; i++) {
        const struct server_prompt *input = &inputs->list[i];
        n_texts += input->n_whole > 0;
        if (asked->truncates_not && input->n < input->n_whole) {
            server_fail(x, 400, "input", "context_length_exceeded",
                        "input[%zu] is too long: it has %zu tokens, and the model reads %zu of a "
                        "text (\"truncate\": false)",
                        i, input->n_whole, input->n);
            return false;
        }
    }
    if (n_texts == inputs->n || (!asked->names_prompt && asked->how.n_prompt == 0))
        return true;
    server_fail(x, 400, asked->names_prompt ? "prompt_name" : "input", NULL,
                "input has token ids, and %s",
                asked->names_prompt ? "prompt_name goes before texts only" :
                                      "the model's embeddings leave out the prompt, which goes "
                                      "before texts only");
    return false;
}

/* Reads the texts; with "truncate" those that do not fit are cut. */
static bool read_inputs(struct server_model *m, struct http_exchange *x, const json_t *body,
                        struct embeddings *asked, struct server_prompts *out)
{
    enum { INPUTS_MAX = 2048 }; /* as in OpenAI's API */
    const json_t *input = json_object_get(body, "input");
    size_t max = server_embedder_max_tokens(m);
    if (!server_read_prompts(m, x, "input", input, AKUNU_ADD_SPECIAL, &asked->how, INPUTS_MAX, out))
        return false;
    bool fits = true;
    for (size_t i = 0; i < out->n; i++)
        fits = fits && (out->list[i].n <= max || out->list[i].n_whole == 0);
    if (fits || !asked->truncates)
        return true;
    asked->how.max_tokens = max;
    server_free_prompts(out);
    return server_read_prompts(m, x, "input", input, AKUNU_ADD_SPECIAL, &asked->how, INPUTS_MAX,
                               out);
}

static struct server_commit encode(struct server_model *m, struct http_exchange *x,
                                   struct server_prompts *inputs, const struct embeddings *asked)
{
    struct embeddings *own = malloc(sizeof *own);
    struct server_encoding *e =
        own ? server_encoding_new(m, x, inputs->n, asked->width, own) : NULL;
    if (!own)
        server_fail_memory(x);
    if (!e)
        return server_answered;
    *own = *asked;
    e->answer = embed_answer;
    e->name = "input";
    e->is_list = inputs->is_list;
    e->n_prompt = asked->how.n_prompt;
    for (size_t i = 0; i < inputs->n; i++) {
        server_encoding_add(e, inputs->list[i].ids, inputs->list[i].n, 0);
        inputs->list[i].ids = NULL;
    }
    return server_encoding_commit(e);
}

struct server_commit server_embeddings(struct server_model *m, struct http_exchange *x,
                                       const json_t *body)
{
    struct server_prompts inputs = { .n = 0 };
    struct embeddings asked = { .width = 0 };
    struct server_commit commit = server_answered;
    if (read_embeddings(m, x, body, &asked) && read_inputs(m, x, body, &asked, &inputs) &&
        check_inputs(x, &inputs, &asked))
        commit = encode(m, x, &inputs, &asked);
    server_free_prompts(&inputs);
    return commit;
}
