/* The prompt of the chat command. Templates differ in what they read of a conversation; it is
 * adapted to them here. */
#include "apps/cli/chat/reply.h"

#include <stdlib.h>
#include <string.h>

#include "apps/common/conversation.h"
#include "apps/common/message.h"

static int fail_render(enum akunu_status status)
{
    if (status == AKUNU_ERROR_MEMORY)
        return app_fail_memory();
    int code = app_fail_library();
    /* a template that refuses the conversation: bad input, no unreadable model */
    return status == AKUNU_ERROR_ARGUMENT ? APP_EXIT_FAILURE : code;
}

/* Renders with arguments as objects; if the template fails at that, as they are. */
static int render_reply(struct cli_reply *r, size_t *n)
{
    json_t *parsed = json_deep_copy(r->messages);
    bool changed = false;
    if (!parsed || !app_conversation_parse_arguments(parsed, &changed)) {
        json_decref(parsed);
        return app_fail_memory();
    }
    enum akunu_status status =
        app_try_render(r->options, r->template, parsed, r->tools, &r->prompt, n);
    json_decref(parsed);
    if (status == AKUNU_ERROR_ARGUMENT && changed)
        status = app_try_render(r->options, r->template, r->messages, r->tools, &r->prompt, n);
    return status == AKUNU_OK ? APP_EXIT_OK : fail_render(status);
}

/* Warns if the prompt is the same without the tools. */
static void warn_if_tools_unseen(const struct cli_reply *r, size_t n)
{
    char *without;
    size_t n_without = 0;
    if (!r->tools || app_try_render(r->options, r->template, r->messages, NULL, &without,
                                    &n_without) != AKUNU_OK)
        return;
    if (n_without == n && memcmp(without, r->prompt, n) == 0)
        app_warn("--tools %s: the chat template does not show tools to the model",
                 r->options->chat.tools);
    free(without);
}

int cli_reply_make_prompt(struct cli_reply *r)
{
    size_t n = 0;
    const char *text = akunu_template_text(r->template, NULL, r->tools != NULL, NULL);
    int code = app_conversation_name_developer(r->messages, text) ? render_reply(r, &n) :
                                                                    app_fail_memory();
    if (code != APP_EXIT_OK)
        return code;
    warn_if_tools_unseen(r, n);
    return app_tokenize_prompt(r->loaded.tokenizer, r->prompt, n, &r->ids, &r->n_ids);
}
