/* The messages of a conversation and their file, a JSON list that apply-template and other programs
 * read. */
#include "cli/chat.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/message.h"
#include "cli/prompt.h"

static bool is_of(const json_t *message, const char *role)
{
    const char *found = json_string_value(json_object_get(message, "role"));
    return found && strcmp(found, role) == 0;
}

int cli_chat_add(struct cli_chat *chat, const char *role, const char *text, size_t n)
{
    json_t *message = cli_message(role, text, n);
    return message && json_array_append_new(chat->messages, message) == 0 ? CLI_EXIT_OK :
                                                                            cli_fail_memory();
}

const json_t *cli_chat_system(const struct cli_chat *chat)
{
    const json_t *first = json_array_get(chat->messages, 0);
    return is_of(first, "system") ? json_object_get(first, "content") : NULL;
}

int cli_chat_set_system(struct cli_chat *chat, const char *text)
{
    if (cli_chat_system(chat))
        json_array_remove(chat->messages, 0);
    if (!text)
        return CLI_EXIT_OK;
    json_t *message = cli_message("system", text, strlen(text));
    return message && json_array_insert_new(chat->messages, 0, message) == 0 ? CLI_EXIT_OK :
                                                                               cli_fail_memory();
}

bool cli_chat_is_last(const struct cli_chat *chat, const char *role)
{
    size_t n = json_array_size(chat->messages);
    return n > 0 && is_of(json_array_get(chat->messages, n - 1), role);
}

void cli_chat_drop_last(struct cli_chat *chat)
{
    json_array_remove(chat->messages, json_array_size(chat->messages) - 1);
}

int cli_chat_save(const struct cli_chat *chat, const char *path)
{
    FILE *file = fopen(path, "we");
    bool good = file && json_dumpf(chat->messages, file, JSON_INDENT(2)) == 0 &&
                fputc('\n', file) != EOF && fflush(file) == 0;
    int error = errno;
    if (file && fclose(file) != 0 && good) {
        error = errno;
        good = false;
    }
    return good ? CLI_EXIT_OK : cli_fail("cannot write %s: %s", path, strerror(error));
}

/* What is wrong with a list of messages; NULL: nothing. */
static const char *fault_of(const json_t *messages)
{
    size_t i;
    const json_t *message;
    if (!json_is_array(messages))
        return "it is not a list of messages";
    json_array_foreach (messages, i, message) {
        const json_t *content = json_object_get(message, "content");
        if (!json_is_string(json_object_get(message, "role")))
            return "a message has no role";
        if (!json_is_string(content) && !json_is_array(content) && !json_is_null(content))
            return "a message has no content";
    }
    return NULL;
}

int cli_chat_load(struct cli_chat *chat, const char *path)
{
    json_error_t error;
    FILE *file = fopen(path, "re");
    if (!file)
        return cli_fail("cannot read %s: %s", path, strerror(errno));
    json_t *messages = json_loadf(file, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    fclose(file);
    if (!messages)
        return cli_fail("%s:%d: no valid JSON: %s", path, error.line, error.text);
    const char *fault = fault_of(messages);
    if (fault) {
        json_decref(messages);
        return cli_fail("%s holds no conversation: %s", path, fault);
    }
    json_decref(chat->messages);
    chat->messages = messages;
    return CLI_EXIT_OK;
}
