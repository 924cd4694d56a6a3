/* What the OpenAI APIs have in common: usage, reasons, tokens, models, failures. */
#include "apps/server/embedder.h"
#include "apps/server/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/common/json_text.h"
#include "apps/common/output.h"

const char *server_fingerprint(void)
{
    static _Thread_local char text[64];
    snprintf(text, sizeof text, "akunu-%s", akunu_version());
    return text;
}

json_t *server_usage(const struct server_job *job)
{
    json_int_t n_prompt = (json_int_t)job->n_prompt, n_generated = (json_int_t)job->n_generated;
    return json_pack("{s:I, s:I, s:I, s:{s:I}}", "prompt_tokens", n_prompt, "completion_tokens",
                     n_generated, "total_tokens", n_prompt + n_generated, "prompt_tokens_details",
                     "cached_tokens", (json_int_t)job->n_cached);
}

const char *server_finish_reason(const struct akunu_result *result)
{
    bool full = result->stop == AKUNU_STOP_LENGTH || result->stop == AKUNU_STOP_CONTEXT;
    return full ? "length" : "stop";
}

const char *server_stop_text(const struct server_job *job, const struct akunu_result *result)
{
    return result->stop == AKUNU_STOP_TEXT ? job->stops[result->stop_index] : NULL;
}

/* Adds {NAME_n, NAME_ms, NAME_per_token_ms, NAME_per_second}. */
static void add_rate(json_t *timings, const char *name, uint64_t n, double seconds)
{
    char member[48];
    const struct {
        const char *suffix;
        double value;
    } members[] = { { "ms", seconds * 1e3 },
                    { "per_token_ms", n > 0 ? seconds * 1e3 / (double)n : 0.0 },
                    { "per_second", seconds > 0.0 ? (double)n / seconds : 0.0 } };
    snprintf(member, sizeof member, "%s_n", name);
    json_object_set_new(timings, member, json_integer((json_int_t)n));
    for (int i = 0; i < 3; i++) {
        snprintf(member, sizeof member, "%s_%s", name, members[i].suffix);
        json_object_set_new(timings, member, app_json_real(members[i].value));
    }
}

json_t *server_timings(const struct akunu_result *result)
{
    json_t *timings = json_pack("{s:I}", "cache_n", (json_int_t)result->n_kept);
    add_rate(timings, "prompt", result->n_prompt, result->prompt_seconds);
    add_rate(timings, "predicted", result->n_generated, result->generate_seconds);
    return timings;
}

json_t *server_token_text(const struct server_model *m, akunu_token token, json_t **bytes)
{
    size_t n;
    char *text = app_token_bytes(m->loaded.tokenizer, token, AKUNU_CONTINUE, &n);
    if (bytes)
        *bytes = text ? json_array() : NULL;
    for (size_t i = 0; text && bytes && i < n; i++)
        json_array_append_new(*bytes, json_integer((unsigned char)text[i]));
    json_t *value = text ? app_json_text(text, n) : NULL;
    free(text);
    return value;
}

static unsigned code_of(enum akunu_status status)
{
    switch (status) {
    case AKUNU_ERROR_MEMORY: return 503;
    case AKUNU_ERROR_CANCELLED: return 503;
    case AKUNU_ERROR_CONTEXT: return 400;
    default: return 500;
    }
}

bool server_job_failed(struct server_job *job)
{
    if (job->status == AKUNU_OK)
        return false;
    unsigned code = code_of(job->status);
    if (http_code(job->x) == 0) {
        server_fail(job->x, code, NULL, NULL, "%s", job->message);
        return true;
    }
    json_t *error = server_error(job->x, code, NULL, NULL, job->message);
    server_api_of(job->x)->fail_stream(job, error);
    return true;
}

/* ---- What APIs differ in ------------------------------------------------ */
static json_t *openai_error(unsigned code, const char *type, const char *param,
                            const char *code_name, json_t *message)
{
    (void)code;
    return json_pack("{s:{s:o, s:s, s:s?, s:s?}}", "error", "message", message, "type", type,
                     "param", param, "code", code_name);
}

static void openai_fail_stream(struct server_job *job, json_t *error)
{
    server_sse_write(job, error);
    server_sse_end(job);
}

const struct server_api server_openai = { .error = openai_error,
                                          .fail_stream = openai_fail_stream,
                                          .embeddings = server_openai_embeddings,
                                          .has_base64 = true };

/* ---- Completions -------------------------------------------------------- */
/* Takes the choices. NULL: out of memory. */
static json_t *make_completion(const struct server_job *job, const char *object, json_t *choices)
{
    return json_pack("{s:s, s:s, s:I, s:s, s:s, s:o}", "id", job->id, "object", object, "created",
                     (json_int_t)job->created, "model", job->model->id, "system_fingerprint",
                     server_fingerprint(), "choices", choices);
}

void server_sse_write_choice(struct server_job *job, const char *object, json_t *choice)
{
    server_sse_write(job, make_completion(job, object, json_pack("[o]", choice)));
}

static void end_stream(struct server_job *job, const char *object)
{
    if (job->include_usage || job->parts[0].receipt) {
        json_t *last = make_completion(job, object, json_array());
        if (job->include_usage)
            json_object_set_new(last, "usage", server_usage(job));
        server_add_receipts(job, last);
        server_sse_write(job, last);
    }
    server_sse_end(job);
}

void server_end_completions(struct server_job *job, const char *object, server_choice_fn *choice)
{
    if (server_job_failed(job))
        return;
    if (job->stream) {
        end_stream(job, object);
        return;
    }
    json_t *choices = json_array();
    bool has_all = true;
    for (size_t i = 0; has_all && i < job->n_parts; i++)
        has_all = json_array_append_new(choices, choice(&job->parts[i])) == 0;
    json_t *answer = make_completion(job, object, choices);
    if (json_object_set_new(answer, "usage", server_usage(job)) != 0 || !has_all) {
        json_decref(answer);
        answer = NULL; /* out of memory */
    }
    server_add_receipts(job, answer);
    server_answer(job->x, 200, answer);
}
