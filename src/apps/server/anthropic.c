/* POST /v1/messages and /v1/messages/count_tokens: Anthropic's API. Its messages become those of
 * OpenAI's, which templates know, and the reply becomes blocks: thinking, text, tool_use. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/common/conversation.h"
#include "apps/common/json_text.h"
#include "apps/common/output.h"
#include "apps/server/chat.h"

/* ---- Messages ----------------------------------------------------------- */
static bool fail_block(struct server_chat *r, size_t i, const json_t *block)
{
    char shown[APP_DESCRIBED_BYTES];
    const json_t *type = json_object_get(block, "type");
    app_describe_json(type ? type : block, shown);
    server_fail(r->x, 400, "messages", NULL,
                "messages[%zu].content has a block of type %s; expected text, thinking, tool_use "
                "or tool_result with its members, since images and documents cannot be read",
                i, shown);
    return false;
}

/* A tool_use block as a call of OpenAI's. */
static json_t *call_of(const json_t *block)
{
    char *arguments = app_json_write(json_object_get(block, "input"), JSON_COMPACT);
    json_t *call = json_pack("{s:O, s:s, s:{s:O, s:s}}", "id", json_object_get(block, "id"), "type",
                             "function", "function", "name", json_object_get(block, "name"),
                             "arguments", arguments ? arguments : "{}");
    free(arguments);
    return call;
}

/* Adds the blocks of one message: the text, the calls and the reasoning of an answer are one
 * message, and each result of a tool is one of its own. */
static bool add_blocks(struct server_chat *r, size_t i, const char *role, const json_t *blocks)
{
    struct server_text text = { 0 }, thinking = { 0 };
    json_t *calls = json_array();
    size_t n_results = 0;
    bool good = calls != NULL;
    for (size_t k = 0; good && k < json_array_size(blocks); k++) {
        const json_t *block = json_array_get(blocks, k);
        const char *type = json_string_value(json_object_get(block, "type"));
        const json_t *own = json_object_get(block, "text"), *thought;
        thought = json_object_get(block, "thinking");
        type = type ? type : "";
        if (strcmp(type, "text") == 0 && json_is_string(own)) {
            good = (text.n == 0 || server_text_add(&text, "\n", 1)) &&
                   server_text_add(&text, json_string_value(own), json_string_length(own));
        } else if (strcmp(type, "thinking") == 0 && json_is_string(thought)) {
            good =
                server_text_add(&thinking, json_string_value(thought), json_string_length(thought));
        } else if (strcmp(type, "tool_use") == 0) {
            good = (app_json_is_object(json_object_get(block, "input")) &&
                    json_is_string(json_object_get(block, "id")) &&
                    json_array_append_new(calls, call_of(block)) == 0) ||
                   fail_block(r, i, block);
        } else if (strcmp(type, "tool_result") == 0) {
            json_t *content = json_object_get(block, "content"),
                   *id = json_object_get(block, "tool_use_id");
            json_t *result = !json_is_string(id) ? NULL :
                             content             ? server_content_text(content) :
                                                   json_string("");
            good = result ?
                       server_chat_append(r, json_pack("{s:s, s:O, s:o}", "role", "tool",
                                                       "tool_call_id", id, "content", result)) :
                       fail_block(r, i, block);
            n_results++;
        } else {
            good = fail_block(r, i, block);
        }
    }
    /* beside results, a message without a text says nothing */
    bool has_text = text.n > 0 || json_array_size(calls) > 0 || n_results == 0;
    json_t *message =
        json_pack("{s:s, s:o}", "role", role, "content", app_json_text(text.bytes, text.n));
    if (thinking.n > 0)
        json_object_set_new(message, "reasoning_content",
                            app_json_text(thinking.bytes, thinking.n));
    if (json_array_size(calls) > 0)
        json_object_set(message, "tool_calls", calls);
    if (good && has_text)
        good = server_chat_append(r, json_incref(message));
    json_decref(message);
    json_decref(calls);
    free(text.bytes);
    free(thinking.bytes);
    return good;
}

static bool read_system(struct server_chat *r)
{
    const json_t *system = json_object_get(r->body, "system");
    if (!system || json_is_null(system))
        return true;
    json_t *text = server_content_text(system);
    if (text)
        return server_chat_append(r, json_pack("{s:s, s:o}", "role", "system", "content", text));
    server_fail_member(r->x, "system", system, "a text, or blocks of text");
    return false;
}

static bool read_messages(struct server_chat *r)
{
    const json_t *list = json_object_get(r->body, "messages");
    r->messages = json_array();
    if (!json_is_array(list)) {
        server_fail_member(r->x, "messages", list, "a list of messages");
        return false;
    }
    if (!r->messages || !read_system(r))
        return http_code(r->x) ? false : server_chat_fail_memory(r);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *message = json_array_get(list, i),
                     *content = json_object_get(message, "content");
        const char *role = json_string_value(json_object_get(message, "role"));
        if (!role || (strcmp(role, "user") != 0 && strcmp(role, "assistant") != 0)) {
            server_fail(r->x, 400, "messages", NULL, "messages[%zu].role is not user or assistant",
                        i);
            return false;
        }
        if (json_is_array(content) ?
                !add_blocks(r, i, role, content) :
                !server_chat_append(r, json_pack("{s:s, s:O?}", "role", role, "content", content)))
            return false;
    }
    return server_chat_check_messages(r, "messages");
}

/* ---- Tools -------------------------------------------------------------- */
static bool fail_tools(struct server_chat *r, const json_t *found)
{
    server_fail_member(r->x, "tools", found, "a list of tools with name and input_schema");
    return false;
}

static bool read_tools(struct server_chat *r)
{
    const json_t *list = json_object_get(r->body, "tools");
    json_t *tools = json_array();
    bool good = !list || json_is_null(list) || json_is_array(list);
    for (size_t i = 0; good && i < json_array_size(list); i++) {
        const json_t *tool = json_array_get(list, i);
        json_t *schema = json_object_get(tool, "input_schema"),
               *about = json_object_get(tool, "description"), *name = json_object_get(tool, "name");
        good = json_is_string(name) && app_json_is_object(schema) &&
               (!about || json_is_null(about) || json_is_string(about)) &&
               json_array_append_new(
                   tools, json_pack("{s:s, s:{s:O, s:O*, s:O}}", "type", "function", "function",
                                    "name", name, "description", about, "parameters", schema)) == 0;
    }
    good = good ? server_chat_set_tools(r, tools) : fail_tools(r, list);
    json_decref(tools);
    return good;
}

static bool read_choice(struct server_chat *r)
{
    const json_t *choice = json_object_get(r->body, "tool_choice");
    const char *type = json_string_value(json_object_get(choice, "type"));
    const json_t *named = json_object_get(choice, "name");
    const char *name = json_string_value(named);
    bool single = false;
    r->parallel = true;
    if (!choice || json_is_null(choice))
        return true;
    if (!server_get_bool(r->x, choice, "disable_parallel_tool_use", &single))
        return false;
    r->parallel = !single;
    type = type ? type : "";
    const char *own = strcmp(type, "auto") == 0 ? "auto" :
                      strcmp(type, "none") == 0 ? "none" :
                      strcmp(type, "any") == 0  ? "required" :
                      strcmp(type, "tool") == 0 ? name :
                                                  NULL;
    bool misnamed = named && !json_is_null(named) && !name;
    if (!own || misnamed || (!r->tools && strcmp(own, "auto") != 0 && strcmp(own, "none") != 0)) {
        server_fail_member(r->x, "tool_choice", choice,
                           "an object of type auto, any, tool with a name of the tools, or none");
        return false;
    }
    r->choice = strdup(own);
    if (strcmp(own, "none") == 0) {
        free(r->tools);
        r->tools = NULL;
    }
    return r->choice || server_chat_fail_memory(r);
}

/* ---- Sampling ----------------------------------------------------------- */
static bool read_messages_params(struct server_chat *r)
{
    const json_t *max = json_object_get(r->body, "max_tokens");
    if (!server_chat_read_params(r, "stop_sequences", "stop"))
        return false;
    if (!json_is_integer(max))
        server_fail_member(r->x, "max_tokens", max, "a number of tokens");
    return json_is_integer(max);
}

/* ---- Answers ------------------------------------------------------------ */
static const char *stop_reason(const struct server_part *part, const struct akunu_result *result)
{
    if (part->n_calls > 0 && result->stop == AKUNU_STOP_END)
        return "tool_use";
    return result->stop == AKUNU_STOP_LENGTH || result->stop == AKUNU_STOP_CONTEXT ? "max_tokens" :
           result->stop == AKUNU_STOP_TEXT ? "stop_sequence" :
                                             "end_turn";
}

static json_t *usage_of(const struct server_job *job)
{
    uint64_t n_prompt = job->n_prompt ? job->n_prompt : job->sources[0].n_prompt; /* at first */
    return json_pack("{s:I, s:I, s:I, s:I}", "input_tokens", (json_int_t)(n_prompt - job->n_cached),
                     "output_tokens", (json_int_t)job->n_generated, "cache_read_input_tokens",
                     (json_int_t)job->n_cached, "cache_creation_input_tokens", (json_int_t)0);
}

/* {"id", "type": "message", …}; stop NULL: it goes on. */
static json_t *message_of(const struct server_job *job, json_t *content, const char *stop)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:o, s:s?, s:s?, s:o}", "id", job->id, "type", "message",
                     "role", "assistant", "model", job->model->id, "content", content,
                     "stop_reason", stop, "stop_sequence", server_stop_text(job, &job->result),
                     "usage", usage_of(job));
}

/* The blocks of a whole message. */
static json_t *blocks_of(struct server_part *part)
{
    json_t *message = server_chat_message(part), *blocks = json_array();
    json_t *thinking = json_object_get(message, "reasoning_content"),
           *text = json_object_get(message, "content"),
           *calls = json_object_get(message, "tool_calls");
    if (json_string_length(thinking) > 0)
        json_array_append_new(blocks, json_pack("{s:s, s:O, s:s}", "type", "thinking", "thinking",
                                                thinking, "signature", ""));
    if (json_string_length(text) > 0)
        json_array_append_new(blocks, json_pack("{s:s, s:O}", "type", "text", "text", text));
    for (size_t i = 0; i < json_array_size(calls); i++) {
        const json_t *call = json_array_get(calls, i), *function;
        function = json_object_get(call, "function");
        const char *arguments = json_string_value(json_object_get(function, "arguments"));
        json_array_append_new(blocks, json_pack("{s:s, s:O, s:O, s:o}", "type", "tool_use", "id",
                                                json_object_get(call, "id"), "name",
                                                json_object_get(function, "name"), "input",
                                                server_chat_arguments(arguments)));
    }
    part->job->no_memory |= !message;
    json_decref(message);
    return blocks;
}

/* ---- Streams ------------------------------------------------------------ */
/* Blocks of a stream: at most one is open. */
struct blocks {
    json_int_t n;               /* begun so far */
    enum akunu_reply_kind open; /* kind of the open one; 0: none is */
};

static struct blocks *blocks_of_job(struct server_job *job)
{
    return job->own;
}

static void close_block(struct server_job *job)
{
    struct blocks *b = blocks_of_job(job);
    if (b->open)
        server_sse_write_event(
            job, "content_block_stop",
            json_pack("{s:s, s:I}", "type", "content_block_stop", "index", b->n - 1));
    b->open = 0;
}

static void open_block(struct server_job *job, enum akunu_reply_kind kind, json_t *block)
{
    struct blocks *b = blocks_of_job(job);
    close_block(job);
    b->open = kind;
    server_sse_write_event(job, "content_block_start",
                           json_pack("{s:s, s:I, s:o}", "type", "content_block_start", "index",
                                     b->n++, "content_block", block));
}

static void write_delta(struct server_job *job, const char *type, const char *name, json_t *text)
{
    server_sse_write_event(job, "content_block_delta",
                           json_pack("{s:s, s:I, s:{s:s, s:o}}", "type", "content_block_delta",
                                     "index", blocks_of_job(job)->n - 1, "delta", "type", type,
                                     name, text));
}

static void on_reply(const struct akunu_reply_event *event, void *user)
{
    struct server_part *part = user;
    struct server_job *job = part->job;
    part->n_calls += event->kind == AKUNU_REPLY_CALL;
    if (!job->stream || !job->x)
        return;
    json_t *text = app_json_text(event->text, event->n_bytes);
    enum akunu_reply_kind open = blocks_of_job(job)->open;
    switch (event->kind) {
    case AKUNU_REPLY_REASONING:
        if (open != event->kind)
            open_block(
                job, event->kind,
                json_pack("{s:s, s:s, s:s}", "type", "thinking", "thinking", "", "signature", ""));
        write_delta(job, "thinking_delta", "thinking", text);
        return;
    case AKUNU_REPLY_CONTENT:
        if (open != event->kind)
            open_block(job, event->kind, json_pack("{s:s, s:s}", "type", "text", "text", ""));
        write_delta(job, "text_delta", "text", text);
        return;
    case AKUNU_REPLY_CALL:
        open_block(job, event->kind,
                   json_pack("{s:s, s:s, s:o, s:{}}", "type", "tool_use", "id", event->id, "name",
                             text, "input"));
        return;
    case AKUNU_REPLY_ARGUMENTS: write_delta(job, "input_json_delta", "partial_json", text); return;
    case AKUNU_REPLY_CALL_END: close_block(job); break;
    case AKUNU_REPLY_BROKEN: break;
    }
    json_decref(text);
}

static void begin_stream(struct server_job *job)
{
    if (job->stream)
        server_sse_write_event(job, "message_start",
                               json_pack("{s:s, s:o}", "type", "message_start", "message",
                                         message_of(job, json_array(), NULL)));
}

static void messages_on_end(struct server_part *part, const struct server_event *event)
{
    if (akunu_reply_end(part->reply) != AKUNU_OK)
        part->job->no_memory = true;
    part->finish = stop_reason(part, &event->result);
}

static void messages_on_done(struct server_job *job)
{
    struct server_part *part = &job->parts[0];
    if (server_job_failed(job))
        return;
    if (!job->stream) {
        json_t *message = message_of(job, blocks_of(part), part->finish);
        server_add_receipts(job, message);
        server_answer(job->x, 200, message);
        return;
    }
    close_block(job);
    server_sse_write_event(job, "message_delta",
                           json_pack("{s:s, s:{s:s, s:s?}, s:o}", "type", "message_delta", "delta",
                                     "stop_reason", part->finish, "stop_sequence",
                                     server_stop_text(job, &job->result), "usage", usage_of(job)));
    json_t *last = json_pack("{s:s}", "type", "message_stop");
    server_add_receipts(job, last);
    server_sse_write_event(job, "message_stop", last);
    http_finish(job->x);
}

static void messages_release(struct server_job *job)
{
    free(job->own);
}

static bool begin_blocks(struct server_job *job, const json_t *body)
{
    (void)body;
    job->own = calloc(1, sizeof(struct blocks));
    return job->own != NULL;
}

static const struct server_style style = { .prefix = "msg_",
                                           .prepare = begin_blocks,
                                           .reply = on_reply,
                                           .begin = begin_stream,
                                           .token = server_chat_token,
                                           .end = messages_on_end,
                                           .done = messages_on_done,
                                           .release = messages_release };

/* ---- Requests ----------------------------------------------------------- */
static bool read_request(struct server_chat *r)
{
    return read_messages(r) && read_tools(r) && read_choice(r) && server_chat_read_kwargs(r);
}

struct server_commit server_messages(struct server_model *m, struct http_exchange *x,
                                     const json_t *body)
{
    struct server_chat *r = server_chat_new(m, x, body);
    return server_chat_commit(r, r && read_messages_params(r) && read_request(r) &&
                                     server_chat_make_job(r, &style));
}

struct server_commit server_count_tokens(struct server_model *m, struct http_exchange *x,
                                         const json_t *body)
{
    struct server_chat *r = server_chat_new(m, x, body);
    if (r && read_request(r) && server_chat_make_prompt(r))
        server_answer(x, 200, json_pack("{s:I}", "input_tokens", (json_int_t)r->prompt.n));
    return server_chat_commit(r, false);
}

/* ---- What APIs differ in ------------------------------------------------ */
static json_t *anthropic_error(unsigned code, const char *type, const char *param,
                               const char *code_name, json_t *message)
{
    (void)param, (void)code_name;
    type = code == 503 ? "overloaded_error" : code == 500 ? "api_error" : type;
    return json_pack("{s:s, s:{s:s, s:o}}", "type", "error", "error", "type", type, "message",
                     message);
}

static void anthropic_fail_stream(struct server_job *job, json_t *error)
{
    server_sse_write_event(job, "error", error);
    http_finish(job->x);
}

const struct server_api server_anthropic = { .error = anthropic_error,
                                             .fail_stream = anthropic_fail_stream };
