/* Checks what a program gives as a conversation, because templates fail later and say less, and
 * adapts it to what templates read. */
#include "apps/common/conversation.h"

#include <stdlib.h>
#include <string.h>

#include "apps/common/json_text.h"
#include "apps/common/message.h"
#include "base/json/wide.h"

static const char *const roles[] = { "system", "developer", "user", "assistant", "tool", NULL };

/* A place in the conversation: messages[i], and what of it. */
struct place {
    char *why; /* [APP_PROBLEM_BYTES] */
    size_t i;
    const char *member; /* ".content[2].type"; "": the message itself */
};

/* ---- Problems ----------------------------------------------------------- */
void app_describe_json(const json_t *value, char out[APP_DESCRIBED_BYTES])
{
    static const char *const kinds[] = {
        [JSON_OBJECT] = "an object", [JSON_ARRAY] = "a list", [JSON_TRUE] = "true",
        [JSON_FALSE] = "false",      [JSON_NULL] = "null",
    };
    char shown[APP_SHOWN_BYTES];
    const char *wide = ak_wide_text(value);
    if (!value)
        snprintf(out, APP_DESCRIBED_BYTES, "nothing");
    else if (wide)
        snprintf(out, APP_DESCRIBED_BYTES, "the number %s", app_show_text(wide, shown));
    else if (json_is_integer(value))
        snprintf(out, APP_DESCRIBED_BYTES, "the number %" JSON_INTEGER_FORMAT,
                 json_integer_value(value));
    else if (json_is_string(value))
        snprintf(out, APP_DESCRIBED_BYTES, "\"%s\"",
                 app_show_text(json_string_value(value), shown));
    else if (json_is_number(value))
        snprintf(out, APP_DESCRIBED_BYTES, "the number %g", json_number_value(value));
    else
        snprintf(out, APP_DESCRIBED_BYTES, "%s", kinds[json_typeof(value)]);
}

/* Says what was found at a place and what is expected there. */
static bool fail_at(const struct place *at, const json_t *found, const char *expected)
{
    char shown[APP_DESCRIBED_BYTES];
    app_describe_json(found, shown);
    snprintf(at->why, APP_PROBLEM_BYTES, "messages[%zu]%s is %s; expected %s", at->i, at->member,
             shown, expected);
    return false;
}

/* ---- Messages ----------------------------------------------------------- */
static bool is_assistant(const json_t *message)
{
    return strcmp(json_string_value(json_object_get(message, "role")), "assistant") == 0;
}

static bool check_role(const struct place *message_at, const json_t *message)
{
    struct place at = { message_at->why, message_at->i, ".role" };
    const json_t *role = json_object_get(message, "role");
    for (size_t i = 0; json_is_string(role) && roles[i]; i++)
        if (strcmp(json_string_value(role), roles[i]) == 0)
            return true;
    return fail_at(&at, role, "system, developer, user, assistant or tool");
}

/* Text of part k of a content; NULL after a message. */
static const json_t *text_of_part(const struct place *message_at, const json_t *parts, size_t k)
{
    static const char no_media[] = "text, since images, audio and files cannot be read";
    char member[64];
    struct place at = { message_at->why, message_at->i, member };
    const json_t *part = json_array_get(parts, k), *type = json_object_get(part, "type"),
                 *text = json_object_get(part, "text");
    snprintf(member, sizeof member, ".content[%zu]", k);
    if (!app_json_is_object(part)) {
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

static bool report_no_memory(const struct place *at)
{
    at->why[0] = '\0';
    return false;
}

/* Replaces the parts of a content by one text, with a newline between two. */
static bool join_parts(const struct place *at, json_t *message, const json_t *parts)
{
    size_t n = 0, n_bytes = 0;
    for (size_t k = 0; k < json_array_size(parts); k++) {
        const json_t *text = text_of_part(at, parts, k);
        if (!text)
            return false;
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
    return good || report_no_memory(at);
}

static bool check_content(const struct place *message_at, json_t *message)
{
    struct place at = { message_at->why, message_at->i, ".content" };
    const json_t *content = json_object_get(message, "content");
    if (json_is_array(content))
        return join_parts(&at, message, content);
    if (json_is_string(content) || (is_assistant(message) && (!content || json_is_null(content))))
        return true;
    return fail_at(&at, content, "a text, or a list of parts of text");
}

/* Checks the calls of an earlier reply: what templates read of them. */
static bool check_calls(const struct place *message_at, const json_t *message)
{
    char member[64] = ".tool_calls";
    struct place at = { message_at->why, message_at->i, member };
    const json_t *calls = json_object_get(message, "tool_calls");
    if (!calls || json_is_null(calls))
        return true;
    if (!json_is_array(calls))
        return fail_at(&at, calls, "a list of calls");
    for (size_t k = 0; k < json_array_size(calls); k++) {
        const json_t *call = json_array_get(calls, k), *id = json_object_get(call, "id"),
                     *type = json_object_get(call, "type"),
                     *function = json_object_get(call, "function"),
                     *name = json_object_get(function, "name"),
                     *arguments = json_object_get(function, "arguments");
        snprintf(member, sizeof member, ".tool_calls[%zu].id", k);
        if (id && !json_is_null(id) && !json_is_string(id))
            return fail_at(&at, id, "a string");
        snprintf(member, sizeof member, ".tool_calls[%zu].type", k);
        if (type && !(json_is_string(type) && strcmp(json_string_value(type), "function") == 0))
            return fail_at(&at, type, "function");
        snprintf(member, sizeof member, ".tool_calls[%zu].function", k);
        if (!app_json_is_object(function))
            return fail_at(&at, function, "an object with name and arguments");
        snprintf(member, sizeof member, ".tool_calls[%zu].function.name", k);
        if (!json_is_string(name))
            return fail_at(&at, name, "the name of a tool");
        snprintf(member, sizeof member, ".tool_calls[%zu].function.arguments", k);
        if (!json_is_string(arguments) && !app_json_is_object(arguments))
            return fail_at(&at, arguments, "an object, as it is or as JSON text");
    }
    return true;
}

/* Members that templates take for strings. */
static bool check_texts(const struct place *message_at, const json_t *message)
{
    static const char *const names[] = { ".reasoning_content", ".tool_call_id", ".name" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct place at = { message_at->why, message_at->i, names[i] };
        const json_t *found = json_object_get(message, names[i] + 1);
        if (found && !json_is_null(found) && !json_is_string(found))
            return fail_at(&at, found, "a string");
    }
    return true;
}

static bool check_message(const struct place *at, json_t *message)
{
    if (!app_json_is_object(message))
        return fail_at(at, message, "an object: {\"role\": \"user\", \"content\": \"…\"}");
    return check_role(at, message) && check_content(at, message) && check_texts(at, message) &&
           check_calls(at, message);
}

bool app_conversation_check(json_t *messages, char why[APP_PROBLEM_BYTES])
{
    if (json_array_size(messages) == 0) {
        snprintf(why, APP_PROBLEM_BYTES, "the list is empty; expected at least one message");
        return false;
    }
    for (size_t i = 0; i < json_array_size(messages); i++) {
        struct place at = { why, i, "" };
        if (!check_message(&at, json_array_get(messages, i)))
            return false;
    }
    return true;
}

/* ---- What templates read ------------------------------------------------ */
bool app_conversation_name_developer(json_t *messages, const char *template_text)
{
    for (size_t i = 0; i < json_array_size(messages); i++) {
        json_t *message = json_array_get(messages, i);
        const char *role = json_string_value(json_object_get(message, "role"));
        if (strcmp(role, "developer") == 0 &&
            !(template_text && strstr(template_text, "developer")) &&
            json_object_set_new(message, "role", json_string("system")) != 0)
            return false;
    }
    return true;
}

bool app_conversation_parse_arguments(json_t *messages, bool *changed)
{
    for (size_t i = 0; i < json_array_size(messages); i++) {
        const json_t *calls = json_object_get(json_array_get(messages, i), "tool_calls");
        for (size_t k = 0; k < json_array_size(calls); k++) {
            json_t *function = json_object_get(json_array_get(calls, k), "function");
            const json_t *text = json_object_get(function, "arguments");
            /* as Python's json.loads, which takes the last of two equal names */
            json_t *arguments = !json_is_string(text) ?
                                    NULL :
                                    app_json_read(json_string_value(text), json_string_length(text),
                                                  JSON_ALLOW_NUL, APP_JSON_PYTHON, NULL);
            if (!app_json_is_object(arguments)) {
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
