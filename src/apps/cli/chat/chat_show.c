/* /show and /stats: the model, the template, the context, sampling and speeds. */
#include "apps/cli/chat/chat.h"

#include <stdio.h>
#include <string.h>

#include "apps/common/message.h"
#include "apps/cli/run/wrap.h"

static void show_model(const struct cli_chat *chat)
{
    const struct akunu_model_info *m = &chat->loaded->info;
    app_report("model     %s, %s, %.0f million parameters", *m->name ? m->name : m->architecture,
               m->weight_type, (double)m->n_parameters / 1e6);
}

static void show_context(const struct cli_chat *chat)
{
    app_report("context   %u of %u tokens, %zu messages",
               akunu_sequence_length(chat->loaded->session, chat->loaded->sequence),
               akunu_session_context(chat->loaded->session), json_array_size(chat->messages));
}

/* ---- /show -------------------------------------------------------------- */
static void show_template(const struct cli_chat *chat)
{
    const struct app_options *o = chat->options;
    size_t n = 0;
    akunu_template_text(chat->template, NULL, false, &n);
    if (o->chat.template_file)
        app_report("template  from %s, %zu bytes", o->chat.template_file, n);
    else if (o->chat.template)
        app_report("template  from --chat-template, %zu bytes", n);
    else if (akunu_template_is_fallback(chat->template))
        app_report("template  ChatML, since the model has none");
    else
        app_report("template  the model's, %zu bytes (/show template prints it)", n);
}

static void show_system(const struct cli_chat *chat)
{
    char shown[APP_SHOWN_BYTES];
    const char *text = json_string_value(cli_chat_system(chat));
    if (text)
        app_report("system    %s", app_show_text(text, shown));
}

/* Whether a flag is shown though it has its default: those that most people change. */
static bool is_common(const struct app_flag *flag)
{
    static const char *const names[] = { "temp", "top-k", "top-p", "min-p" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(flag->name, names[i]) == 0)
            return true;
    return false;
}

static void show_sampling(const struct cli_chat *chat)
{
    static struct app_options defaults;
    char line[1024] = "", value[APP_SHOWN_BYTES], usual[APP_SHOWN_BYTES];
    size_t n = 0;
    defaults.text.seed = -1;
    akunu_sampling_params_default(&defaults.sampling, sizeof defaults.sampling);
    akunu_generation_params_default(&defaults.generation, sizeof defaults.generation);
    for (size_t i = 0; i < app_n_flags && n < sizeof line; i++) {
        const struct app_flag *flag = &app_flags[i];
        if (!cli_chat_can_set(flag))
            continue;
        const char *text = cli_chat_value(flag, chat->options, value);
        if (is_common(flag) || strcmp(text, cli_chat_value(flag, &defaults, usual)) != 0)
            n += (size_t)snprintf(line + n, sizeof line - n, "%s%s %s", n ? ", " : "", flag->name,
                                  text);
    }
    app_report("sampling  %s", line);
}

int cli_chat_show(struct cli_chat *chat, const char *argument)
{
    if (strcmp(argument, "template") == 0) {
        struct app_output err = { .file = stderr };
        size_t n = 0;
        const char *text = akunu_template_text(chat->template, NULL, false, &n);
        cli_write_plain(&err, text, n);
        if (n == 0 || text[n - 1] != '\n')
            app_output_text(&err, "\n");
        return APP_EXIT_OK;
    }
    if (*argument)
        return app_fail_usage("/show %s: expected nothing, or template", argument);
    show_model(chat);
    app_report("file      %s", chat->loaded->path);
    show_template(chat);
    show_system(chat);
    show_context(chat);
    show_sampling(chat);
    return APP_EXIT_OK;
}

/* ---- /stats ------------------------------------------------------------- */
int cli_chat_stats(struct cli_chat *chat, const char *argument)
{
    struct akunu_memory memory;
    (void)argument;
    show_model(chat);
    show_context(chat);
    app_report("prompts   %llu tokens, %.1f tok/s; %llu more were in the cache",
               (unsigned long long)chat->n_prompt,
               app_rate((double)chat->n_prompt, chat->prompt_seconds),
               (unsigned long long)chat->n_reused);
    app_report("answers   %llu, %llu tokens, %.1f tok/s", (unsigned long long)chat->n_turns,
               (unsigned long long)chat->n_generated,
               app_rate((double)(chat->n_generated - chat->n_turns), chat->generate_seconds));
    if (akunu_model_get_memory(chat->loaded->model, chat->loaded->session, &memory,
                               sizeof memory) == AKUNU_OK)
        app_report("memory    weights %.0f MB, KV cache %.0f MB, scratch %.0f MB",
                   (double)memory.packed / 1e6, (double)memory.kv / 1e6,
                   (double)memory.scratch / 1e6);
    return APP_EXIT_OK;
}
