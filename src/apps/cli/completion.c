/* completion: prints the script for a shell, or the words that such a script asks for. */
#include "apps/cli/completion.h"

#include <stdlib.h>
#include <string.h>

#include "akunu/akunu.h"
#include "apps/common/configuration.h"
#include "apps/common/load.h"
#include "apps/common/message.h"
#include "apps/common/options.h"

enum cli_completion_kind cli_find_completion_kind(const struct app_flag *flag)
{
    if (strcmp(flag->name, "model") == 0)
        return CLI_COMPLETION_MODELS;
    if (strcmp(flag->name, "cpu") == 0)
        return CLI_COMPLETION_CPUS;
    if (flag->choices || flag->suggestion_at)
        return CLI_COMPLETION_CHOICES;
    if (flag->value && strcmp(flag->value, "FILE") == 0)
        return CLI_COMPLETION_FILES;
    return flag->value && strcmp(flag->value, "DIR") == 0 ? CLI_COMPLETION_FOLDERS :
                                                            CLI_COMPLETION_NOTHING;
}

const char *cli_find_choice(const struct app_flag *flag, size_t i)
{
    return flag->suggestion_at ? flag->suggestion_at(i) : flag->choices[i];
}

static void put_presets(struct app_output *out)
{
    struct app_config config;
    const char *last = "";
    app_config_read(NULL,
                    &config); /* whatever can be read of a damaged file: shells hide messages */
    for (size_t i = 0; i < config.n; i++) {
        const char *preset = config.settings[i].preset;
        if (preset && strcmp(preset, last) != 0)
            app_output_format(out, "%s\n", last = preset);
    }
    app_config_free(&config);
}

static void put_cpus(struct app_output *out)
{
    const char *name;
    for (size_t i = 0; (name = akunu_cpu_name(i)) != NULL; i++)
        app_output_format(out, "%s\n", name);
}

static void put_name(const char *name, void *user)
{
    app_output_format(user, "%s\n", name);
}

int cli_completion(const struct app_options *o)
{
    struct app_output out = app_output_stdout();
    int code = APP_EXIT_OK;
    if (strcmp(o->word, "bash") == 0)
        cli_complete_bash(&out);
    else if (strcmp(o->word, "zsh") == 0)
        cli_complete_zsh(&out);
    else if (strcmp(o->word, "fish") == 0)
        cli_complete_fish(&out);
    else if (strcmp(o->word, "cpus") == 0)
        put_cpus(&out);
    else {
        put_presets(&out);
        code = app_visit_models(put_name, &out);
    }
    return app_output_end(&out, code);
}
