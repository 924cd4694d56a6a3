/* --reasoning and --reasoning-budget: the variables by which chat templates turn reasoning on, off,
 * or to an effort; a prompt without reasoning if the budget is 0; and the library ends reasoning
 * that exceeds the budget. */
#include <stdlib.h>
#include <string.h>

#include "apps/common/json_text.h"
#include "apps/common/message.h"
#include "apps/common/prompt.h"

/* Variables by which templates turn reasoning on and off. */
static const char *const switches[] = { "enable_thinking", "thinking" };

static bool is_effort(const char *when)
{
    return strcmp(when, "low") == 0 || strcmp(when, "medium") == 0 || strcmp(when, "high") == 0;
}

static bool is_on(const char *when)
{
    return strcmp(when, "on") == 0 || strcmp(when, "true") == 0;
}

static enum akunu_status find_marks(const struct akunu_template *template,
                                    const struct akunu_tokenizer *tokenizer, const char *prompt,
                                    struct akunu_reasoning *out)
{
    struct akunu_reply_params params;
    akunu_reply_params_default(&params, sizeof params);
    params.chat_template = akunu_template_text(template, NULL, false, NULL);
    params.tokenizer = tokenizer;
    params.prompt = prompt;
    return akunu_get_reasoning(&params, out, sizeof *out);
}

char *app_reasoning_kwargs(const struct app_options *o, const char *when)
{
    json_t *kwargs = o->chat.kwargs ? app_json_read(o->chat.kwargs, strlen(o->chat.kwargs), 0,
                                                    APP_JSON_PYTHON, NULL) :
                                      json_object();
    if (o->chat.kwargs && !app_json_is_object(kwargs)) { /* the template will refuse it */
        json_decref(kwargs);
        return strdup(o->chat.kwargs);
    }
    json_t *all = is_effort(when) ? json_pack("{s:s}", "reasoning_effort", when) : json_object();
    for (size_t i = 0; !is_effort(when) && i < sizeof switches / sizeof *switches; i++)
        json_object_set_new(all, switches[i], json_boolean(is_on(when)));
    json_object_update(all, kwargs);
    char *text = app_json_write(all, JSON_COMPACT);
    json_decref(all);
    json_decref(kwargs);
    return text;
}

void app_check_reasoning(const struct app_options *o, const struct akunu_template *template)
{
    const char *text = akunu_template_text(template, NULL, false, NULL);
    if (!o->chat.reasoning || !text)
        return;
    if (!strstr(text, is_effort(o->chat.reasoning) ? "reasoning_effort" : "thinking"))
        app_aside("--reasoning %s: the chat template has no variable for it", o->chat.reasoning);
}

enum akunu_status app_reasoning_skip(const struct akunu_template *template, char **prompt,
                                     size_t *n, bool is_off)
{
    struct akunu_reasoning found;
    enum akunu_status status = find_marks(template, NULL, *prompt, &found);
    if (status != AKUNU_OK || !found.begin || (is_off && !found.is_open))
        return status;
    bool on_lines = strcmp(found.end, found.closing) == 0; /* as templates write it */
    const char *const parts[] = { found.is_open ? "" : found.begin, on_lines ? "\n\n" : "",
                                  found.closing, on_lines ? "\n\n" : "" };
    size_t n_more = 1;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        n_more += strlen(parts[i]);
    char *larger = realloc(*prompt, *n + n_more);
    if (!larger)
        return AKUNU_ERROR_MEMORY;
    *prompt = larger;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        memcpy(larger + *n, parts[i], strlen(parts[i]) + 1);
        *n += strlen(parts[i]);
    }
    return AKUNU_OK;
}

int app_reasoning_limit(const struct app_options *o, const struct akunu_template *template,
                        const struct akunu_tokenizer *tokenizer, const char *prompt,
                        struct app_reasoning *reasoning, struct akunu_generation_params *generation)
{
    if (o->chat.reasoning_budget < 0)
        return APP_EXIT_OK;
    if (find_marks(template, tokenizer, prompt, &reasoning->found) != AKUNU_OK)
        return app_fail_library();
    reasoning->found.budget = o->chat.reasoning_budget;
    if (!reasoning->found.begin && !reasoning->is_reported) {
        app_aside("--reasoning-budget %lld has no effect: answers by this chat template have no "
                  "reasoning",
                  (long long)o->chat.reasoning_budget);
        reasoning->is_reported = true;
    }
    generation->reasoning = &reasoning->found;
    return APP_EXIT_OK;
}
