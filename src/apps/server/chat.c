/* Conversations: checks, prompt, grammar, parser. */
#include "apps/server/chat.h"

#include <stdlib.h>
#include <string.h>

#include "apps/common/conversation.h"
#include "apps/common/json_text.h"
#include "apps/common/prompt.h"

struct server_chat *server_chat_new(struct server_model *m, struct http_exchange *x,
                                    const json_t *body)
{
    struct server_chat *r = calloc(1, sizeof *r);
    if (r)
        *r = (struct server_chat){ .model = m, .x = x, .body = body };
    else
        server_fail_memory(x);
    return r;
}

void server_chat_free(struct server_chat *r)
{
    if (!r)
        return;
    json_decref(r->messages);
    free(r->tools);
    free(r->choice);
    free(r->kwargs);
    akunu_text_free(r->text);
    free(r->prompt.ids);
    akunu_grammar_free(r->content);
    akunu_grammar_free(r->params.grammar);
    json_decref(r->schema);
    free(r);
}

bool server_chat_fail_memory(struct server_chat *r)
{
    server_fail_memory(r->x);
    return false;
}

bool server_chat_check_messages(struct server_chat *r, const char *name)
{
    char why[APP_PROBLEM_BYTES];
    if (!app_conversation_check(r->messages, why)) {
        if (!*why)
            return server_chat_fail_memory(r);
        server_fail(r->x, 400, name, NULL, "%s", why);
        return false;
    }
    const json_t *last = json_array_get(r->messages, json_array_size(r->messages) - 1);
    r->continues = strcmp(json_string_value(json_object_get(last, "role")), "assistant") == 0 &&
                   json_is_string(json_object_get(last, "content")) &&
                   json_array_size(json_object_get(last, "tool_calls")) == 0;
    return true;
}

static bool is_string_or_nothing(const json_t *v)
{
    return !v || json_is_null(v) || json_is_string(v);
}

bool server_chat_set_tools(struct server_chat *r, const json_t *tools)
{
    if (!tools || json_is_null(tools))
        return true;
    if (!json_is_array(tools)) {
        server_fail_member(r->x, "tools", tools, "a list of functions");
        return false;
    }
    for (size_t i = 0; i < json_array_size(tools); i++) {
        const json_t *tool = json_array_get(tools, i),
                     *function = json_object_get(tool, "function"),
                     *schema = json_object_get(function, "parameters");
        const char *type = json_string_value(json_object_get(tool, "type"));
        if (type && strcmp(type, "function") == 0 &&
            json_string_length(json_object_get(function, "name")) > 0 &&
            is_string_or_nothing(json_object_get(function, "description")) &&
            (!schema || json_is_null(schema) || app_json_is_object(schema)))
            continue;
        server_fail(r->x, 400, "tools", NULL,
                    "tools[%zu] is not a function with a name, a description and parameters: no "
                    "tools are hosted here",
                    i);
        return false;
    }
    r->tools = json_array_size(tools) > 0 ? app_json_write(tools, JSON_COMPACT) : NULL;
    return r->tools || json_array_size(tools) == 0 || server_chat_fail_memory(r);
}

/* The request's variables of the template come before those of --kwargs. */
bool server_chat_read_kwargs(struct server_chat *r)
{
    const json_t *found = json_object_get(r->body, "chat_template_kwargs");
    const char *flag = r->model->options->chat.kwargs;
    if (found && !json_is_null(found) && !app_json_is_object(found)) {
        server_fail_member(r->x, "chat_template_kwargs", found, "an object");
        return false;
    }
    json_t *all =
        flag ? app_json_read(flag, strlen(flag), 0, APP_JSON_PYTHON, NULL) : json_object();
    if (all && app_json_is_object(found))
        json_object_update(all, (json_t *)(uintptr_t)found);
    r->kwargs = all ? app_json_write(all, JSON_COMPACT) : NULL;
    json_decref(all);
    return r->kwargs || server_chat_fail_memory(r);
}

/* The types that parts of text have in OpenAI's and Anthropic's APIs. */
static bool is_text(const char *type)
{
    return type && (strcmp(type, "text") == 0 || strcmp(type, "input_text") == 0 ||
                    strcmp(type, "output_text") == 0);
}

json_t *server_content_text(const json_t *content)
{
    struct server_text all = { 0 };
    bool good = json_is_array(content);
    if (json_is_string(content))
        return json_incref((json_t *)(uintptr_t)content);
    for (size_t i = 0; good && i < json_array_size(content); i++) {
        const json_t *part = json_array_get(content, i), *text = json_object_get(part, "text");
        good = json_is_string(text) && is_text(json_string_value(json_object_get(part, "type"))) &&
               (i == 0 || server_text_add(&all, "\n", 1)) &&
               server_text_add(&all, json_string_value(text), json_string_length(text));
    }
    json_t *value = good ? json_stringn(all.bytes ? all.bytes : "", all.n) : NULL;
    free(all.bytes);
    return value;
}

bool server_chat_append(struct server_chat *r, json_t *message)
{
    return json_array_append_new(r->messages, message) == 0 || server_chat_fail_memory(r);
}

bool server_chat_read_params(struct server_chat *r, const char *from, const char *to)
{
    json_t *copy = json_copy((json_t *)(uintptr_t)r->body), *value = json_object_get(r->body, from);
    if (copy && value)
        json_object_set(copy, to, value);
    bool good = copy ? server_read_params(r->model, r->x, copy, &r->params) &&
                           server_check_one_choice(r->x, &r->params) :
                       server_chat_fail_memory(r);
    json_decref(copy); /* what it lends, the body holds too */
    return good;
}

bool server_chat_set_schema(struct server_chat *r, const char *name, const char *schema)
{
    r->content = akunu_grammar_from_schema(schema, strlen(schema), NULL);
    r->schema = r->content ?
                    app_json_read(schema, strlen(schema), JSON_DECODE_ANY, APP_JSON_PYTHON, NULL) :
                    NULL;
    if (!r->content)
        server_fail_library(r->x, name);
    else if (!r->schema)
        server_fail_memory(r->x);
    return r->schema != NULL;
}

/* ---- Prompt ------------------------------------------------------------- */
static char *render_messages(struct server_chat *r, const json_t *messages)
{
    struct akunu_chat input;
    char *text = app_json_write(messages, JSON_COMPACT), *prompt;
    if (!text)
        return NULL;
    akunu_chat_default(&input, sizeof input);
    input.messages = text;
    input.tools = r->tools;
    input.kwargs = r->kwargs;
    input.add_generation_prompt = !r->continues;
    input.continue_final_message = r->continues ? "content" : NULL;
    prompt = akunu_template_render(r->model->template, &input, &r->n_text);
    free(text);
    return prompt;
}

/* Gives messages without a content an empty one; false: all have one. */
static bool fill_contents(json_t *messages)
{
    bool changed = false;
    for (size_t i = 0; i < json_array_size(messages); i++) {
        json_t *message = json_array_get(messages, i);
        const json_t *content = json_object_get(message, "content");
        if (!content || json_is_null(content))
            changed |= json_object_set_new(message, "content", json_string("")) == 0;
    }
    return changed;
}

/* Renders with arguments as objects. If the template fails at that: with empty texts for contents
 * that are null, and at last with arguments as they are. Changes `parsed`, a copy of the messages.
 * False: out of memory. */
static bool render_prompt(struct server_chat *r, json_t *parsed)
{
    bool changed = false;
    if (!app_conversation_parse_arguments(parsed, &changed))
        return false;
    r->text = render_messages(r, parsed);
    if (!r->text && fill_contents(parsed))
        r->text = render_messages(r, parsed);
    if (!r->text && changed)
        r->text = render_messages(r, r->messages);
    return true;
}

bool server_chat_make_prompt(struct server_chat *r)
{
    const struct server_model *m = r->model;
    bool is_empty = false;
    json_t *parsed = app_conversation_name_developer(r->messages, m->template_text) ?
                         json_deep_copy(r->messages) :
                         NULL;
    if (!parsed)
        return server_chat_fail_memory(r);
    bool has_memory = render_prompt(r, parsed);
    if (r->text)
        is_empty = app_tokenize_prompt(m->loaded.tokenizer, r->text, r->n_text, &r->prompt.ids,
                                       &r->prompt.n) != APP_EXIT_OK;
    json_decref(parsed);
    if (!has_memory)
        server_fail_memory(r->x);
    else if (!r->text)
        server_fail_library(r->x, "messages");
    else if (is_empty)
        server_fail(r->x, 400, "messages", NULL,
                    "the chat template makes an empty prompt of the messages");
    return r->text && !is_empty;
}

static struct akunu_reply_params reply_params(const struct server_chat *r)
{
    struct akunu_reply_params p;
    akunu_reply_params_default(&p, sizeof p);
    p.chat_template = r->model->template_text;
    p.tokenizer = r->model->loaded.tokenizer;
    p.prompt = r->text;
    p.tools = r->tools;
    p.calls = r->tools != NULL;
    return p;
}

static bool make_grammar(struct server_chat *r)
{
    struct akunu_reply_params reply = reply_params(r);
    struct akunu_tool_grammar_params calls;
    akunu_tool_grammar_params_default(&calls, sizeof calls);
    calls.choice = r->choice;
    calls.parallel = r->parallel;
    calls.content = r->content;
    if (akunu_grammar_from_tools(&reply, &calls, &r->params.grammar) != AKUNU_OK) {
        server_fail_library(r->x, "tools");
        return false;
    }
    r->params.sampling.grammar = r->params.grammar;
    r->params.constraint.schema = r->schema;
    r->params.constraint.chat_template = reply.chat_template ? reply.chat_template : "";
    r->params.constraint.prompt = r->text;
    r->params.constraint.tools = r->tools;
    r->params.constraint.choice = r->choice;
    r->params.constraint.parallel = r->parallel;
    struct akunu_reasoning *reasoning = &r->params.reasoning;
    if (r->model->options->chat.reasoning_budget >= 0 &&
        akunu_get_reasoning(&reply, reasoning, sizeof *reasoning) == AKUNU_OK) {
        reasoning->budget = r->model->options->chat.reasoning_budget;
        r->params.generation.reasoning = reasoning;
    }
    r->params.generation.special = true; /* such tokens mark reasoning and calls */
    return true;
}

/* ---- Submitting --------------------------------------------------------- */
static bool begin_parts(struct server_chat *r)
{
    struct akunu_reply_params params = reply_params(r);
    const struct server_job *job = r->job;
    for (size_t i = 0; i < job->n_parts; i++) {
        struct server_part *part = &job->parts[i];
        /* ids of calls differ from those in the conversation, and between completions */
        params.seed = r->params.sampling.seed + json_array_size(r->messages) + i;
        part->reply = akunu_reply_new(&params, job->style->reply, part);
        if (!part->reply) {
            server_fail_library(r->x, "tools");
            return false;
        }
    }
    return true;
}

bool server_chat_make_job(struct server_chat *r, const struct server_style *style)
{
    if (!server_chat_make_prompt(r) || !make_grammar(r))
        return false;
    r->job = server_job_new(r->model, r->x, style, &r->params, &r->prompt, 1);
    if (!r->job)
        return false;
    bool good =
        (!style->prepare || style->prepare(r->job, r->body) || server_chat_fail_memory(r)) &&
        begin_parts(r);
    if (!good)
        server_job_free(r->job);
    return good;
}

static void commit_chat(struct server_model *m, struct http_exchange *x, void *own)
{
    struct server_chat *r = own;
    (void)m, (void)x;
    server_job_submit(r->job, &r->params);
    server_chat_free(r);
}

struct server_commit server_chat_commit(struct server_chat *r, bool good)
{
    if (good)
        return (struct server_commit){ commit_chat, r };
    server_chat_free(r);
    return server_answered;
}

json_t *server_chat_arguments(const char *text)
{
    return app_json_read(text ? text : "", text ? strlen(text) : 0, JSON_ALLOW_NUL, APP_JSON_STRICT,
                         NULL);
}

json_t *server_chat_message(struct server_part *part)
{
    const char *text = akunu_reply_message(part->reply);
    return text ? json_loads(text, JSON_ALLOW_NUL, NULL) : NULL;
}

void server_chat_token(struct server_part *part, const struct server_event *event)
{
    if (akunu_reply_push(part->reply, event->text, event->n_bytes) != AKUNU_OK)
        part->job->no_memory = true;
}
