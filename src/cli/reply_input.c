/* What the chat command is given: the conversation, the tools and the choice of a tool. All of it
 * is checked before a model is loaded, since templates fail later and say less. */
#include "cli/reply.h"

#include <stdlib.h>
#include <string.h>

#include "cli/input.h"
#include "cli/message.h"

static const char *const roles[] = { "system", "developer", "user", "assistant", "tool", NULL };

/* A place in the conversation: messages[i], and what of it. */
struct place {
    const char *file;
    size_t i;
    const char *member; /* ".content[2].type"; "": the message itself */
};

/* ---- Messages about input ----------------------------------------------- */
enum { DESCRIBED_BYTES = CLI_SHOWN_BYTES + 32 };

/* What a value is: "a list"; "nothing" if it is absent. Strings and numbers are shown. */
static void describe(const json_t *value, char out[DESCRIBED_BYTES])
{
    static const char *const kinds[] = {
        [JSON_OBJECT] = "an object", [JSON_ARRAY] = "a list", [JSON_TRUE] = "true",
        [JSON_FALSE] = "false",      [JSON_NULL] = "null",
    };
    char shown[CLI_SHOWN_BYTES];
    if (!value)
        snprintf(out, DESCRIBED_BYTES, "nothing");
    else if (json_is_string(value))
        snprintf(out, DESCRIBED_BYTES, "\"%s\"", cli_show_text(json_string_value(value), shown));
    else if (json_is_number(value))
        snprintf(out, DESCRIBED_BYTES, "the number %g", json_number_value(value));
    else
        snprintf(out, DESCRIBED_BYTES, "%s", kinds[json_typeof(value)]);
}

/* Says what was found at a place and what is expected there. */
static int fail_at(const struct place *at, const json_t *found, const char *expected)
{
    char shown[DESCRIBED_BYTES];
    describe(found, shown);
    return cli_fail_usage("--messages %s: messages[%zu]%s is %s; expected %s", at->file, at->i,
                          at->member, shown, expected);
}

/* Reads the JSON list that a flag names; NULL after a message, with the exit code in *code. */
static json_t *read_list(const char *flag, const char *path, const char *expected, int *code)
{
    char shown[DESCRIBED_BYTES];
    json_error_t error;
    struct cli_text text;
    *code = cli_read_file(flag, path, &text);
    if (*code != CLI_EXIT_OK)
        return NULL;
    json_t *list = json_loadb(text.bytes, text.n,
                              JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY, &error);
    free(text.bytes);
    if (!list)
        *code = cli_fail_usage("%s %s: line %d, column %d: no valid JSON: %s", flag, path,
                               error.line, error.column, cli_show_text(error.text, shown));
    if (!list || json_is_array(list))
        return list;
    describe(list, shown);
    json_decref(list);
    *code = cli_fail_usage("%s %s: the JSON is %s; expected %s", flag, path, shown, expected);
    return NULL;
}

/* ---- Messages ----------------------------------------------------------- */
static bool is_assistant(const json_t *message)
{
    return strcmp(json_string_value(json_object_get(message, "role")), "assistant") == 0;
}

static int check_role(const struct place *message_at, const json_t *message)
{
    struct place at = { message_at->file, message_at->i, ".role" };
    const json_t *role = json_object_get(message, "role");
    for (size_t i = 0; json_is_string(role) && roles[i]; i++)
        if (strcmp(json_string_value(role), roles[i]) == 0)
            return CLI_EXIT_OK;
    return fail_at(&at, role, "system, developer, user, assistant or tool");
}

/* Text of part k of a content; NULL after a message. */
static const json_t *text_of_part(const struct place *message_at, const json_t *parts, size_t k)
{
    static const char no_media[] = "text, since images, audio and files cannot be read";
    char member[64];
    struct place at = { message_at->file, message_at->i, member };
    const json_t *part = json_array_get(parts, k), *type = json_object_get(part, "type"),
                 *text = json_object_get(part, "text");
    snprintf(member, sizeof member, ".content[%zu]", k);
    if (!json_is_object(part)) {
        fail_at(&at, part, "an object: {\"type\": \"text\", \"text\": \"…\"}");
        return NULL;
    }
    snprintf(member, sizeof member, ".content[%zu].type", k);
    if (!json_is_string(type) || strcmp(json_string_value(type), "text") != 0) {
        fail_at(&at, type, no_media);
        return NULL;
    }
    snprintf(member, sizeof member, ".content[%zu].text", k);
    if (!json_is_string(text)) {
        fail_at(&at, text, "a string");
        return NULL;
    }
    return text;
}

/* Replaces the parts of a content by one text, with a newline between two. */
static int join_parts(const struct place *at, json_t *message, const json_t *parts)
{
    size_t n = 0, n_bytes = 0;
    for (size_t k = 0; k < json_array_size(parts); k++) {
        const json_t *text = text_of_part(at, parts, k);
        if (!text)
            return CLI_EXIT_USAGE;
        n_bytes += json_string_length(text) + 1;
    }
    char *joined = malloc(n_bytes + 1);
    for (size_t k = 0; joined && k < json_array_size(parts); k++) {
        const json_t *text = json_object_get(json_array_get(parts, k), "text");
        if (k > 0)
            joined[n++] = '\n';
        memcpy(joined + n, json_string_value(text), json_string_length(text));
        n += json_string_length(text);
    }
    bool good = joined && json_object_set_new(message, "content", json_stringn(joined, n)) == 0;
    free(joined);
    return good ? CLI_EXIT_OK : cli_fail_memory();
}

static int check_content(const struct place *message_at, json_t *message)
{
    struct place at = { message_at->file, message_at->i, ".content" };
    const json_t *content = json_object_get(message, "content");
    if (json_is_array(content))
        return join_parts(&at, message, content);
    if (json_is_string(content) || (is_assistant(message) && (!content || json_is_null(content))))
        return CLI_EXIT_OK;
    return fail_at(&at, content, "a text, or a list of parts of text");
}

/* Checks the calls of an earlier reply: what templates read of them. */
static int check_calls(const struct place *message_at, const json_t *message)
{
    char member[64] = ".tool_calls";
    struct place at = { message_at->file, message_at->i, member };
    const json_t *calls = json_object_get(message, "tool_calls");
    if (!calls || json_is_null(calls))
        return CLI_EXIT_OK;
    if (!json_is_array(calls))
        return fail_at(&at, calls, "a list of calls");
    for (size_t k = 0; k < json_array_size(calls); k++) {
        const json_t *function = json_object_get(json_array_get(calls, k), "function"),
                     *name = json_object_get(function, "name"),
                     *arguments = json_object_get(function, "arguments");
        snprintf(member, sizeof member, ".tool_calls[%zu].function", k);
        if (!json_is_object(function))
            return fail_at(&at, function, "an object with name and arguments");
        snprintf(member, sizeof member, ".tool_calls[%zu].function.name", k);
        if (!json_is_string(name))
            return fail_at(&at, name, "the name of a tool");
        snprintf(member, sizeof member, ".tool_calls[%zu].function.arguments", k);
        if (!json_is_string(arguments) && !json_is_object(arguments))
            return fail_at(&at, arguments, "an object, as it is or as JSON text");
    }
    return CLI_EXIT_OK;
}

static int check_message(const struct place *at, json_t *message)
{
    if (!json_is_object(message))
        return fail_at(at, message, "an object: {\"role\": \"user\", \"content\": \"…\"}");
    int code = check_role(at, message);
    if (code == CLI_EXIT_OK)
        code = check_content(at, message);
    if (code == CLI_EXIT_OK)
        code = check_calls(at, message);
    return code;
}

int cli_reply_read_messages(struct cli_reply *r)
{
    const char *path = r->options->messages;
    int code;
    r->messages = read_list("--messages", path, "a list of messages", &code);
    if (code == CLI_EXIT_OK && json_array_size(r->messages) == 0)
        return cli_fail_usage("--messages %s: the list is empty; expected at least one message",
                              path);
    for (size_t i = 0; code == CLI_EXIT_OK && i < json_array_size(r->messages); i++) {
        struct place at = { path, i, "" };
        code = check_message(&at, json_array_get(r->messages, i));
    }
    return code;
}

/* ---- Tools -------------------------------------------------------------- */
static const char *name_of(const json_t *tool)
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
            return CLI_EXIT_OK;
    for (size_t i = 0; i < json_array_size(tools); i++) {
        const char *name = name_of(json_array_get(tools, i));
        if (strcmp(name, choice) == 0)
            return CLI_EXIT_OK;
        if (n + strlen(name) + 3 < sizeof names)
            n += (size_t)snprintf(names + n, sizeof names - n, ", %s", name);
    }
    return cli_fail_usage(
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
        return CLI_EXIT_OK;
    return akunu_last_status() == AKUNU_ERROR_MEMORY ?
               cli_fail_memory() :
               cli_fail_usage("--tools %s: %s", path, akunu_last_error());
}

int cli_reply_read_tools(struct cli_reply *r)
{
    const struct cli_options *o = r->options;
    int code;
    if (!o->tools)
        return CLI_EXIT_OK;
    json_t *list = read_list("--tools", o->tools, "a list of functions", &code);
    if (code == CLI_EXIT_OK && !(r->tools = json_dumps(list, JSON_COMPACT)))
        code = cli_fail_memory();
    if (code == CLI_EXIT_OK)
        code = check_tools(o->tools, r->tools);
    if (code == CLI_EXIT_OK)
        code = check_choice(o->tool_choice, list);
    /* no call is possible: the model need not see them */
    if (json_array_size(list) == 0 || (o->tool_choice && strcmp(o->tool_choice, "none") == 0)) {
        free(r->tools);
        r->tools = NULL;
    }
    json_decref(list);
    return code;
}
