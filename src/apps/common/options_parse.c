/* Fills struct app_options from argv, the environment and configuration files. Values are collected
 * per flag with their source first, so that precedence is decided in one place. */
#include "apps/common/options.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "akunu/akunu.h"
#include "apps/common/configuration.h"
#include "apps/common/input.h"
#include "apps/common/message.h"

static void set_defaults(const struct app_command *command, struct app_options *o)
{
    *o = (struct app_options){
        .command = command->bit,
        .text = { .seed = -1, .logprobs = -1, .n_completions = 1 },
        .chat.reasoning_budget = -1,
        .quality.chunks = -1,
        .collect.save_frequency = 10,
        .quantize = { .max_kl = -1.0f, .min_top1 = -1.0f },
        .bench = { .n_parallel = { 1, { 1 } },
                   .n_prompt = { 1, { 512 } },
                   .n_generate = { 1, { 128 } },
                   .depth = { 1, { 0 } },
                   .repetitions = 5 },
        .cache.older_than = -1,
        .server = { .port = 8080,
                    .n_sequences = 16,
                    .queue = 256,
                    .timeout = 600,
                    .max_body = 32 << 20 },
        .download = { .connections = 4, .retries = 5, .stall_timeout = 30 },
        .model.yarn_ext_factor = -1.0f,
        .speech.rate = 16000,
        .word = command->words ? command->words[0] : NULL,
    };
    akunu_load_params_default(&o->load, sizeof o->load);
    akunu_session_params_default(&o->session, sizeof o->session);
    akunu_sampling_params_default(&o->sampling, sizeof o->sampling);
    akunu_generation_params_default(&o->generation, sizeof o->generation);
    akunu_embedding_params_default(&o->embedding, sizeof o->embedding);
    akunu_convert_params_default(&o->convert, sizeof o->convert);
    akunu_transcription_params_default(&o->transcription, sizeof o->transcription);
    akunu_vad_params_default(&o->vad_params, sizeof o->vad_params);
    if (command->bit == APP_TRANSCRIBE)
        o->transcription.beams = 0; /* not given */
    if (command->bit == APP_IMATRIX)
        o->session.context = 512;
}

size_t app_find_flag(app_command_set commands, const char *name, size_t n)
{
    for (size_t i = 0; i < app_n_flags; i++)
        if ((app_flags[i].commands & commands) && app_flag_is(&app_flags[i], name, n))
            return i;
    return app_n_flags;
}

int app_skip_flag(app_command_set commands, int argc, char **argv, int i)
{
    const char *next = i + 1 < argc ? argv[i + 1] : NULL;
    const char *name = argv[i] + (argv[i][1] == '-' ? 2 : 1);
    size_t n = strcspn(name, "="), flag = app_find_flag(commands, name, n);
    if (argv[i][0] != '-' || flag == app_n_flags)
        return argc;
    return i + 1 + (!name[n] && app_takes_next(&app_flags[flag], next));
}

int app_keep_flags(const struct app_command *command, int argc, char **argv)
{
    int n = 0;
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0;) {
        bool is_flag = argv[i][0] == '-' && argv[i][1] != '\0';
        int end = is_flag ? app_skip_flag(command->bit, argc, argv, i) : i + 1;
        for (; i < end; i++)
            if (is_flag)
                argv[n++] = argv[i];
    }
    return n;
}

/* Reports that `typed` is not a flag of the command, and what was probably meant. */
static int unknown_flag(const struct app_command *command, const char *typed, const char *name,
                        size_t n)
{
    const char *words[2 * APP_MAX_FLAGS];
    size_t n_words = 0;
    char text[64];
    int shown = (int)(name - typed) + (int)n;

    const char *instead = app_instead_of_flag(name, n);
    if (instead)
        return app_fail_usage("%.*s: %s", shown, typed, instead);
    size_t elsewhere = app_find_flag(~(app_command_set)0, name, n);
    if (elsewhere < app_n_flags)
        for (size_t i = 0; i < app_n_commands; i++)
            if (app_flags[elsewhere].commands & app_commands[i].bit)
                return app_fail_usage("%.*s is a flag of '%s', not of '%s' (%s --help)", shown,
                                      typed, app_commands[i].name, command->name,
                                      app_command_title(command));

    for (size_t i = 0; i < app_n_flags; i++)
        if (app_flags[i].commands & command->bit) {
            words[n_words++] = app_flags[i].name;
            if (app_flags[i].alias)
                words[n_words++] = app_flags[i].alias;
        }
    text[0] = '\0';
    if (n < sizeof text) {
        memcpy(text, name, n);
        text[n] = '\0';
    }
    const char *nearest = app_find_nearest(text, words, n_words);
    if (command->operands[0] && access(typed, F_OK) == 0)
        return app_fail_usage("unknown flag %.*s of '%s'; before a file of that name write --",
                              shown, typed, command->name);
    if (nearest)
        return app_fail_usage("unknown flag %.*s of '%s'; did you mean --%s?", shown, typed,
                              command->name, nearest);
    return app_fail_usage("unknown flag %.*s of '%s' (%s --help lists them)", shown, typed,
                          command->name, app_command_title(command));
}

/* Reads a word that selects what the command does. */
static int read_word(const struct app_command *command, const char *typed,
                     struct app_options *options)
{
    size_t n = 0;
    while (command->words[n] && strcmp(command->words[n], typed) != 0)
        n++;
    if (command->words[n]) {
        options->word = command->words[n];
        return APP_EXIT_OK;
    }
    const char *nearest = app_find_nearest(typed, command->words, n);
    return app_fail_usage("'%s' does not know '%s'%s%s (%s --help)", command->name, typed,
                          nearest ? "; did you mean " : "", nearest ? nearest : "",
                          app_command_title(command));
}

/* The index of --help or --version among the arguments; app_n_flags: neither. They are honored
 * whatever else is wrong. */
static size_t find_help(const struct app_options *options)
{
    size_t i = 0;
    while (i < app_n_flags && !(options->typed[i] && app_is_help(&app_flags[i])))
        i++;
    return i;
}

bool app_is_help(const struct app_flag *flag)
{
    return flag->offset == offsetof(struct app_options, help) ||
           flag->offset == offsetof(struct app_options, version);
}

int app_add_text(struct app_option_value *f, const char *text)
{
    if (f->all.n == APP_MAX_TEXTS)
        return app_fail_usage("%s is given more than %d times", f->shown, APP_MAX_TEXTS);
    f->all.values[f->all.n++] = text;
    return APP_EXIT_OK;
}

/* Reads argv[*i], a flag, and its value, which may be the next argument. */
static int read_flag(const struct app_command *command, int argc, char **argv, int *i,
                     struct app_options *options, struct app_option_value *values)
{
    const char *typed = argv[*i], *next = *i + 1 < argc ? argv[*i + 1] : NULL;
    const char *name = typed + (typed[1] == '-' ? 2 : 1);
    const char *equals = strchr(name, '=');
    size_t n = equals ? (size_t)(equals - name) : strlen(name);
    size_t index = app_find_flag(command->bit, name, n);
    if (index == app_n_flags)
        return unknown_flag(command, typed, name, n);

    const struct app_flag *flag = &app_flags[index];
    struct app_option_value *f = &values[index];
    if (flag->refusal)
        return app_fail_usage("%.*s: %s", (int)(name - typed) + (int)n, typed, flag->refusal);
    size_t n_shown = (size_t)(name - typed) + n; /* shorter than APP_ENV_BYTES: a known name */
    memcpy(f->shown, typed, n_shown);
    f->shown[n_shown] = '\0';
    f->source = APP_SOURCE_ARGUMENT;
    f->joint = " ";
    options->typed[index] = typed;
    if (flag->kind == APP_FLAG_BOOL) {
        if (equals)
            return app_fail_usage("%s takes no value, but has '%s'", f->shown, equals + 1);
        f->text = "1";
    } else if (equals) {
        f->text = equals + 1;
    } else if (app_takes_next(flag, next)) {
        f->text = next;
        ++*i;
    } else if (flag->otherwise) {
        f->text = flag->otherwise;
    } else {
        return app_fail_usage("%s needs a value: %s %s", f->shown, f->shown, flag->value);
    }
    return flag->kind == APP_FLAG_LIST || flag->kind == APP_FLAG_TEXTS ? app_add_text(f, f->text) :
                                                                         APP_EXIT_OK;
}

static int read_arguments(const struct app_command *command, int argc, char **argv,
                          struct app_options *options, struct app_option_value *values)
{
    struct app_operands operands = { 0 };
    bool flags_ended = false; /* after "--" */
    int code = APP_EXIT_OK;
    for (int i = 0; code == APP_EXIT_OK && i < argc; i++) {
        const char *typed = argv[i];
        if (i == 0 && command->words && typed[0] != '-')
            code = read_word(command, typed, options);
        else if (!flags_ended && strcmp(typed, "--") == 0)
            flags_ended = true;
        else if (flags_ended || typed[0] != '-' || typed[1] == '\0')
            code = app_read_operand(command, typed, &operands, values, options);
        else
            code = read_flag(command, argc, argv, &i, options, values);
        if (find_help(options) < app_n_flags)
            return code;
    }
    return code == APP_EXIT_OK ? app_set_operands(command, &operands, values, options) : code;
}

/* Mutually exclusive group: at most one of its options may be given. An option from a weaker source
 * (argv > environment > file) yields. */
static int check_exclusive_group(struct app_option_value *values,
                                 enum app_exclusive_group exclusive_group)
{
    const struct app_option_value *chosen = NULL;
    enum app_source strongest = APP_SOURCE_NONE;
    for (size_t i = 0; i < app_n_flags; i++)
        if (app_flags[i].exclusive_group == exclusive_group && values[i].source > strongest)
            strongest = values[i].source;
    for (size_t i = 0; i < app_n_flags; i++) {
        if (app_flags[i].exclusive_group != exclusive_group || values[i].source == APP_SOURCE_NONE)
            continue;
        if (values[i].source < strongest)
            values[i].source = APP_SOURCE_NONE;
        else if (chosen)
            return app_fail_usage("%s and %s: only one of them can be given", chosen->shown,
                                  values[i].shown);
        else
            chosen = &values[i];
    }
    return APP_EXIT_OK;
}

static int check_exclusive_groups(struct app_option_value *values)
{
    int code = APP_EXIT_OK;
    for (int exclusive_group = APP_EXCLUSIVE_NONE + 1;
         code == APP_EXIT_OK && exclusive_group < APP_EXCLUSIVE_COUNT; exclusive_group++)
        code = check_exclusive_group(values, (enum app_exclusive_group)exclusive_group);
    return code;
}

/* Checks --cpu: the machine's instruction sets are known only at run time. */
static int check_cpu(const struct app_options *o, const struct app_option_value *f)
{
    char known[256] = "";
    const char *name, *problem = akunu_cpu_problem(o->load.cpu);
    for (size_t i = 0; problem && (name = akunu_cpu_name(i)) != NULL; i++) {
        if (strlen(known) + strlen(name) + 3 < sizeof known) {
            strcat(known, i ? ", " : "");
            strcat(known, name);
        }
    }
    return problem ? app_fail_value(f, "%s; usable here: %s", problem, known) : APP_EXIT_OK;
}

/* Applies configuration files to flags without a stronger value. */
static int read_configuration(const struct app_command *command, struct app_option_value *values,
                              struct app_options *options)
{
    size_t config = app_find_flag(command->bit, "config", strlen("config"));
    int code =
        app_config_read(values[config].source != APP_SOURCE_NONE ? values[config].text : NULL,
                        options->configuration);
    if (code != APP_EXIT_OK)
        return code;
    size_t model = app_find_flag(command->bit, "model", strlen("model"));
    if (model < app_n_flags && values[model].source != APP_SOURCE_NONE &&
        app_config_has_preset(options->configuration, values[model].text))
        options->preset =
            app_config_keep(options->configuration, values[model].text, strlen(values[model].text));
    return app_apply_config(command, options->configuration, values);
}

/* Sets the member of a flag, unless its value means the default. */
static int set_value(const struct app_flag *flag, const struct app_option_value *f,
                     struct app_options *options)
{
    if (flag->refusal)
        return app_fail_usage("%s: %s", f->shown, flag->refusal);
    if (flag->note && f->source == APP_SOURCE_ARGUMENT)
        app_aside("%s: %s", f->shown, flag->note);
    return app_means_default(flag, f) ? APP_EXIT_OK : app_set_value(flag, f, options);
}

/* Sets all members; stops at the first wrong value, so there is one message. */
static int set_values(struct app_option_value *values, struct app_options *options)
{
    const struct app_option_value *cpu = NULL;
    int code = check_exclusive_groups(values);
    for (size_t i = 0; code == APP_EXIT_OK && i < app_n_flags; i++) {
        if (values[i].source == APP_SOURCE_NONE)
            continue;
        code = set_value(&app_flags[i], &values[i], options);
        if (app_flags[i].offset == offsetof(struct app_options, load.cpu))
            cpu = &values[i];
    }
    return code == APP_EXIT_OK ? check_cpu(options, cpu) : code;
}

/* Replaces *text by what its escapes mean. */
static int unescape(struct app_options *options, const char **text)
{
    if (!*text || !strchr(*text, '\\'))
        return APP_EXIT_OK;
    char *copy = app_config_keep(options->configuration, *text, strlen(*text));
    if (!copy)
        return app_fail_memory();
    app_unescape(copy);
    *text = copy;
    return APP_EXIT_OK;
}

static int unescape_texts(struct app_options *o)
{
    const char **const texts[] = { &o->prompt.text, &o->chat.system_prompt, &o->prompt.in_prefix,
                                   &o->prompt.in_suffix };
    int code = APP_EXIT_OK;
    if (o->command == APP_EMBED)
        return unescape(o, &o->embed.separator);
    if (!(o->command & (APP_RUN | APP_INFILL | APP_CHAT)) || o->prompt.no_escape)
        return APP_EXIT_OK;
    for (size_t i = 0; code == APP_EXIT_OK && i < sizeof texts / sizeof *texts; i++)
        code = unescape(o, texts[i]);
    for (size_t i = 0; code == APP_EXIT_OK && i < o->text.stops.n; i++)
        code = unescape(o, &o->text.stops.values[i]);
    return code;
}

/* -hf, --hf-file and --model-url name the model as -m could: "hf:USER/REPO:FILE". */
static int name_model(struct app_options *o)
{
    char *name = NULL;
    const char *what = o->model.hf_file;
    if (o->model.hf_file && !o->model.hf_repo)
        return app_fail_usage("--hf-file %s: it needs the repository, -hf USER/REPO",
                              o->model.hf_file);
    if (!o->model.hf_repo && !o->model.url)
        return APP_EXIT_OK;
    int n = o->model.url ?
                asprintf(&name, "%s", o->model.url) :
                asprintf(&name, "hf:%.*s%s%s",
                         (int)(what ? strcspn(o->model.hf_repo, ":") : strlen(o->model.hf_repo)),
                         o->model.hf_repo, what ? ":" : "", what ? what : "");
    o->model.name = n < 0 ? NULL : app_config_keep(o->configuration, name, strlen(name));
    if (n >= 0)
        free(name);
    if (!o->model.name)
        return app_fail_memory();
    if (o->command == APP_BENCH)
        o->model.names = (struct app_texts){ 1, { o->model.name } };
    return APP_EXIT_OK;
}

int app_options_parse(const struct app_command *command, int argc, char **argv,
                      struct app_options *options)
{
    struct app_option_value values[APP_MAX_FLAGS];
    assert(app_n_flags <= APP_MAX_FLAGS);
    memset(values, 0, sizeof values);
    set_defaults(command, options);
    int code = read_arguments(command, argc, argv, options, values);
    if (code != APP_EXIT_OK)
        return code;

    size_t help = find_help(options);
    if (help < app_n_flags)
        return app_set_value(&app_flags[help], &values[help], options);
    if (command->traits & APP_STANDS_ALONE)
        return set_values(values, options);
    app_read_environment(command, values);
    options->configuration = calloc(1, sizeof *options->configuration);
    if (!options->configuration)
        return app_fail_memory();
    code = read_configuration(command, values, options);
    if (code == APP_EXIT_OK)
        code = set_values(values, options);
    if (code == APP_EXIT_OK)
        code = name_model(options);
    return code == APP_EXIT_OK ? unescape_texts(options) : code;
}

void app_options_free(struct app_options *options)
{
    if (options->configuration)
        app_config_free(options->configuration);
    free(options->configuration);
    options->configuration = NULL;
}

/* ---- Modes -------------------------------------------------------------- */
static const struct {
    unsigned mode;
    const char *during, *needed;
} modes[] = {
    { APP_MODE_CHAT, "in a chat", "a chat (-cnv)" },
    { APP_MODE_ANSWER, "on an answer by the chat template",
      "an answer by the chat template (-p without --raw)" },
    { APP_MODE_CONTINUE, "on a text that is continued as it is",
      "a text that is continued as it is (--raw)" },
    { APP_MODE_MEASURE, "without --tune", "a measurement (no --tune)" },
    { APP_MODE_TUNE, "with --tune", "--tune" },
    { APP_MODE_LIST, "on 'cache list'", "'cache list'" },
    { APP_MODE_SHOW, "on 'cache show'", "'cache show'" },
    { APP_MODE_PRUNE, "on 'cache prune'", "'cache prune'" },
};

int app_check_mode(const struct app_options *options, unsigned mode)
{
    for (size_t i = 0; i < app_n_flags; i++) {
        const struct app_flag *flag = &app_flags[i];
        const char *typed = options->typed[i], *during = "";
        char needed[256] = "";
        if (!typed || !flag->modes || (flag->modes & mode))
            continue;
        for (size_t k = 0; k < sizeof modes / sizeof *modes; k++) {
            size_t n = strlen(needed);
            if (modes[k].mode == mode)
                during = modes[k].during;
            if (flag->modes & modes[k].mode)
                snprintf(needed + n, sizeof needed - n, "%s%s", n ? " or " : "", modes[k].needed);
        }
        return app_fail_usage("%.*s has no effect %s; it is for %s", (int)strcspn(typed, "="),
                              typed, during, needed);
    }
    return APP_EXIT_OK;
}
