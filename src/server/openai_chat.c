/* POST /v1/chat/completions: a conversation becomes a prompt, and the text a message with
 * reasoning, content and calls. */
#include "server/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/conversation.h"
#include "cli/output.h"
#include "cli/prompt.h"

/* What a request asks for, until it is submitted. */
struct chat_request {
    struct server *server;
    struct http_exchange *x;
    const json_t *body;
    struct server_params params;
    json_t *messages; /* checked and adapted */
    char *tools;      /* JSON; NULL: none */
    char *choice;     /* NULL: auto */
    char *kwargs;     /* JSON; NULL: none */
    bool continues;   /* the last message is the beginning of the answer */
    bool parallel;
    char *prompt;
    size_t n_prompt;
    akunu_token *ids;
    size_t n_ids;
    struct akunu_grammar *content, *grammar;
};

static void release_request(struct chat_request *r)
{
    json_decref(r->messages);
    free(r->tools);
    free(r->choice);
    free(r->kwargs);
    akunu_text_free(r->prompt);
    free(r->ids);
    akunu_grammar_free(r->content);
    akunu_grammar_free(r->grammar);
}

static bool fail_memory(struct chat_request *r)
{
    server_fail_memory(r->x);
    return false;
}

/* ---- Reading ------------------------------------------------------------ */
static bool read_messages(struct chat_request *r)
{
    char why[CLI_PROBLEM_BYTES];
    const json_t *found = json_object_get(r->body, "messages");
    if (!json_is_array(found)) {
        server_fail_member(r->x, "messages", found, "a list of messages");
        return false;
    }
    r->messages = json_deep_copy(found);
    if (!r->messages)
        return fail_memory(r);
    if (!cli_conversation_check(r->messages, why)) {
        if (!*why)
            return fail_memory(r);
        server_fail(r->x, 400, "messages", NULL, "%s", why);
        return false;
    }
    const json_t *last = json_array_get(r->messages, json_array_size(r->messages) - 1);
    r->continues = strcmp(json_string_value(json_object_get(last, "role")), "assistant") == 0 &&
                   json_is_string(json_object_get(last, "content")) &&
                   json_array_size(json_object_get(last, "tool_calls")) == 0;
    return true;
}

/* "auto", "none", "required", a tool's name, or the object that names one. */
static bool read_choice(struct chat_request *r)
{
    const json_t *found = json_object_get(r->body, "tool_choice");
    if (!found || json_is_null(found))
        return true;
    if (!json_is_string(found) && !json_is_object(found)) {
        server_fail_member(r->x, "tool_choice", found,
                           "auto, none, required or an object that names a tool");
        return false;
    }
    r->choice =
        json_is_string(found) ? strdup(json_string_value(found)) : json_dumps(found, JSON_COMPACT);
    if (!r->choice)
        return fail_memory(r);
    bool needs_tools = strcmp(r->choice, "none") != 0 && strcmp(r->choice, "auto") != 0;
    if (needs_tools && json_array_size(json_object_get(r->body, "tools")) == 0) {
        server_fail(r->x, 400, "tool_choice", NULL,
                    "tool_choice asks for a call, and there are "
                    "no tools");
        return false;
    }
    return true;
}

static bool read_tools(struct chat_request *r)
{
    const json_t *found = json_object_get(r->body, "tools");
    r->parallel = true;
    if (!server_get_bool(r->x, r->body, "parallel_tool_calls", &r->parallel) || !read_choice(r))
        return false;
    if (!found || json_is_null(found))
        return true;
    if (!json_is_array(found)) {
        server_fail_member(r->x, "tools", found, "a list of functions");
        return false;
    }
    bool hidden = json_array_size(found) == 0 || (r->choice && strcmp(r->choice, "none") == 0);
    r->tools = hidden ? NULL : json_dumps(found, JSON_COMPACT);
    return hidden || r->tools || fail_memory(r);
}

/* The request's variables of the template come before those of --kwargs. */
static bool read_kwargs(struct chat_request *r)
{
    const json_t *found = json_object_get(r->body, "chat_template_kwargs");
    const char *flag = r->server->options->kwargs;
    if (found && !json_is_null(found) && !json_is_object(found)) {
        server_fail_member(r->x, "chat_template_kwargs", found, "an object");
        return false;
    }
    json_t *all = flag ? json_loads(flag, 0, NULL) : json_object();
    if (all && json_is_object(found))
        json_object_update(all, (json_t *)(uintptr_t)found);
    r->kwargs = all ? json_dumps(all, JSON_COMPACT) : NULL;
    json_decref(all);
    return r->kwargs || fail_memory(r);
}

static bool set_schema(struct chat_request *r, const char *name, const char *schema)
{
    r->content = akunu_grammar_from_schema(schema, strlen(schema), NULL);
    if (r->content)
        return true;
    server_fail_library(r->x, name);
    return false;
}

/* The type of response_format; it is always held. */
static bool read_format(struct chat_request *r)
{
    const json_t *format = json_object_get(r->body, "response_format");
    const char *type = json_string_value(json_object_get(format, "type"));
    if (!format || json_is_null(format) || (type && strcmp(type, "text") == 0))
        return true;
    const json_t *named = json_object_get(format, "json_schema");
    const json_t *schema = json_object_get(json_is_object(named) ? named : format, "schema");
    if (type && strcmp(type, "json_object") == 0 && !schema)
        return set_schema(r, "response_format", "{\"type\": \"object\"}");
    if (!type || (strcmp(type, "json_schema") != 0 && strcmp(type, "json_object") != 0)) {
        server_fail_member(r->x, "response_format", format,
                           "an object whose type is text, json_object or json_schema");
        return false;
    }
    if (!json_is_object(schema) && !json_is_boolean(schema)) {
        server_fail_member(r->x, "response_format.json_schema.schema", schema, "a JSON Schema");
        return false;
    }
    char *text = json_dumps(schema, JSON_COMPACT | JSON_ENCODE_ANY);
    bool good = text ? set_schema(r, "response_format", text) : fail_memory(r);
    free(text);
    return good;
}

/* llama-server's own: a grammar in GBNF. */
static bool read_grammar(struct chat_request *r)
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
    r->content = akunu_grammar_parse(text, strlen(text));
    if (!r->content)
        server_fail_library(r->x, "grammar");
    return r->content != NULL;
}

static bool read_logprobs(struct chat_request *r)
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

/* ---- Prompt ------------------------------------------------------------- */
static char *render(struct chat_request *r, const json_t *messages)
{
    struct akunu_chat input;
    char *text = json_dumps(messages, JSON_COMPACT), *prompt;
    if (!text)
        return NULL;
    akunu_chat_default(&input, sizeof input);
    input.messages = text;
    input.tools = r->tools;
    input.kwargs = r->kwargs;
    input.add_generation_prompt = !r->continues;
    input.continue_final_message = r->continues ? "content" : NULL;
    prompt = akunu_template_render(r->server->template, &input, &r->n_prompt);
    free(text);
    return prompt;
}

/* Renders with arguments as objects; if the template fails at that, as they are. */
static bool make_prompt(struct chat_request *r)
{
    const struct server *s = r->server;
    bool changed = false;
    json_t *parsed = cli_conversation_name_developer(r->messages, s->template_text) ?
                         json_deep_copy(r->messages) :
                         NULL;
    if (!parsed || !cli_conversation_parse_arguments(parsed, &changed)) {
        json_decref(parsed);
        return fail_memory(r);
    }
    r->prompt = render(r, parsed);
    json_decref(parsed);
    if (!r->prompt && changed)
        r->prompt = render(r, r->messages);
    if (!r->prompt) {
        server_fail_library(r->x, "messages");
        return false;
    }
    if (cli_tokenize_prompt(s->loaded.tokenizer, r->prompt, r->n_prompt, &r->ids, &r->n_ids) ==
        CLI_EXIT_OK)
        return true;
    server_fail(r->x, 400, "messages", NULL,
                "the chat template makes an empty prompt of the "
                "messages");
    return false;
}

static struct akunu_reply_params reply_params(const struct chat_request *r)
{
    struct akunu_reply_params p;
    akunu_reply_params_default(&p, sizeof p);
    p.chat_template = r->server->template_text;
    p.tokenizer = r->server->loaded.tokenizer;
    p.prompt = r->prompt;
    p.tools = r->tools;
    p.calls = r->tools != NULL;
    return p;
}

static bool make_grammar(struct chat_request *r)
{
    struct akunu_reply_params reply = reply_params(r);
    struct akunu_tool_grammar_params calls;
    akunu_tool_grammar_params_default(&calls, sizeof calls);
    calls.choice = r->choice;
    calls.parallel = r->parallel;
    calls.content = r->content;
    if (akunu_grammar_from_tools(&reply, &calls, &r->grammar) != AKUNU_OK) {
        server_fail_library(r->x, "tools");
        return false;
    }
    r->params.sampling.grammar = r->grammar;
    akunu_reasoning_default(&r->params.reasoning, sizeof r->params.reasoning);
    r->params.reasoning.budget = r->server->options->reasoning_budget;
    if (r->params.reasoning.budget >= 0 &&
        akunu_reply_find_reasoning(&reply, &r->params.reasoning) == AKUNU_OK)
        r->params.generation.reasoning = &r->params.reasoning;
    r->params.generation.special = true; /* such tokens mark reasoning and calls */
    return true;
}

/* ---- Chunks ------------------------------------------------------------- */
static json_t *chunk(const struct server_job *job, json_t *choices)
{
    return json_pack("{s:s, s:s, s:I, s:s, s:o}", "id", job->id, "object", "chat.completion.chunk",
                     "created", (json_int_t)job->created, "model", job->server->id, "choices",
                     choices);
}

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
    server_sse_write(part->job, chunk(part->job, json_pack("[o]", choice)));
}

/* Events of the reply's parser, while it streams. */
static void on_reply(const struct akunu_reply_event *event, void *user)
{
    struct server_part *part = user;
    json_t *text = cli_json_text(event->text, event->n_bytes), *delta = NULL;
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
    const struct server *s = part->job->server;
    json_t *list = json_array(), *bytes, *text;
    if (part->job->n_top < 0 || event->token < 0) {
        json_decref(list);
        return;
    }
    for (size_t i = 0; i < event->n_top && event->top[i].token >= 0; i++) {
        text = server_token_text(s, event->top[i].token, &bytes);
        json_array_append_new(list, json_pack("{s:o, s:o, s:o}", "token", text, "logprob",
                                              cli_json_real((double)event->top[i].logprob), "bytes",
                                              bytes));
    }
    if (!part->logprobs)
        part->logprobs = json_array();
    text = server_token_text(s, event->token, &bytes);
    if (json_array_append_new(part->logprobs,
                              json_pack("{s:o, s:o, s:o, s:o}", "token", text, "logprob",
                                        cli_json_real((double)event->logprob), "bytes", bytes,
                                        "top_logprobs", list)) != 0)
        part->job->no_memory = true;
}

static void on_token(struct server_part *part, const struct server_event *event)
{
    add_logprobs(part, event);
    if (akunu_reply_push(part->reply, event->text, event->n_bytes) != AKUNU_OK)
        part->job->no_memory = true;
}

/* The message of a part that has ended; NULL: out of memory. */
static json_t *message_of(struct server_part *part)
{
    const char *text = akunu_reply_message(part->reply);
    return text ? json_loads(text, JSON_ALLOW_NUL, NULL) : NULL;
}

static void on_end(struct server_part *part, const struct server_event *event)
{
    if (akunu_reply_end(part->reply) != AKUNU_OK) {
        part->job->no_memory = true;
        return;
    }
    json_t *message = message_of(part);
    bool calls = json_array_size(json_object_get(message, "tool_calls")) > 0;
    json_decref(message);
    part->finish = server_finish_reason(&event->result);
    if (calls && strcmp(part->finish, "stop") == 0)
        part->finish = "tool_calls";
    if (part->job->stream)
        write_delta(part, json_object(), part->finish);
}

/* ---- The answer --------------------------------------------------------- */
static void end_stream(struct server_job *job)
{
    if (job->include_usage) {
        json_t *last = chunk(job, json_array());
        json_object_set_new(last, "usage", server_usage(job));
        server_sse_write(job, last);
    }
    server_sse_end(job);
}

static void on_done(struct server_job *job)
{
    json_t *choices = json_array();
    if (server_job_failed(job) || job->stream) {
        json_decref(choices);
        if (job->status == AKUNU_OK)
            end_stream(job);
        return;
    }
    for (size_t i = 0; i < job->n_parts; i++) {
        struct server_part *part = &job->parts[i];
        json_array_append_new(choices,
                              json_pack("{s:I, s:o, s:o, s:s}", "index", (json_int_t)i, "message",
                                        message_of(part), "logprobs", take_logprobs(part),
                                        "finish_reason", part->finish));
    }
    bool complete = json_array_size(choices) == job->n_parts;
    json_t *answer = json_pack("{s:s, s:s, s:I, s:s, s:o, s:o}", "id", job->id, "object",
                               "chat.completion", "created", (json_int_t)job->created, "model",
                               job->server->id, "choices", choices, "usage", server_usage(job));
    if (!complete) {
        json_decref(answer);
        answer = NULL;
    }
    server_answer(job->x, 200, answer);
}

static const struct server_style style = { .token = on_token, .end = on_end, .done = on_done };

/* ---- The request -------------------------------------------------------- */
static bool begin_parts(struct chat_request *r, struct server_job *job)
{
    struct akunu_reply_params params = reply_params(r);
    for (size_t i = 0; i < job->n_parts; i++) {
        struct server_part *part = &job->parts[i];
        /* ids of calls differ from those in the conversation, and between completions */
        params.seed = r->params.sampling.seed + json_array_size(r->messages) + i;
        part->reply = akunu_reply_new(&params, on_reply, part);
        if (!part->reply) {
            server_fail_library(r->x, "tools");
            return false;
        }
    }
    return true;
}

static bool submit(struct chat_request *r)
{
    struct server_job *job = server_job_new(r->server, r->x, &style, "chatcmpl-", &r->params, 1);
    if (!job)
        return false;
    if (!begin_parts(r, job)) {
        server_job_free(job);
        return false;
    }
    if (!server_job_submit(job, 0, &r->params, r->ids, r->n_ids, false))
        return false;
    for (size_t i = 0; job->stream && i < job->n_parts; i++)
        write_delta(&job->parts[i], json_pack("{s:s, s:n}", "role", "assistant", "content"), NULL);
    return true;
}

void server_chat_completions(struct server *s, struct http_exchange *x)
{
    struct chat_request r = { .server = s, .x = x };
    json_t *body = server_read_object(x);
    if (!body)
        return;
    r.body = body;
    bool good = !server_refuses_model(s, x, body) && server_read_params(s, x, body, &r.params) &&
                read_messages(&r) && read_tools(&r) && read_kwargs(&r) && read_format(&r) &&
                read_grammar(&r) && read_logprobs(&r) && make_prompt(&r) && make_grammar(&r) &&
                submit(&r);
    (void)good; /* if not, it is answered */
    release_request(&r);
    json_decref(body);
}
