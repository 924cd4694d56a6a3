/* /set: changes a flag of sampling during a chat, with the flag's own checks and messages. */
#include "apps/cli/chat/chat.h"

#include <stdio.h>
#include <string.h>

#include "apps/common/configuration.h"
#include "apps/common/message.h"

bool cli_chat_can_set(const struct app_flag *flag)
{
    return (flag->commands & APP_RUN) && (!flag->modes || (flag->modes & APP_MODE_CHAT)) &&
           (strcmp(flag->group, "Sampling") == 0 ||
            flag->offset == offsetof(struct app_options, generation.max_tokens));
}

/* All values of a flag that may be repeated. */
static const char *join_values(const struct app_texts *texts, char out[APP_SHOWN_BYTES])
{
    char all[4 * APP_SHOWN_BYTES] = "";
    size_t n = 0;
    for (size_t i = 0; i < texts->n && n < sizeof all; i++)
        n += (size_t)snprintf(all + n, sizeof all - n, "%s%s", i ? " " : "", texts->values[i]);
    return app_show_text(all, out);
}

const char *cli_chat_value(const struct app_flag *flag, const struct app_options *o,
                           char out[APP_SHOWN_BYTES])
{
    const void *member = (const char *)o + flag->offset;
    const char *text;
    out[0] = '\0';
    switch (flag->kind) {
    case APP_FLAG_BOOL: return *(const bool *)member ? "on" : "off";
    case APP_FLAG_TEXT:
        text = *(const char *const *)member;
        return text ? app_show_text(text, out) : "-";
    case APP_FLAG_TEXTS:
        return ((const struct app_texts *)member)->n ? join_values(member, out) : "-";
    case APP_FLAG_I32: snprintf(out, APP_SHOWN_BYTES, "%d", *(const int32_t *)member); break;
    case APP_FLAG_U32:
    case APP_FLAG_ENUM: snprintf(out, APP_SHOWN_BYTES, "%u", *(const uint32_t *)member); break;
    case APP_FLAG_I64:
        snprintf(out, APP_SHOWN_BYTES, "%lld", (long long)*(const int64_t *)member);
        break;
    case APP_FLAG_SIZE:
        snprintf(out, APP_SHOWN_BYTES, "%llu", (unsigned long long)*(const uint64_t *)member);
        break;
    case APP_FLAG_F32: snprintf(out, APP_SHOWN_BYTES, "%g", (double)*(const float *)member); break;
    case APP_FLAG_LIST: break; /* none of them can be set */
    }
    return out;
}

static void list_all(const struct cli_chat *chat)
{
    char value[APP_SHOWN_BYTES];
    for (size_t i = 0; i < app_n_flags; i++)
        if (cli_chat_can_set(&app_flags[i]))
            app_report("%-21s %s", app_flags[i].name,
                       cli_chat_value(&app_flags[i], chat->options, value));
}

/* The flag of a key of n bytes; NULL after a message. */
static const struct app_flag *find_flag(const char *key, size_t n)
{
    const char *words[2 * APP_MAX_FLAGS];
    char typed[32], shown[APP_SHOWN_BYTES];
    size_t n_words = 0, i = app_find_flag(APP_RUN, key, n);
    if (i < app_n_flags && cli_chat_can_set(&app_flags[i]))
        return &app_flags[i];
    if (i < app_n_flags) {
        app_fail_usage("--%s cannot change during a chat; /set lists what can", app_flags[i].name);
        return NULL;
    }
    snprintf(typed, sizeof typed, "%.*s", (int)(n < sizeof typed ? n : sizeof typed - 1), key);
    for (i = 0; i < app_n_flags; i++)
        for (int k = 0; cli_chat_can_set(&app_flags[i]) && k < 2; k++)
            if (app_flag_spelling(&app_flags[i], k))
                words[n_words++] = app_flag_spelling(&app_flags[i], k);
    const char *nearest = app_find_nearest(typed, words, n_words);
    if (nearest)
        app_fail_usage("/set knows no %s; did you mean %s?", app_show_text(typed, shown), nearest);
    else
        app_fail_usage("/set knows no %s; /set alone lists what it knows",
                       app_show_text(typed, shown));
    return NULL;
}

/* Takes the values of flags that exclude this one. */
static void clear_rest_of_group(const struct app_flag *flag, struct app_options *o)
{
    for (size_t i = 0; i < app_n_flags; i++)
        if (flag->exclusive_group != APP_EXCLUSIVE_NONE &&
            app_flags[i].exclusive_group == flag->exclusive_group &&
            app_flags[i].kind == APP_FLAG_TEXT)
            *(const char **)((char *)o + app_flags[i].offset) = NULL;
}

/* Makes the sampler's parameters of the flags. */
static int use(struct cli_chat *chat, const struct app_options *o)
{
    int code = app_sampling(o, &chat->sampling);
    chat->sampling.params.grammar = chat->grammar;
    return code == APP_EXIT_OK ? app_check_bias(&chat->sampling, chat->loaded->model) : code;
}

static int change(struct cli_chat *chat, const struct app_flag *flag, const char *value)
{
    char shown[APP_SHOWN_BYTES];
    struct app_options changed = *chat->options;
    const char *kept = app_config_keep(changed.configuration, value, strlen(value));
    struct app_option_value typed = { .source = APP_SOURCE_ARGUMENT, .text = kept, .joint = " " };
    if (!kept)
        return app_fail_memory();
    typed.all = (struct app_texts){ 1, { kept } };
    snprintf(typed.shown, sizeof typed.shown, "--%s", flag->name);
    clear_rest_of_group(flag, &changed);
    int code = app_set_value(flag, &typed, &changed);
    if (code != APP_EXIT_OK)
        return code;
    code = use(chat, &changed);
    if (code != APP_EXIT_OK) {
        (void)use(chat, chat->options);
        return code;
    }
    *chat->options = changed;
    chat->generation.max_tokens = changed.generation.max_tokens;
    if (flag->offset == offsetof(struct app_options, text.seed))
        chat->seed = (int64_t)chat->sampling.params.seed;
    app_aside("%s %s", flag->name, cli_chat_value(flag, chat->options, shown));
    return code;
}

int cli_chat_set(struct cli_chat *chat, const char *argument)
{
    char shown[APP_SHOWN_BYTES], value[256];
    const char *key = argument;
    for (int i = 0; i < 2 && *key == '-'; i++)
        key++; /* the flag as it is on the command line */
    size_t n = strcspn(key, " \t=");
    if (n == 0) {
        list_all(chat);
        return APP_EXIT_OK;
    }
    const struct app_flag *flag = find_flag(key, n);
    if (!flag)
        return APP_EXIT_USAGE;
    const char *typed = key + n + strspn(key + n, " \t=");
    n = strlen(typed);
    while (n > 0 && (typed[n - 1] == ' ' || typed[n - 1] == '\t'))
        n--;
    if (n >= sizeof value)
        return app_fail_usage("--%s: the value is too long", flag->name);
    memcpy(value, typed, n);
    value[n] = '\0';
    if (n == 0 && flag->kind == APP_FLAG_BOOL)
        strcpy(value, "1");
    if (!*value) {
        app_report("%s %s", flag->name, cli_chat_value(flag, chat->options, shown));
        return APP_EXIT_OK;
    }
    return change(chat, flag, value);
}
