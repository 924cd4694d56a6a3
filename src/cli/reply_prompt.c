/* The prompt of the chat command. Templates differ in what they read of a conversation; it is
 * adapted to them here. */
#include "cli/reply.h"

#include <stdlib.h>
#include <string.h>

#include "cli/message.h"

/* A role that most templates do not know and then leave out. */
static int name_developer_system(const struct cli_reply *r)
{
    const char *text = akunu_template_text(r->template, NULL, r->tools != NULL, NULL);
    for (size_t i = 0; i < json_array_size(r->messages); i++) {
        json_t *message = json_array_get(r->messages, i);
        const char *role = json_string_value(json_object_get(message, "role"));
        if (strcmp(role, "developer") == 0 && !(text && strstr(text, "developer")) &&
            json_object_set_new(message, "role", json_string("system")) != 0)
            return cli_fail_memory();
    }
    return CLI_EXIT_OK;
}

/* Makes objects of arguments that are JSON text, as OpenAI writes them: most templates print an
 * object as JSON, and text as a string in quotes. *changed: there were such arguments. False: out
 * of memory. */
static bool parse_arguments(json_t *messages, bool *changed)
{
    for (size_t i = 0; i < json_array_size(messages); i++) {
        const json_t *calls = json_object_get(json_array_get(messages, i), "tool_calls");
        for (size_t k = 0; k < json_array_size(calls); k++) {
            json_t *function = json_object_get(json_array_get(calls, k), "function");
            const json_t *text = json_object_get(function, "arguments");
            json_t *arguments = !json_is_string(text) ?
                                    NULL :
                                    json_loadb(json_string_value(text), json_string_length(text),
                                               JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
            if (!json_is_object(arguments)) {
                json_decref(arguments);
                continue;
            }
            *changed = true;
            if (json_object_set_new(function, "arguments", arguments) != 0)
                return false;
        }
    }
    return true;
}

static int fail_render(enum akunu_status status)
{
    if (status == AKUNU_ERROR_MEMORY)
        return cli_fail_memory();
    int code = cli_fail_library();
    /* a template that refuses the conversation: bad input, no unreadable model */
    return status == AKUNU_ERROR_ARGUMENT ? CLI_EXIT_FAILURE : code;
}

/* Renders with arguments as objects; if the template fails at that, as they are. */
static int render(struct cli_reply *r, size_t *n)
{
    json_t *parsed = json_deep_copy(r->messages);
    bool changed = false;
    if (!parsed || !parse_arguments(parsed, &changed)) {
        json_decref(parsed);
        return cli_fail_memory();
    }
    enum akunu_status status =
        cli_try_render(r->options, r->template, parsed, r->tools, &r->prompt, n);
    json_decref(parsed);
    if (status == AKUNU_ERROR_ARGUMENT && changed)
        status = cli_try_render(r->options, r->template, r->messages, r->tools, &r->prompt, n);
    return status == AKUNU_OK ? CLI_EXIT_OK : fail_render(status);
}

/* Warns if the prompt is the same without the tools. */
static void check_tools_shown(const struct cli_reply *r, size_t n)
{
    char *without;
    size_t n_without = 0;
    if (!r->tools || cli_try_render(r->options, r->template, r->messages, NULL, &without,
                                    &n_without) != AKUNU_OK)
        return;
    if (n_without == n && memcmp(without, r->prompt, n) == 0)
        cli_warn("--tools %s: the chat template does not show tools to the model",
                 r->options->tools);
    free(without);
}

int cli_reply_make_prompt(struct cli_reply *r)
{
    size_t n = 0;
    int code = name_developer_system(r);
    if (code == CLI_EXIT_OK)
        code = render(r, &n);
    if (code != CLI_EXIT_OK)
        return code;
    check_tools_shown(r, n);
    return cli_tokenize_prompt(r->loaded.tokenizer, r->prompt, n, &r->ids, &r->n_ids);
}
