/* Applies configuration files and presets to flags without a stronger value. */
#include <stdio.h>
#include <string.h>

#include "apps/common/configuration.h"
#include "apps/common/message.h"

static struct app_option_value read_setting(const struct app_setting *s)
{
    struct app_option_value f = { .text = s->values.values[0],
                                  .all = s->values,
                                  .joint = ": ",
                                  .file = s->file,
                                  .line = s->line };
    f.source = s->preset ? APP_SOURCE_PRESET : APP_SOURCE_CONFIG;
    snprintf(f.shown, sizeof f.shown, "%s", s->flag->name);
    return f;
}

/* Unselected presets are checked too, so that errors show at once. */
static int check_value(const struct app_flag *flag, const struct app_option_value *f)
{
    struct app_options scratch;
    if (f->all.n > 1 && flag->kind != APP_FLAG_LIST && flag->kind != APP_FLAG_TEXTS)
        return app_fail_usage("%s:%lu: '%s' takes one value, not a list", f->file, f->line,
                              f->shown);
    return app_means_default(flag, f) ? APP_EXIT_OK : app_set_value(flag, f, &scratch);
}

static int apply(const struct app_command *command, const struct app_config *config,
                 const char *preset, struct app_option_value *values)
{
    for (size_t k = 0; k < config->n; k++) {
        const struct app_setting *s = &config->settings[k];
        /* commands may use one name differently */
        size_t i = app_find_flag(command->bit, s->flag->name, strlen(s->flag->name));
        if (i == app_n_flags)
            continue;
        struct app_option_value f = read_setting(s);
        int code = check_value(&app_flags[i], &f);
        if (code != APP_EXIT_OK)
            return code;
        bool holds = preset ? s->preset && strcmp(s->preset, preset) == 0 : !s->preset;
        if (holds && values[i].source <= f.source)
            values[i] = f;
    }
    return APP_EXIT_OK;
}

const char *app_config_model(const struct app_config *config, const char *preset)
{
    const char *model = NULL;
    for (size_t k = 0; k < config->n; k++)
        if (config->settings[k].preset && strcmp(config->settings[k].preset, preset) == 0 &&
            strcmp(config->settings[k].flag->name, "model") == 0)
            model = config->settings[k].values.values[0];
    return model;
}

int app_apply_config(const struct app_command *command, const struct app_config *config,
                     struct app_option_value *values)
{
    size_t model = app_find_flag(command->bit, "model", strlen("model"));
    int code = apply(command, config, NULL, values);
    if (code != APP_EXIT_OK || model == app_n_flags || values[model].source == APP_SOURCE_NONE)
        return code;

    struct app_option_value *m = &values[model];
    for (size_t i = 0; m->all.n > 1 && i < m->all.n; i++)
        if (app_config_has_preset(config, m->all.values[i]))
            return app_fail_usage(
                "-m %s: a preset stands alone, since its settings are for one model",
                m->all.values[i]);
    if (!app_config_has_preset(config, m->text))
        return APP_EXIT_OK;

    /* a preset's own model is a path, whatever selected the preset */
    const char *path = app_config_model(config, m->text), *preset = m->text;
    enum app_source source = m->source;
    m->source = APP_SOURCE_ARGUMENT;
    code = apply(command, config, preset, values);
    m->source = source;
    m->text = path;
    if (m->all.n > 0)
        m->all = (struct app_texts){ 1, { path } };
    return code;
}
