/* Ollama's API: /api/chat, /api/generate, /api/embed and what its clients ask about models. Streams
 * are lines of JSON. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "apps/common/conversation.h"
#include "apps/common/json_text.h"
#include "apps/common/output.h"
#include "apps/server/chat.h"
#include "apps/server/embedder.h"

/* ---- Models ------------------------------------------------------------- */
/* A time as RFC 3339 has it. */
static void format_time(time_t at, char out[32])
{
    struct tm utc;
    gmtime_r(&at, &utc);
    strftime(out, 32, "%Y-%m-%dT%H:%M:%SZ", &utc);
}

static json_t *details_of(const struct server_model *m)
{
    const struct akunu_model_info *info = &m->loaded.info;
    char size[32];
    snprintf(size, sizeof size, "%.1fB", (double)info->n_parameters / 1e9);
    return json_pack("{s:s, s:s, s:[s], s:s, s:s}", "format", info->format, "family",
                     info->architecture, "families", info->architecture, "parameter_size", size,
                     "quantization_level", info->weight_type);
}

/* Of a model that is not loaded, its name is what is known. */
static json_t *value_of(const struct server_model *m)
{
    char modified[32];
    struct akunu_file_info file = { 0 };
    bool ready = m->state == SERVER_MODEL_READY;
    format_time((time_t)m->server->created, modified);
    if (ready)
        akunu_file_get_info(akunu_model_file(m->loaded.model), &file, sizeof file);
    return json_pack("{s:s, s:s, s:s, s:I, s:s, s:o}", "name", m->id, "model", m->id, "modified_at",
                     modified, "size", (json_int_t)file.bytes, "digest", "", "details",
                     ready ? details_of(m) : json_object());
}

void server_ollama_version(struct server *s, struct http_exchange *x)
{
    (void)s;
    server_answer(x, 200, json_pack("{s:s}", "version", akunu_version()));
}

void server_ollama_tags(struct server *s, struct http_exchange *x)
{
    json_t *list = json_array();
    for (size_t i = 0; i < s->n_models; i++)
        json_array_append_new(list, value_of(&s->models[i]));
    server_answer(x, 200, json_pack("{s:o}", "models", list));
}

void server_ollama_ps(struct server *s, struct http_exchange *x)
{
    json_t *list = json_array();
    for (size_t i = 0; i < s->n_models; i++) {
        const struct server_model *m = &s->models[i];
        if (m->state != SERVER_MODEL_READY)
            continue;
        json_t *value = value_of(m);
        uint32_t n_ctx =
            m->scheduler ? akunu_scheduler_context(m->scheduler) : m->loaded.info.context;
        json_object_set_new(value, "size_vram", json_integer(0));
        json_object_set_new(value, "context_length", json_integer((json_int_t)n_ctx));
        json_array_append_new(list, value);
    }
    server_answer(x, 200, json_pack("{s:o}", "models", list));
}

struct server_commit server_ollama_show(struct server_model *m, struct http_exchange *x,
                                        const json_t *body)
{
    const struct akunu_model_info *info = &m->loaded.info;
    (void)body;
    server_answer(x, 200,
                  json_pack("{s:s, s:s, s:s, s:o, s:{s:s, s:I, s:I}, s:o}", "modelfile", "",
                            "parameters", "", "template", m->template_text ? m->template_text : "",
                            "details", details_of(m), "model_info", "general.architecture",
                            info->architecture, "general.parameter_count",
                            (json_int_t)info->n_parameters, "context_length",
                            (json_int_t)info->context, "capabilities", server_capabilities(m)));
    return server_answered;
}

/* ---- Requests ----------------------------------------------------------- */
/* Members of "options" under the names that server_read_params knows, on top of the body. */
static json_t *flatten_options(const json_t *body)
{
    json_t *copy = json_copy((json_t *)(uintptr_t)body);
    json_t *options = json_object_get(body, "options");
    if (copy && app_json_is_object(options))
        json_object_update(copy, options);
    json_t *n_predict = json_object_get(options, "num_predict");
    if (copy && n_predict)
        json_object_set(copy, "n_predict", n_predict);
    if (copy && !json_object_get(body, "stream")) /* unlike elsewhere, the default */
        json_object_set_new(copy, "stream", json_true());
    return copy;
}

/* "json", or a JSON Schema. */
static bool read_format(struct server_chat *r)
{
    const json_t *format = json_object_get(r->body, "format");
    bool is_empty = json_is_string(format) && json_string_length(format) == 0;
    if (!format || json_is_null(format) || is_empty)
        return true;
    if (json_is_string(format) && strcmp(json_string_value(format), "json") == 0)
        return server_chat_set_schema(r, "format", "{\"type\": \"object\"}");
    if (!app_json_is_object(format)) {
        server_fail_member(r->x, "format", format, "json or a JSON Schema");
        return false;
    }
    char *text = app_json_write(format, JSON_COMPACT);
    bool good = text ? server_chat_set_schema(r, "format", text) : server_chat_fail_memory(r);
    free(text);
    return good;
}

/* "think": a variable of most templates. */
static bool read_think(struct server_chat *r)
{
    const json_t *think = json_object_get(r->body, "think");
    json_t *kwargs = json_object();
    if (json_is_boolean(think))
        json_object_set_new(kwargs, "enable_thinking", json_boolean(json_is_true(think)));
    else if (json_is_string(think))
        json_object_set(kwargs, "reasoning_effort", (json_t *)(uintptr_t)think);
    else if (think && !json_is_null(think)) {
        json_decref(kwargs);
        server_fail_member(r->x, "think", think, "true, false or a level");
        return false;
    }
    r->kwargs = app_json_write(kwargs, JSON_COMPACT);
    json_decref(kwargs);
    return r->kwargs || server_chat_fail_memory(r);
}

static bool read_tools(struct server_chat *r)
{
    r->parallel = true;
    return server_chat_set_tools(r, json_object_get(r->body, "tools"));
}

/* Images cannot be read; "thinking" is Ollama's name of the reasoning. */
static bool adapt_message(struct server_chat *r, json_t *message)
{
    json_t *thinking = json_object_get(message, "thinking");
    if (json_array_size(json_object_get(message, "images")) > 0) {
        server_fail(r->x, 400, "images", NULL, "images cannot be read");
        return false;
    }
    if (json_is_string(thinking))
        json_object_set(message, "reasoning_content", thinking);
    return true;
}

static bool read_messages(struct server_chat *r)
{
    const json_t *found = json_object_get(r->body, "messages");
    if (!json_is_array(found)) {
        server_fail_member(r->x, "messages", found, "a list of messages");
        return false;
    }
    r->messages = json_deep_copy(found);
    for (size_t i = 0; r->messages && i < json_array_size(r->messages); i++)
        if (!adapt_message(r, json_array_get(r->messages, i)))
            return false;
    return r->messages ? server_chat_check_messages(r, "messages") : server_chat_fail_memory(r);
}

/* The prompt of /api/generate as a conversation. */
static bool read_prompt(struct server_chat *r)
{
    const char *system = NULL, *prompt = "", *suffix = NULL;
    bool raw = false;
    if (!server_get_bool(r->x, r->body, "raw", &raw) ||
        !server_get_string(r->x, r->body, "suffix", &suffix))
        return false;
    if (raw || (suffix && *suffix)) {
        server_fail(r->x, 400, raw ? "raw" : "suffix", NULL, "%s is not supported here%s",
                    raw ? "raw" : "suffix", raw ? ": /v1/completions continues texts" : "");
        return false;
    }
    if (!server_get_string(r->x, r->body, "system", &system) ||
        !server_get_string(r->x, r->body, "prompt", &prompt))
        return false;
    r->messages = system && *system ?
                      json_pack("[{s:s, s:s}, {s:s, s:s}]", "role", "system", "content", system,
                                "role", "user", "content", prompt) :
                      json_pack("[{s:s, s:s}]", "role", "user", "content", prompt);
    return r->messages ? adapt_message(r, (json_t *)(uintptr_t)r->body) :
                         server_chat_fail_memory(r);
}

/* ---- Answers ------------------------------------------------------------ */
/* What a job keeps of its request. */
struct ollama_answer {
    bool is_chat;
    double prompt_seconds, generate_seconds;
    bool is_full;
};

/* Whose answers have "message" instead of "response". */
static json_t *line_of(const struct server_job *job, json_t *message)
{
    const struct ollama_answer *own = job->own;
    char at[32];
    format_time(time(NULL), at);
    json_t *line = json_pack("{s:s, s:s}", "model", job->model->id, "created_at", at);
    if (own->is_chat) {
        json_object_set_new(message, "role", json_string("assistant"));
        if (!json_object_get(message, "content"))
            json_object_set_new(message, "content", json_string(""));
        json_object_set_new(line, "message", message);
        return line;
    }
    json_t *content = json_object_get(message, "content"),
           *thinking = json_object_get(message, "thinking");
    json_object_set_new(line, "response", content ? json_incref(content) : json_string(""));
    if (thinking)
        json_object_set(line, "thinking", thinking);
    json_decref(message);
    return line;
}

static void write_line(struct server_job *job, json_t *line)
{
    char *text = line ? app_json_write(line, JSON_COMPACT) : NULL;
    json_decref(line);
    if (!text)
        job->no_memory = true;
    else if (http_code(job->x) != 0 || http_begin(job->x, 200, "application/x-ndjson")) {
        http_write(job->x, text, strlen(text));
        http_write(job->x, "\n", 1);
    }
    free(text);
}

static json_t *nanoseconds(double seconds)
{
    return json_integer((json_int_t)(seconds * 1e9));
}

/* Marks a line as the last one, with the counts. */
static void add_end(const struct server_job *job, json_t *line)
{
    const struct ollama_answer *own = job->own;
    json_object_set_new(line, "done", json_true());
    json_object_set_new(line, "done_reason", json_string(own->is_full ? "length" : "stop"));
    json_object_set_new(line, "total_duration",
                        nanoseconds(own->prompt_seconds + own->generate_seconds));
    json_object_set_new(line, "load_duration", json_integer(0));
    json_object_set_new(line, "prompt_eval_count", json_integer((json_int_t)job->n_prompt));
    json_object_set_new(line, "prompt_eval_duration", nanoseconds(own->prompt_seconds));
    json_object_set_new(line, "eval_count", json_integer((json_int_t)job->n_generated));
    json_object_set_new(line, "eval_duration", nanoseconds(own->generate_seconds));
}

/* Calls of a message with arguments as objects, as Ollama has them. */
static json_t *calls_of(const json_t *message)
{
    const json_t *calls = json_object_get(message, "tool_calls");
    json_t *list = json_array();
    for (size_t i = 0; i < json_array_size(calls); i++) {
        const json_t *function = json_object_get(json_array_get(calls, i), "function");
        const char *arguments = json_string_value(json_object_get(function, "arguments"));
        json_array_append_new(list, json_pack("{s:{s:O, s:o}}", "function", "name",
                                              json_object_get(function, "name"), "arguments",
                                              server_chat_arguments(arguments)));
    }
    return list;
}

/* The whole reply in Ollama's names. */
static json_t *whole_message(struct server_part *part, bool with_text)
{
    json_t *own = server_chat_message(part), *message = json_object();
    json_t *text = json_object_get(own, "content"),
           *thinking = json_object_get(own, "reasoning_content");
    if (with_text && json_is_string(text))
        json_object_set(message, "content", text);
    if (with_text && json_is_string(thinking))
        json_object_set(message, "thinking", thinking);
    if (json_array_size(json_object_get(own, "tool_calls")) > 0)
        json_object_set_new(message, "tool_calls", calls_of(own));
    part->job->no_memory |= !own;
    json_decref(own);
    return message;
}

static void on_reply(const struct akunu_reply_event *event, void *user)
{
    struct server_part *part = user;
    struct server_job *job = part->job;
    bool text = event->kind == AKUNU_REPLY_CONTENT, thought = event->kind == AKUNU_REPLY_REASONING;
    if (!job->stream || !job->x || !(text || thought))
        return;
    json_t *line = line_of(job, json_pack("{s:o}", text ? "content" : "thinking",
                                          app_json_text(event->text, event->n_bytes)));
    json_object_set_new(line, "done", json_false());
    write_line(job, line);
}

static void ollama_on_end(struct server_part *part, const struct server_event *event)
{
    struct ollama_answer *own = part->job->own;
    if (akunu_reply_end(part->reply) != AKUNU_OK)
        part->job->no_memory = true;
    own->prompt_seconds = event->result.prompt_seconds;
    own->generate_seconds = event->result.generate_seconds;
    own->is_full = strcmp(server_finish_reason(&event->result), "length") == 0;
}

static void ollama_on_done(struct server_job *job)
{
    if (server_job_failed(job))
        return;
    json_t *line = line_of(job, whole_message(&job->parts[0], !job->stream));
    add_end(job, line);
    server_add_receipts(job, line);
    if (job->stream) { /* calls come in the last line */
        write_line(job, line);
        http_finish(job->x);
    } else {
        server_answer(job->x, 200, line);
    }
}

static void ollama_release(struct server_job *job)
{
    free(job->own);
}

static bool prepare_answer(struct server_job *job, const json_t *body)
{
    (void)body;
    job->own = calloc(1, sizeof(struct ollama_answer));
    return job->own != NULL;
}

static const struct server_style style = { .prefix = "",
                                           .prepare = prepare_answer,
                                           .reply = on_reply,
                                           .token = server_chat_token,
                                           .end = ollama_on_end,
                                           .done = ollama_on_done,
                                           .release = ollama_release };

static struct server_commit answer_chat(struct server_model *m, struct http_exchange *x,
                                        const json_t *body, bool is_chat)
{
    struct server_chat *r = server_chat_new(m, x, body);
    const json_t *options = json_object_get(body, "options");
    bool is_object = !options || json_is_null(options) || app_json_is_object(options);
    json_t *flat = is_object ? flatten_options(body) : NULL;
    if (!is_object)
        server_fail_member(x, "options", options, "an object");
    else if (!flat)
        server_fail_memory(x);
    bool good = r && flat && server_read_params(m, x, flat, &r->params) &&
                server_check_one_choice(x, &r->params) &&
                (is_chat ? read_messages(r) : read_prompt(r)) && read_tools(r) && read_think(r) &&
                read_format(r) && server_chat_make_job(r, &style);
    json_decref(flat); /* what it lends, the body holds too */
    if (good)
        ((struct ollama_answer *)r->job->own)->is_chat = is_chat;
    return server_chat_commit(r, good);
}

struct server_commit server_ollama_chat(struct server_model *m, struct http_exchange *x,
                                        const json_t *body)
{
    return answer_chat(m, x, body, true);
}

struct server_commit server_ollama_generate(struct server_model *m, struct http_exchange *x,
                                            const json_t *body)
{
    return answer_chat(m, x, body, false);
}

/* ---- What APIs differ in ------------------------------------------------ */
static json_t *ollama_error(unsigned code, const char *type, const char *param,
                            const char *code_name, json_t *message)
{
    (void)code, (void)type, (void)param, (void)code_name;
    return json_pack("{s:o}", "error", message);
}

static void ollama_fail_stream(struct server_job *job, json_t *error)
{
    char *line = app_json_write(error, JSON_COMPACT);
    json_decref(error);
    if (line)
        http_write(job->x, line, strlen(line));
    http_write(job->x, "\n", 1);
    http_finish(job->x);
    free(line);
}

const struct server_api server_ollama = { .error = ollama_error,
                                          .fail_stream = ollama_fail_stream,
                                          .embeddings = server_ollama_embeddings };
