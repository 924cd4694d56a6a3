/* Applies configuration files and presets to flags without a stronger value. */
#include <stdio.h>
#include <string.h>

#include "apps/common/configuration.h"
#include "apps/common/message.h"

static struct cli_option_value read_setting(const struct cli_setting *s)
{
    struct cli_option_value f = { .text = s->values.values[0],
                                  .all = s->values,
                                  .joint = ": ",
                                  .file = s->file,
                                  .line = s->line };
    f.source = s->preset ? CLI_SOURCE_PRESET : CLI_SOURCE_CONFIG;
    snprintf(f.shown, sizeof f.shown, "%s", s->flag->name);
    return f;
}

/* Unselected presets are checked too, so that errors show at once. */
static int check_value(const struct cli_flag *flag, const struct cli_option_value *f)
{
    struct cli_options scratch;
    if (f->all.n > 1 && flag->kind != CLI_FLAG_LIST && flag->kind != CLI_FLAG_TEXTS)
        return cli_fail_usage("%s:%lu: '%s' takes one value, not a list", f->file, f->line,
                              f->shown);
    return cli_means_default(flag, f) ? CLI_EXIT_OK : cli_set_value(flag, f, &scratch);
}

static int apply(const struct cli_command *command, const struct cli_config *config,
                 const char *preset, struct cli_option_value *values)
{
    for (size_t k = 0; k < config->n; k++) {
        const struct cli_setting *s = &config->settings[k];
        /* commands may use one name differently */
        size_t i = cli_find_flag(command->bit, s->flag->name, strlen(s->flag->name));
        if (i == cli_n_flags)
            continue;
        struct cli_option_value f = read_setting(s);
        int code = check_value(&cli_flags[i], &f);
        if (code != CLI_EXIT_OK)
            return code;
        bool holds = preset ? s->preset && strcmp(s->preset, preset) == 0 : !s->preset;
        if (holds && values[i].source <= f.source)
            values[i] = f;
    }
    return CLI_EXIT_OK;
}

const char *cli_config_model(const struct cli_config *config, const char *preset)
{
    const char *model = NULL;
    for (size_t k = 0; k < config->n; k++)
        if (config->settings[k].preset && strcmp(config->settings[k].preset, preset) == 0 &&
            strcmp(config->settings[k].flag->name, "model") == 0)
            model = config->settings[k].values.values[0];
    return model;
}

int cli_apply_config(const struct cli_command *command, const struct cli_config *config,
                     struct cli_option_value *values)
{
    size_t model = cli_find_flag(command->bit, "model", strlen("model"));
    int code = apply(command, config, NULL, values);
    if (code != CLI_EXIT_OK || model == cli_n_flags || values[model].source == CLI_SOURCE_NONE)
        return code;

    struct cli_option_value *m = &values[model];
    for (size_t i = 0; m->all.n > 1 && i < m->all.n; i++)
        if (cli_config_has_preset(config, m->all.values[i]))
            return cli_fail_usage(
                "-m %s: a preset stands alone, since its settings are for one model",
                m->all.values[i]);
    if (!cli_config_has_preset(config, m->text))
        return CLI_EXIT_OK;

    /* a preset's own model is a path, whatever selected the preset */
    const char *path = cli_config_model(config, m->text), *preset = m->text;
    enum cli_source source = m->source;
    m->source = CLI_SOURCE_ARGUMENT;
    code = apply(command, config, preset, values);
    m->source = source;
    m->text = path;
    if (m->all.n > 0)
        m->all = (struct cli_texts){ 1, { path } };
    return code;
}
