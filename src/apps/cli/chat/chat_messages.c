/* The messages of a conversation. */
#include "apps/cli/chat/chat.h"

#include <stdlib.h>
#include <string.h>

#include "apps/common/message.h"
#include "apps/common/prompt.h"

static bool is_of(const json_t *message, const char *role)
{
    const char *found = json_string_value(json_object_get(message, "role"));
    return found && strcmp(found, role) == 0;
}

int cli_chat_add(struct cli_chat *chat, const char *role, const char *text, size_t n)
{
    json_t *message = app_message(role, text, n);
    return message && json_array_append_new(chat->messages, message) == 0 ? APP_EXIT_OK :
                                                                            app_fail_memory();
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
        return APP_EXIT_OK;
    json_t *message = app_message("system", text, strlen(text));
    return message && json_array_insert_new(chat->messages, 0, message) == 0 ? APP_EXIT_OK :
                                                                               app_fail_memory();
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

int cli_chat_add_user(struct cli_chat *chat, const char *text, size_t n)
{
    struct app_text *attached = &chat->attached;
    if (attached->n == 0)
        return cli_chat_add(chat, "user", text, n);
    char *larger = realloc(attached->bytes, attached->n + n + 1);
    if (!larger)
        return app_fail_memory();
    memcpy(larger + attached->n, text, n);
    int code = cli_chat_add(chat, "user", larger, attached->n + n);
    free(larger);
    *attached = (struct app_text){ 0 };
    return code;
}
