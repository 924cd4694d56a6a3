/* What the chat command is given: the conversation, the tools and the choice of a tool. All of it
 * is checked before a model is loaded, since templates fail later and say less. */
#include "apps/cli/chat/reply.h"

#include <stdlib.h>
#include <string.h>

#include "apps/common/conversation.h"
#include "apps/common/input.h"
#include "apps/common/json_text.h"
#include "apps/common/message.h"

/* Reads the JSON list that a flag names; NULL after a message, with the exit code in *code. */
static json_t *read_list(const char *flag, const char *path, const char *expected, int *code)
{
    char shown[APP_DESCRIBED_BYTES];
    json_error_t error;
    struct app_text text;
    *code = app_read_file(flag, path, &text);
    if (*code != APP_EXIT_OK)
        return NULL;
    json_t *list =
        app_json_read(text.bytes, text.n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY,
                      APP_JSON_PYTHON, &error);
    free(text.bytes);
    if (!list)
        *code = app_fail_usage("%s %s: line %d, column %d: no valid JSON: %s", flag, path,
                               error.line, error.column, app_show_text(error.text, shown));
    if (!list || json_is_array(list))
        return list;
    app_describe_json(list, shown);
    json_decref(list);
    *code = app_fail_usage("%s %s: the JSON is %s; expected %s", flag, path, shown, expected);
    return NULL;
}

int cli_reply_read_messages(struct cli_reply *r)
{
    const char *path = r->options->chat.messages;
    char why[APP_PROBLEM_BYTES];
    int code;
    r->messages = read_list("--messages", path, "a list of messages", &code);
    if (code == APP_EXIT_OK && !app_conversation_check(r->messages, why))
        return *why ? app_fail_usage("--messages %s: %s", path, why) : app_fail_memory();
    return code;
}

/* ---- Tools -------------------------------------------------------------- */
static const char *tool_name(const json_t *tool)
{
    const json_t *function = json_object_get(tool, "function");
    return json_string_value(json_object_get(json_is_object(function) ? function : tool, "name"));
}

/* Whether the choice is one of the words, or names a tool. */
static int check_choice(const char *choice, const json_t *tools)
{
    static const char *const words[] = { "auto", "none", "required" };
    char names[256] = "";
    size_t n = 0;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!choice || strcmp(choice, words[i]) == 0)
            return APP_EXIT_OK;
    for (size_t i = 0; i < json_array_size(tools); i++) {
        const char *name = tool_name(json_array_get(tools, i));
        if (strcmp(name, choice) == 0)
            return APP_EXIT_OK;
        if (n + strlen(name) + 3 < sizeof names)
            n += (size_t)snprintf(names + n, sizeof names - n, ", %s", name);
    }
    return app_fail_usage(
        "--tool-choice %s: expected auto, none, required or the name of a tool%s%s", choice,
        n ? ": " : "", n ? names + 2 : "");
}

/* Whether the library takes the tools. */
static int check_tools(const char *path, const char *tools)
{
    struct akunu_reply_params params;
    akunu_reply_params_default(&params, sizeof params);
    params.tools = tools;
    struct akunu_reply *reply = akunu_reply_new(&params, NULL, NULL);
    akunu_reply_free(reply);
    if (reply)
        return APP_EXIT_OK;
    return akunu_last_status() == AKUNU_ERROR_MEMORY ?
               app_fail_memory() :
               app_fail_usage("--tools %s: %s", path, akunu_last_error());
}

int cli_reply_read_tools(struct cli_reply *r)
{
    const struct app_options *o = r->options;
    int code;
    if (!o->chat.tools)
        return APP_EXIT_OK;
    json_t *list = read_list("--tools", o->chat.tools, "a list of functions", &code);
    if (code == APP_EXIT_OK && !(r->tools = app_json_write(list, JSON_COMPACT)))
        code = app_fail_memory();
    if (code == APP_EXIT_OK)
        code = check_tools(o->chat.tools, r->tools);
    if (code == APP_EXIT_OK)
        code = check_choice(o->chat.tool_choice, list);
    /* no call is possible: the model need not see them */
    if (json_array_size(list) == 0 ||
        (o->chat.tool_choice && strcmp(o->chat.tool_choice, "none") == 0)) {
        free(r->tools);
        r->tools = NULL;
    }
    json_decref(list);
    return code;
}
