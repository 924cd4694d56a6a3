/* POST /v1/responses: OpenAI's Responses API, without state: nothing is stored, so a conversation
 * comes whole in `input`. A reply is a list of items: reasoning, message, function_call. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/common/json_text.h"
#include "apps/common/output.h"
#include "apps/server/chat.h"

/* ---- Input -------------------------------------------------------------- */
static bool fail_item(struct server_chat *r, size_t i, const char *expected)
{
    server_fail(r->x, 400, "input", NULL, "input[%zu]: expected %s", i, expected);
    return false;
}

/* A call of the assistant: it joins the message before it, if that has calls. */
static bool add_call(struct server_chat *r, size_t i, const json_t *item)
{
    json_t *name = json_object_get(item, "name"), *arguments = json_object_get(item, "arguments"),
           *id = json_object_get(item, "call_id");
    size_t n = json_array_size(r->messages);
    json_t *calls = n ? json_object_get(json_array_get(r->messages, n - 1), "tool_calls") : NULL;
    if (!json_is_string(name) || !json_is_string(arguments) || !json_is_string(id))
        return fail_item(r, i, "a function_call with call_id, name and arguments");
    json_t *call = json_pack("{s:O, s:s, s:{s:O, s:O}}", "id", id, "type", "function", "function",
                             "name", name, "arguments", arguments);
    if (calls)
        return json_array_append_new(calls, call) == 0 || server_chat_fail_memory(r);
    return server_chat_append(
        r, json_pack("{s:s, s:n, s:[o]}", "role", "assistant", "content", "tool_calls", call));
}

static bool add_item(struct server_chat *r, size_t i, const json_t *item)
{
    const json_t *kind = json_object_get(item, "type");
    const char *type = json_string_value(kind);
    json_t *role = json_object_get(item, "role");
    if (type && strcmp(type, "reasoning") == 0)
        return true; /* templates drop the reasoning of earlier turns */
    if (type && strcmp(type, "function_call") == 0)
        return add_call(r, i, item);
    bool result = type && strcmp(type, "function_call_output") == 0;
    json_t *text = server_content_text(json_object_get(item, result ? "output" : "content"));
    if (!text || !json_is_string(result ? json_object_get(item, "call_id") : role) ||
        (kind && !result && !(type && strcmp(type, "message") == 0))) {
        json_decref(text);
        return fail_item(r, i,
                         "a message of text, a function_call or a function_call_output, "
                         "since images and files cannot be read");
    }
    if (result)
        return server_chat_append(r, json_pack("{s:s, s:O, s:o}", "role", "tool", "tool_call_id",
                                               json_object_get(item, "call_id"), "content", text));
    return server_chat_append(r, json_pack("{s:O, s:o}", "role", role, "content", text));
}

static bool read_input(struct server_chat *r)
{
    const char *instructions = NULL;
    json_t *input = json_object_get(r->body, "input");
    r->messages = json_array();
    if (!server_get_string(r->x, r->body, "instructions", &instructions))
        return false;
    if (instructions &&
        !server_chat_append(r, json_pack("{s:s, s:s}", "role", "system", "content", instructions)))
        return false;
    if (!json_is_string(input) && !json_is_array(input)) {
        server_fail_member(r->x, "input", input, "a text, or a list of items");
        return false;
    }
    if (json_is_string(input) &&
        !server_chat_append(r, json_pack("{s:s, s:O}", "role", "user", "content", input)))
        return false;
    for (size_t i = 0; i < json_array_size(input); i++)
        if (!add_item(r, i, json_array_get(input, i)))
            return false;
    return server_chat_check_messages(r, "input");
}

/* ---- Tools and format --------------------------------------------------- */
/* Functions in the form of chat completions; others are hosted elsewhere. */
static bool read_tools(struct server_chat *r)
{
    const json_t *list = json_object_get(r->body, "tools");
    json_t *tools = json_array();
    bool good = !list || json_is_null(list) || json_is_array(list);
    for (size_t i = 0; good && i < json_array_size(list); i++) {
        json_t *tool = json_array_get(list, i), *type = json_object_get(tool, "type");
        good = json_is_string(type) && strcmp(json_string_value(type), "function") == 0;
        if (good) {
            json_t *function = json_copy(tool);
            json_object_del(function, "type");
            good = json_array_append_new(tools, json_pack("{s:s, s:o}", "type", "function",
                                                          "function", function)) == 0;
        }
    }
    if (!good)
        server_fail_member(r->x, "tools", list, "a list of functions: no tools are hosted here");
    else
        good = server_chat_set_tools(r, tools);
    json_decref(tools);
    return good;
}

static bool read_choice(struct server_chat *r)
{
    const json_t *choice = json_object_get(r->body, "tool_choice");
    const char *name = app_json_is_object(choice) ?
                           json_string_value(json_object_get(choice, "name")) :
                           json_string_value(choice);
    r->parallel = true;
    if (!server_get_bool(r->x, r->body, "parallel_tool_calls", &r->parallel))
        return false;
    if (!choice || json_is_null(choice))
        return true;
    bool needs_tools = name && strcmp(name, "auto") != 0 && strcmp(name, "none") != 0;
    if (!name || (needs_tools && !r->tools)) {
        server_fail_member(r->x, "tool_choice", choice,
                           "auto, none, required, or an object with the name of a tool");
        return false;
    }
    if (strcmp(name, "none") == 0) {
        free(r->tools);
        r->tools = NULL;
    }
    r->choice = strdup(name);
    return r->choice || server_chat_fail_memory(r);
}

static bool read_format(struct server_chat *r)
{
    const json_t *text_options = json_object_get(r->body, "text"),
                 *format = json_object_get(text_options, "format"),
                 *schema = json_object_get(format, "schema");
    const char *type = json_string_value(json_object_get(format, "type"));
    if (text_options && !json_is_null(text_options) && !app_json_is_object(text_options)) {
        server_fail_member(r->x, "text", text_options, "an object with format");
        return false;
    }
    if (!format || json_is_null(format) || (type && strcmp(type, "text") == 0))
        return true;
    if (type && strcmp(type, "json_object") == 0)
        return server_chat_set_schema(r, "text.format", "{\"type\": \"object\"}");
    if (!type || strcmp(type, "json_schema") != 0 || !app_json_is_object(schema)) {
        server_fail_member(r->x, "text.format", format,
                           "an object of type text, json_object, or json_schema with a schema");
        return false;
    }
    char *text = app_json_write(schema, JSON_COMPACT);
    bool good = text ? server_chat_set_schema(r, "text.format", text) : server_chat_fail_memory(r);
    free(text);
    return good;
}

static bool refuse_state(struct server_chat *r)
{
    static const char *const names[] = { "previous_response_id", "conversation", "background" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const json_t *found = json_object_get(r->body, names[i]);
        if (found && !json_is_null(found) && !json_is_false(found)) {
            server_fail(r->x, 400, names[i], NULL,
                        "%s is not supported: nothing is stored, so input has the whole "
                        "conversation",
                        names[i]);
            return true;
        }
    }
    return false;
}

/* ---- Items -------------------------------------------------------------- */
struct response {
    json_t *output;             /* items that are complete */
    enum akunu_reply_kind open; /* kind of the item that grows; 0: none does */
    struct server_text text;    /* of it */
    char id[64], call[64];
    json_t *name;           /* of its tool */
    json_t *tools, *choice; /* as they were asked for; NULL: they were not */
    bool parallel;
    json_int_t sequence;    /* events so far */
    const char *incomplete; /* why the reply ended early; NULL: it did not */
};

static json_t *usage_of(const struct server_job *job)
{
    json_int_t n_in = (json_int_t)job->n_prompt, n_out = (json_int_t)job->n_generated;
    return json_pack("{s:I, s:{s:I}, s:I, s:{s:I}, s:I}", "input_tokens", n_in,
                     "input_tokens_details", "cached_tokens", (json_int_t)job->n_cached,
                     "output_tokens", n_out, "output_tokens_details", "reasoning_tokens",
                     (json_int_t)0, "total_tokens", n_in + n_out);
}

/* The response; `status` "in_progress": without output and usage. */
static json_t *response_of(const struct server_job *job, const char *status)
{
    const struct response *o = job->own;
    bool goes_on = strcmp(status, "in_progress") == 0;
    json_t *details = o->incomplete ? json_pack("{s:s}", "reason", o->incomplete) : json_null();
    json_t *choice =
        json_is_null(o->choice) || !o->choice ? json_string("auto") : json_incref(o->choice);
    json_t *tools = json_is_array(o->tools) ? json_incref(o->tools) : json_array();
    return json_pack("{s:s, s:s, s:I, s:s, s:n, s:o, s:s, s:o, s:b, s:o, s:o, s:{}, s:o}", "id",
                     job->id, "object", "response", "created_at", (json_int_t)job->created,
                     "status", status, "error", "incomplete_details", details, "model",
                     job->model->id, "output", goes_on ? json_array() : json_incref(o->output),
                     "parallel_tool_calls", (int)o->parallel, "tool_choice", choice, "tools", tools,
                     "metadata", "usage", goes_on ? json_null() : usage_of(job));
}

/* Writes an event of a stream; `value` gets its type and number. */
static void write_event(struct server_job *job, const char *type, json_t *value)
{
    struct response *o = job->own;
    if (!job->stream || !job->x) {
        json_decref(value);
        return;
    }
    json_object_set_new(value, "type", json_string(type));
    json_object_set_new(value, "sequence_number", json_integer(o->sequence++));
    server_sse_write_event(job, type, value);
}

static json_int_t index_of(const struct response *o)
{
    return (json_int_t)json_array_size(o->output);
}

/* The item that grows, with its text so far. */
static json_t *item_of(const struct response *o, const char *status)
{
    json_t *text = app_json_text(o->text.bytes, o->text.n);
    if (o->open == AKUNU_REPLY_CALL)
        return json_pack("{s:s, s:s, s:s, s:O, s:o, s:s}", "type", "function_call", "id", o->id,
                         "call_id", o->call, "name", o->name, "arguments", text, "status", status);
    if (o->open == AKUNU_REPLY_REASONING)
        return json_pack("{s:s, s:s, s:[], s:[{s:s, s:o}]}", "type", "reasoning", "id", o->id,
                         "summary", "content", "type", "reasoning_text", "text", text);
    return json_pack("{s:s, s:s, s:s, s:s, s:[{s:s, s:o, s:[]}]}", "type", "message", "id", o->id,
                     "role", "assistant", "status", status, "content", "type", "output_text",
                     "text", text, "annotations");
}

static json_t *output_part(const struct response *o)
{
    return json_pack("{s:s, s:o, s:[]}", "type", "output_text", "text",
                     app_json_text(o->text.bytes, o->text.n), "annotations");
}

/* {"item_id", "output_index", "content_index", NAME: value} */
static json_t *place_of(const struct response *o, const char *name, json_t *value)
{
    return json_pack("{s:s, s:I, s:I, s:o}", "item_id", o->id, "output_index", index_of(o),
                     "content_index", (json_int_t)0, name, value);
}

static void close_item(struct server_job *job, const char *status)
{
    struct response *o = job->own;
    if (!o->open)
        return;
    json_t *text = app_json_text(o->text.bytes, o->text.n), *item = item_of(o, status);
    if (o->open == AKUNU_REPLY_CONTENT) {
        write_event(job, "response.output_text.done", place_of(o, "text", text));
        write_event(job, "response.content_part.done", place_of(o, "part", output_part(o)));
    } else if (o->open == AKUNU_REPLY_REASONING) {
        write_event(job, "response.reasoning_text.done", place_of(o, "text", text));
    } else {
        write_event(job, "response.function_call_arguments.done", place_of(o, "arguments", text));
    }
    write_event(job, "response.output_item.done",
                json_pack("{s:I, s:O?}", "output_index", index_of(o), "item", item));
    if (json_array_append_new(o->output, item) != 0)
        job->no_memory = true;
    o->open = 0;
    o->text.n = 0;
    json_decref(o->name);
    o->name = NULL;
}

static void open_item(struct server_job *job, enum akunu_reply_kind kind, const char *prefix)
{
    struct response *o = job->own;
    close_item(job, "completed");
    o->open = kind;
    o->text.n = 0;
    snprintf(o->id, sizeof o->id, "%s%s-%lld", prefix, job->id + strlen("resp_"),
             (long long)index_of(o));
    write_event(
        job, "response.output_item.added",
        json_pack("{s:I, s:o}", "output_index", index_of(o), "item", item_of(o, "in_progress")));
    if (kind == AKUNU_REPLY_CONTENT)
        write_event(job, "response.content_part.added", place_of(o, "part", output_part(o)));
}

static void responses_add_text(struct server_job *job, const char *type,
                               const struct akunu_reply_event *event)
{
    struct response *o = job->own;
    if (!server_text_add(&o->text, event->text, event->n_bytes))
        job->no_memory = true;
    write_event(job, type, place_of(o, "delta", app_json_text(event->text, event->n_bytes)));
}

static void on_reply(const struct akunu_reply_event *event, void *user)
{
    struct server_part *part = user;
    struct server_job *job = part->job;
    struct response *o = job->own;
    switch (event->kind) {
    case AKUNU_REPLY_REASONING:
        if (o->open != event->kind)
            open_item(job, event->kind, "rs_");
        responses_add_text(job, "response.reasoning_text.delta", event);
        return;
    case AKUNU_REPLY_CONTENT:
        if (o->open != event->kind)
            open_item(job, event->kind, "msg_");
        responses_add_text(job, "response.output_text.delta", event);
        return;
    case AKUNU_REPLY_CALL:
        close_item(job, "completed");
        o->name = app_json_text(event->text, event->n_bytes);
        snprintf(o->call, sizeof o->call, "%s", event->id);
        open_item(job, event->kind, "fc_");
        return;
    case AKUNU_REPLY_ARGUMENTS:
        responses_add_text(job, "response.function_call_arguments.delta", event);
        return;
    case AKUNU_REPLY_CALL_END: close_item(job, "completed"); return;
    case AKUNU_REPLY_BROKEN:
        if (o->open == AKUNU_REPLY_CALL)
            close_item(job, "incomplete");
        return;
    }
}

/* ---- The answer --------------------------------------------------------- */
static void begin_stream(struct server_job *job)
{
    if (!job->stream)
        return;
    write_event(job, "response.created",
                json_pack("{s:o}", "response", response_of(job, "in_progress")));
    write_event(job, "response.in_progress",
                json_pack("{s:o}", "response", response_of(job, "in_progress")));
}

static void responses_on_end(struct server_part *part, const struct server_event *event)
{
    struct response *o = part->job->own;
    if (akunu_reply_end(part->reply) != AKUNU_OK)
        part->job->no_memory = true;
    if (strcmp(server_finish_reason(&event->result), "length") == 0)
        o->incomplete = "max_output_tokens";
}

static void responses_on_done(struct server_job *job)
{
    const struct response *o = job->own;
    const char *status = o->incomplete ? "incomplete" : "completed";
    if (server_job_failed(job))
        return;
    close_item(job, status);
    json_t *response = response_of(job, status);
    server_add_receipts(job, response);
    if (!job->stream) {
        server_answer(job->x, 200, response);
        return;
    }
    write_event(job, o->incomplete ? "response.incomplete" : "response.completed",
                json_pack("{s:o}", "response", response));
    http_finish(job->x);
}

static bool prepare_response(struct server_job *job, const json_t *body)
{
    struct response *o = calloc(1, sizeof *o);
    if (o && !(o->output = json_array())) {
        free(o);
        o = NULL;
    }
    job->own = o;
    if (!o)
        return false;
    o->tools = json_incref(json_object_get(body, "tools"));
    o->choice = json_incref(json_object_get(body, "tool_choice"));
    o->parallel = !json_is_false(json_object_get(body, "parallel_tool_calls"));
    return true;
}

static void responses_release(struct server_job *job)
{
    struct response *o = job->own;
    if (!o)
        return;
    json_decref(o->output);
    json_decref(o->name);
    json_decref(o->tools);
    json_decref(o->choice);
    free(o->text.bytes);
    free(o);
}

static const struct server_style style = { .prefix = "resp_",
                                           .prepare = prepare_response,
                                           .reply = on_reply,
                                           .begin = begin_stream,
                                           .token = server_chat_token,
                                           .end = responses_on_end,
                                           .done = responses_on_done,
                                           .release = responses_release };

/* ---- Requests ----------------------------------------------------------- */
static bool read_request(struct server_chat *r)
{
    return !refuse_state(r) && read_input(r) && read_tools(r) && read_choice(r) && read_format(r) &&
           server_chat_read_kwargs(r);
}

struct server_commit server_responses(struct server_model *m, struct http_exchange *x,
                                      const json_t *body)
{
    struct server_chat *r = server_chat_new(m, x, body);
    bool good = r && server_chat_read_params(r, "max_output_tokens", "max_completion_tokens") &&
                read_request(r) && server_chat_make_job(r, &style);
    return server_chat_commit(r, good);
}

struct server_commit server_responses_count(struct server_model *m, struct http_exchange *x,
                                            const json_t *body)
{
    struct server_chat *r = server_chat_new(m, x, body);
    if (r && read_request(r) && server_chat_make_prompt(r))
        server_answer(x, 200,
                      json_pack("{s:s, s:I}", "object", "response.input_tokens", "input_tokens",
                                (json_int_t)r->prompt.n));
    return server_chat_commit(r, false);
}
