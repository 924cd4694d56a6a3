/* POST /v1/chat/completions: a conversation becomes a prompt, and the text a message with
 * reasoning, content and calls. Also its prompt, and the number of its tokens. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/common/conversation.h"
#include "apps/common/json_text.h"
#include "apps/common/output.h"
#include "apps/server/chat.h"

/* ---- Reading ------------------------------------------------------------ */
static bool read_messages(struct server_chat *r)
{
    const json_t *found = json_object_get(r->body, "messages");
    if (!json_is_array(found)) {
        server_fail_member(r->x, "messages", found, "a list of messages");
        return false;
    }
    r->messages = json_deep_copy(found);
    if (!r->messages)
        return server_chat_fail_memory(r);
    return server_chat_check_messages(r, "messages");
}

/* "auto", "none", "required", a tool's name, or the object that names one. */
static bool read_choice(struct server_chat *r)
{
    const json_t *found = json_object_get(r->body, "tool_choice");
    if (!found || json_is_null(found))
        return true;
    if (!json_is_string(found) && !app_json_is_object(found)) {
        server_fail_member(r->x, "tool_choice", found,
                           "auto, none, required or an object that names a tool");
        return false;
    }
    r->choice = json_is_string(found) ? strdup(json_string_value(found)) :
                                        app_json_write(found, JSON_COMPACT);
    if (!r->choice)
        return server_chat_fail_memory(r);
    bool needs_tools = strcmp(r->choice, "none") != 0 && strcmp(r->choice, "auto") != 0;
    if (needs_tools && json_array_size(json_object_get(r->body, "tools")) == 0) {
        server_fail(r->x, 400, "tool_choice", NULL,
                    "tool_choice asks for a call, and there are "
                    "no tools");
        return false;
    }
    return true;
}

static bool read_tools(struct server_chat *r)
{
    const json_t *found = json_object_get(r->body, "tools");
    r->parallel = true;
    if (!server_get_bool(r->x, r->body, "parallel_tool_calls", &r->parallel) || !read_choice(r) ||
        !server_chat_set_tools(r, found))
        return false;
    if (r->choice && strcmp(r->choice, "none") == 0) {
        free(r->tools);
        r->tools = NULL;
    }
    return true;
}

/* The type of response_format; it is always held. */
static bool read_format(struct server_chat *r)
{
    const json_t *format = json_object_get(r->body, "response_format");
    const char *type = json_string_value(json_object_get(format, "type"));
    if (!format || json_is_null(format) || (type && strcmp(type, "text") == 0))
        return true;
    const json_t *named = json_object_get(format, "json_schema");
    const json_t *schema = json_object_get(app_json_is_object(named) ? named : format, "schema");
    if (type && strcmp(type, "json_object") == 0 && !schema)
        return server_chat_set_schema(r, "response_format", "{\"type\": \"object\"}");
    if (!type || (strcmp(type, "json_schema") != 0 && strcmp(type, "json_object") != 0)) {
        server_fail_member(r->x, "response_format", format,
                           "an object whose type is text, json_object or json_schema");
        return false;
    }
    if (!app_json_is_object(schema) && !json_is_boolean(schema)) {
        server_fail_member(r->x, "response_format.json_schema.schema", schema, "a JSON Schema");
        return false;
    }
    char *text = app_json_write(schema, JSON_COMPACT | JSON_ENCODE_ANY);
    bool good =
        text ? server_chat_set_schema(r, "response_format", text) : server_chat_fail_memory(r);
    free(text);
    return good;
}

/* llama-server's own: a grammar in GBNF. */
static bool read_grammar(struct server_chat *r)
{
    const char *text = NULL;
    if (!server_get_string(r->x, r->body, "grammar", &text) || !text || !*text)
        return http_code(r->x) == 0;
    if (r->content) {
        server_fail(r->x, 400, "grammar", NULL,
                    "grammar and response_format: only one of them "
                    "can be given");
        return false;
    }
    r->params.constraint.grammar = text;
    r->content = akunu_grammar_parse(text, strlen(text));
    if (!r->content)
        server_fail_library(r->x, "grammar");
    return r->content != NULL;
}

static bool read_logprobs(struct server_chat *r)
{
    bool wanted = false;
    int64_t n_top = -1;
    if (!server_get_bool(r->x, r->body, "logprobs", &wanted) ||
        !server_get_integer(r->x, r->body, "top_logprobs", 0, 100, &n_top))
        return false;
    if (n_top >= 0 && !wanted) {
        server_fail(r->x, 400, "top_logprobs", NULL, "top_logprobs needs logprobs");
        return false;
    }
    r->params.n_top = wanted ? (n_top > 0 ? n_top : 0) : -1;
    r->params.generation.n_top_logprobs = (uint32_t)(n_top > 0 ? n_top : 0);
    return true;
}

/* ---- Chunks ------------------------------------------------------------- */
/* Takes the log-probabilities that were not reported yet; null if none are asked for. */
static json_t *take_logprobs(struct server_part *part)
{
    if (part->job->n_top < 0)
        return json_null();
    json_t *list = part->logprobs ? part->logprobs : json_array();
    part->logprobs = NULL;
    return json_pack("{s:o}", "content", list);
}

static void write_delta(struct server_part *part, json_t *delta, const char *finish)
{
    json_t *choice = json_pack("{s:I, s:o, s:o, s:s?}", "index", (json_int_t)part->index, "delta",
                               delta, "logprobs", take_logprobs(part), "finish_reason", finish);
    server_sse_write_choice(part->job, "chat.completion.chunk", choice);
}

/* Events of the reply's parser, while it streams. */
static void on_reply(const struct akunu_reply_event *event, void *user)
{
    struct server_part *part = user;
    json_t *text = app_json_text(event->text, event->n_bytes), *delta = NULL;
    json_int_t call = (json_int_t)part->n_calls - 1;
    if (!part->job->stream || !part->job->x) {
        json_decref(text);
        return;
    }
    switch (event->kind) {
    case AKUNU_REPLY_REASONING: delta = json_pack("{s:o}", "reasoning_content", text); break;
    case AKUNU_REPLY_CONTENT: delta = json_pack("{s:o}", "content", text); break;
    case AKUNU_REPLY_CALL:
        delta = json_pack("{s:[{s:I, s:s, s:s, s:{s:o, s:s}}]}", "tool_calls", "index",
                          (json_int_t)part->n_calls++, "id", event->id, "type", "function",
                          "function", "name", text, "arguments", "");
        break;
    case AKUNU_REPLY_ARGUMENTS:
        delta = json_pack("{s:[{s:I, s:{s:o}}]}", "tool_calls", "index", call, "function",
                          "arguments", text);
        break;
    case AKUNU_REPLY_CALL_END:
    case AKUNU_REPLY_BROKEN: json_decref(text); return;
    }
    write_delta(part, delta, NULL);
}

/* ---- Tokens ------------------------------------------------------------- */
static void add_logprobs(struct server_part *part, const struct server_event *event)
{
    const struct server_model *m = part->job->model;
    json_t *list = json_array(), *bytes, *text;
    if (part->job->n_top < 0 || event->token < 0) {
        json_decref(list);
        return;
    }
    for (size_t i = 0; i < event->n_top && event->top[i].token >= 0; i++) {
        text = server_token_text(m, event->top[i].token, &bytes);
        json_array_append_new(list, json_pack("{s:o, s:o, s:o}", "token", text, "logprob",
                                              app_json_real((double)event->top[i].logprob), "bytes",
                                              bytes));
    }
    if (!part->logprobs)
        part->logprobs = json_array();
    text = server_token_text(m, event->token, &bytes);
    if (json_array_append_new(part->logprobs,
                              json_pack("{s:o, s:o, s:o, s:o}", "token", text, "logprob",
                                        app_json_real((double)event->logprob), "bytes", bytes,
                                        "top_logprobs", list)) != 0)
        part->job->no_memory = true;
}

static void on_token(struct server_part *part, const struct server_event *event)
{
    add_logprobs(part, event);
    server_chat_token(part, event);
}

static void chat_on_end(struct server_part *part, const struct server_event *event)
{
    if (akunu_reply_end(part->reply) != AKUNU_OK) {
        part->job->no_memory = true;
        return;
    }
    json_t *message = server_chat_message(part);
    bool calls = json_array_size(json_object_get(message, "tool_calls")) > 0;
    json_decref(message);
    part->finish = server_finish_reason(&event->result);
    if (calls && strcmp(part->finish, "stop") == 0)
        part->finish = "tool_calls";
    if (part->job->stream)
        write_delta(part, json_object(), part->finish);
}

/* ---- The answer --------------------------------------------------------- */
static json_t *choice_of(struct server_part *part)
{
    return json_pack("{s:I, s:o, s:o, s:s}", "index", (json_int_t)part->index, "message",
                     server_chat_message(part), "logprobs", take_logprobs(part), "finish_reason",
                     part->finish);
}

static void chat_on_done(struct server_job *job)
{
    server_end_completions(job, job->stream ? "chat.completion.chunk" : "chat.completion",
                           choice_of);
}

/* Each completion's stream begins with its role. */
static void first_deltas(struct server_job *job)
{
    for (size_t i = 0; job->stream && i < job->n_parts; i++)
        write_delta(&job->parts[i], json_pack("{s:s, s:n}", "role", "assistant", "content"), NULL);
}

static const struct server_style style = { .prefix = "chatcmpl-",
                                           .reply = on_reply,
                                           .begin = first_deltas,
                                           .token = on_token,
                                           .end = chat_on_end,
                                           .done = chat_on_done };

/* ---- The request -------------------------------------------------------- */
struct server_commit server_chat_completions(struct server_model *m, struct http_exchange *x,
                                             const json_t *body)
{
    struct server_chat *r = server_chat_new(m, x, body);
    bool good = r && server_read_params(m, x, body, &r->params) && read_messages(r) &&
                read_tools(r) && server_chat_read_kwargs(r) && read_format(r) && read_grammar(r) &&
                read_logprobs(r) && server_chat_make_job(r, &style);
    return server_chat_commit(r, good);
}

static bool make_prompt(struct server_chat *r)
{
    return r && read_messages(r) && read_tools(r) && server_chat_read_kwargs(r) &&
           server_chat_make_prompt(r);
}

struct server_commit server_chat_count(struct server_model *m, struct http_exchange *x,
                                       const json_t *body)
{
    struct server_chat *r = server_chat_new(m, x, body);
    if (make_prompt(r))
        server_answer(x, 200,
                      json_pack("{s:s, s:I}", "object", "response.input_tokens", "input_tokens",
                                (json_int_t)r->prompt.n));
    return server_chat_commit(r, false);
}

struct server_commit server_apply_template(struct server_model *m, struct http_exchange *x,
                                           const json_t *body)
{
    struct server_chat *r = server_chat_new(m, x, body);
    if (make_prompt(r))
        server_answer(x, 200, json_pack("{s:o}", "prompt", app_json_text(r->text, r->n_text)));
    return server_chat_commit(r, false);
}
