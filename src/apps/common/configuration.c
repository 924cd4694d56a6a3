/* Parses a configuration file from YAML events: mappings two levels deep, no anchors or aliases. */
#include "apps/common/configuration.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <yaml.h>

#include "apps/common/message.h"

struct reader {
    yaml_parser_t parser;
    yaml_event_t event; /* current event */
    const char *name;   /* file name, owned by the configuration */
    struct app_config *config;
    size_t first; /* index of this file's first setting */
};

/* ---- Events ------------------------------------------------------------- */
static unsigned long line_of(const struct reader *r)
{
    return (unsigned long)r->event.start_mark.line + 1;
}

static int next_event(struct reader *r)
{
    yaml_event_delete(&r->event);
    memset(&r->event, 0, sizeof r->event);
    if (yaml_parser_parse(&r->parser, &r->event))
        return APP_EXIT_OK;
    if (r->parser.error == YAML_MEMORY_ERROR)
        return app_fail_memory();
    return app_fail_usage("%s:%lu: no valid YAML: %s", r->name,
                          (unsigned long)r->parser.problem_mark.line + 1,
                          r->parser.problem ? r->parser.problem : "unknown");
}

/* The current event as text for a message. */
static const char *show_event(const struct reader *r, char text[APP_SHOWN_BYTES])
{
    if (r->event.type == YAML_SCALAR_EVENT)
        return app_show_text((const char *)r->event.data.scalar.value, text);
    return r->event.type == YAML_SEQUENCE_START_EVENT ? "a list" :
           r->event.type == YAML_ALIAS_EVENT          ? "an alias" :
                                                        "a mapping";
}

/* Reads a scalar as a string owned by the configuration; `what` says what was expected. */
static int take_text(struct reader *r, const char *what, const char **out)
{
    char text[APP_SHOWN_BYTES];
    if (r->event.type != YAML_SCALAR_EVENT)
        return app_fail_usage("%s:%lu: expected %s, found %s", r->name, line_of(r), what,
                              show_event(r, text));
    const char *value = (const char *)r->event.data.scalar.value;
    size_t n = r->event.data.scalar.length;
    if (memchr(value, '\0', n))
        return app_fail_usage("%s:%lu: %s has a NUL", r->name, line_of(r), what);
    *out = app_config_keep(r->config, value, n);
    return *out ? APP_EXIT_OK : app_fail_memory();
}

static bool is_nothing(const struct reader *r)
{
    const char *value = (const char *)r->event.data.scalar.value;
    return r->event.type == YAML_SCALAR_EVENT &&
           r->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
           (*value == '\0' || strcmp(value, "~") == 0 || strcasecmp(value, "null") == 0);
}

/* ---- Keys --------------------------------------------------------------- */
static bool may_be_set(const struct app_flag *flag)
{
    return flag->offset != offsetof(struct app_options, help) &&
           flag->offset != offsetof(struct app_options, version) &&
           flag->offset != offsetof(struct app_options, config);
}

static const struct app_flag *flag_of(const char *key)
{
    for (size_t i = 0; i < app_n_flags; i++) {
        const struct app_flag *flag = &app_flags[i];
        if (may_be_set(flag) && app_flag_is(flag, key, strlen(key)))
            return flag;
    }
    return NULL;
}

/* The key that was probably meant. */
static const char *suggestion(const char *key)
{
    const char *words[2 * APP_MAX_FLAGS + 1] = { "models" };
    size_t n = 1;
    for (size_t i = 0; i < app_n_flags; i++) {
        const struct app_flag *flag = &app_flags[i];
        if (!may_be_set(flag))
            continue;
        words[n++] = flag->name;
        if (flag->alias)
            words[n++] = flag->alias;
    }
    return app_find_nearest(key, words, n);
}

static int unknown_key(const struct reader *r, const char *key)
{
    char text[APP_SHOWN_BYTES];
    const char *meant = suggestion(key + strspn(key, "-"));
    if (meant)
        return app_fail_usage("%s:%lu: unknown key '%s'; did you mean '%s'?", r->name, line_of(r),
                              app_show_text(key, text), meant);
    return app_fail_usage("%s:%lu: unknown key '%s'; keys are the flags without dashes (akunu-cli "
                          "COMMAND --help), and models",
                          r->name, line_of(r), app_show_text(key, text));
}

static bool is_same(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* Adds a setting for the current key, without values yet. */
static int add_setting(struct reader *r, const char *preset, const char *key,
                       struct app_setting **out)
{
    struct app_config *c = r->config;
    const struct app_flag *flag = flag_of(key);
    if (!flag)
        return unknown_key(r, key);
    for (size_t i = r->first; i < c->n; i++)
        if (strcmp(c->settings[i].flag->name, flag->name) == 0 &&
            is_same(c->settings[i].preset, preset))
            return app_fail_usage("%s:%lu: '%s' is given twice, first on line %lu", r->name,
                                  line_of(r), key, c->settings[i].line);
    if (c->n == c->capacity) {
        size_t capacity = c->capacity ? 2 * c->capacity : 16;
        struct app_setting *larger = realloc(c->settings, capacity * sizeof *larger);
        if (!larger)
            return app_fail_memory();
        c->settings = larger;
        c->capacity = capacity;
    }
    *out = &c->settings[c->n++];
    **out =
        (struct app_setting){ .file = r->name, .line = line_of(r), .flag = flag, .preset = preset };
    return APP_EXIT_OK;
}

/* ---- Values ------------------------------------------------------------- */
/* Expands "~/x" in values that are files or folders, as a shell does. */
static int expand_home(struct reader *r, struct app_setting *s, const char **text)
{
    const char *home = getenv("HOME"), *kind = s->flag->value;
    if (!home || strncmp(*text, "~/", 2) != 0 || !kind ||
        (strcmp(kind, "FILE") != 0 && strcmp(kind, "DIR") != 0))
        return APP_EXIT_OK;
    size_t n_home = strlen(home), n = strlen(*text) - 1;
    char *path = malloc(n_home + n);
    if (!path)
        return app_fail_memory();
    memcpy(path, home, n_home);
    memcpy(path + n_home, *text + 1, n);
    *text = app_config_keep(r->config, path, n_home + n);
    free(path);
    return *text ? APP_EXIT_OK : app_fail_memory();
}

static int take_value(struct reader *r, struct app_setting *s)
{
    const char *text;
    if (is_nothing(r))
        return app_fail_usage("%s:%lu: '%s' has no value", r->name, s->line, s->flag->name);
    int code = take_text(r, "a value", &text);
    if (code == APP_EXIT_OK)
        code = expand_home(r, s, &text);
    if (code == APP_EXIT_OK && s->values.n == APP_MAX_TEXTS)
        return app_fail_usage("%s:%lu: '%s' has more than %d values", r->name, s->line,
                              s->flag->name, APP_MAX_TEXTS);
    if (code == APP_EXIT_OK)
        s->values.values[s->values.n++] = text;
    return code;
}

static int read_setting(struct reader *r, struct app_setting *s)
{
    char text[APP_SHOWN_BYTES];
    int code = next_event(r);
    if (code != APP_EXIT_OK)
        return code;
    if (r->event.type == YAML_SCALAR_EVENT)
        return take_value(r, s);
    if (r->event.type != YAML_SEQUENCE_START_EVENT)
        return app_fail_usage("%s:%lu: '%s' is %s: expected a value", r->name, s->line,
                              s->flag->name, show_event(r, text));
    for (;;) {
        code = next_event(r);
        if (code != APP_EXIT_OK)
            return code;
        if (r->event.type == YAML_SEQUENCE_END_EVENT)
            return s->values.n ? APP_EXIT_OK :
                                 app_fail_usage("%s:%lu: '%s' is an empty list", r->name, s->line,
                                                s->flag->name);
        code = take_value(r, s);
        if (code != APP_EXIT_OK)
            return code;
    }
}

/* ---- Mappings ----------------------------------------------------------- */
static int expect_mapping(const struct reader *r, const char *what)
{
    char text[APP_SHOWN_BYTES];
    if (r->event.type == YAML_MAPPING_START_EVENT)
        return APP_EXIT_OK;
    return app_fail_usage("%s:%lu: %s is '%s': expected keys and values", r->name, line_of(r), what,
                          show_event(r, text));
}

/* Reads the next key; *key is NULL at the end of the mapping. */
static int read_key(struct reader *r, const char **key)
{
    int code = next_event(r);
    *key = NULL;
    if (code != APP_EXIT_OK || r->event.type == YAML_MAPPING_END_EVENT)
        return code;
    return take_text(r, "a key", key);
}

static int read_preset(struct reader *r, const char *preset)
{
    bool has_model = false;
    unsigned long line = line_of(r);
    int code = next_event(r);
    if (code == APP_EXIT_OK)
        code = expect_mapping(r, "a preset");
    while (code == APP_EXIT_OK) {
        const char *key;
        struct app_setting *setting;
        code = read_key(r, &key);
        if (code != APP_EXIT_OK)
            return code;
        if (!key)
            return has_model ?
                       APP_EXIT_OK :
                       app_fail_usage("%s:%lu: preset '%s' has no model", r->name, line, preset);
        code = add_setting(r, preset, key, &setting);
        has_model |= code == APP_EXIT_OK && strcmp(setting->flag->name, "model") == 0;
        if (code == APP_EXIT_OK)
            code = read_setting(r, setting);
    }
    return code;
}

/* Drops a preset of the same name from a weaker file. */
static void drop_preset(struct app_config *c, const char *preset, size_t *first)
{
    size_t kept = 0, before = 0;
    for (size_t i = 0; i < c->n; i++)
        if (i >= *first || !is_same(c->settings[i].preset, preset)) {
            before += i < *first;
            c->settings[kept++] = c->settings[i];
        }
    c->n = kept;
    *first = before;
}

static int read_presets(struct reader *r)
{
    int code = next_event(r);
    if (code == APP_EXIT_OK)
        code = expect_mapping(r, "models");
    while (code == APP_EXIT_OK) {
        char text[APP_SHOWN_BYTES];
        const char *preset;
        code = read_key(r, &preset);
        if (code != APP_EXIT_OK || !preset)
            return code;
        if (*preset == '\0')
            return app_fail_usage("%s:%lu: a preset without a name", r->name, line_of(r));
        for (size_t i = r->first; i < r->config->n; i++)
            if (is_same(r->config->settings[i].preset, preset))
                return app_fail_usage("%s:%lu: preset '%s' is given twice", r->name, line_of(r),
                                      app_show_text(preset, text));
        drop_preset(r->config, preset, &r->first);
        code = read_preset(r, preset);
    }
    return code;
}

static int read_settings(struct reader *r)
{
    bool models = false;
    int code = expect_mapping(r, "the configuration");
    while (code == APP_EXIT_OK) {
        const char *key;
        struct app_setting *setting;
        code = read_key(r, &key);
        if (code != APP_EXIT_OK || !key)
            return code;
        if (strcmp(key, "models") == 0) {
            if (models)
                return app_fail_usage("%s:%lu: 'models' is given twice", r->name, line_of(r));
            models = true;
            code = read_presets(r);
            continue;
        }
        code = add_setting(r, NULL, key, &setting);
        if (code == APP_EXIT_OK)
            code = read_setting(r, setting);
    }
    return code;
}

/* Reads one document or none: a file may hold comments alone. */
static int read_stream(struct reader *r)
{
    int code = next_event(r); /* start of the stream */
    if (code == APP_EXIT_OK)
        code = next_event(r);
    if (code != APP_EXIT_OK || r->event.type == YAML_STREAM_END_EVENT)
        return code;
    code = next_event(r);
    if (code == APP_EXIT_OK && !is_nothing(r)) /* "---" alone is an empty scalar */
        code = read_settings(r);
    if (code == APP_EXIT_OK)
        code = next_event(r); /* end of the document */
    if (code == APP_EXIT_OK)
        code = next_event(r);
    if (code == APP_EXIT_OK && r->event.type != YAML_STREAM_END_EVENT)
        return app_fail_usage("%s:%lu: a second document; a configuration is one", r->name,
                              line_of(r));
    return code;
}

int app_config_parse(const char *name, const char *text, size_t n, struct app_config *config)
{
    struct reader r = { .name = app_config_keep(config, name, strlen(name)),
                        .config = config,
                        .first = config->n };
    if (!r.name || !yaml_parser_initialize(&r.parser))
        return app_fail_memory();
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)(n ? text : ""), n);
    int code = read_stream(&r);
    yaml_event_delete(&r.event);
    yaml_parser_delete(&r.parser);
    return code;
}
