/* Fills struct cli_options from argv, the environment and configuration files. Values are collected
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

static void set_defaults(const struct cli_command *command, struct cli_options *o)
{
    *o = (struct cli_options){
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
    if (command->bit == CLI_TRANSCRIBE)
        o->transcription.beams = 0; /* not given */
    if (command->bit == CLI_IMATRIX)
        o->session.context = 512;
}

size_t cli_find_flag(cli_command_set commands, const char *name, size_t n)
{
    for (size_t i = 0; i < cli_n_flags; i++)
        if ((cli_flags[i].commands & commands) && cli_flag_is(&cli_flags[i], name, n))
            return i;
    return cli_n_flags;
}

int cli_skip_flag(cli_command_set commands, int argc, char **argv, int i)
{
    const char *next = i + 1 < argc ? argv[i + 1] : NULL;
    const char *name = argv[i] + (argv[i][1] == '-' ? 2 : 1);
    size_t n = strcspn(name, "="), flag = cli_find_flag(commands, name, n);
    if (argv[i][0] != '-' || flag == cli_n_flags)
        return argc;
    return i + 1 + (!name[n] && cli_takes_next(&cli_flags[flag], next));
}

int cli_keep_flags(const struct cli_command *command, int argc, char **argv)
{
    int n = 0;
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0;) {
        bool is_flag = argv[i][0] == '-' && argv[i][1] != '\0';
        int end = is_flag ? cli_skip_flag(command->bit, argc, argv, i) : i + 1;
        for (; i < end; i++)
            if (is_flag)
                argv[n++] = argv[i];
    }
    return n;
}

/* Reports that `typed` is not a flag of the command, and what was probably meant. */
static int unknown_flag(const struct cli_command *command, const char *typed, const char *name,
                        size_t n)
{
    const char *words[2 * CLI_MAX_FLAGS];
    size_t n_words = 0;
    char text[64];
    int shown = (int)(name - typed) + (int)n;

    const char *instead = cli_instead_of_flag(name, n);
    if (instead)
        return cli_fail_usage("%.*s: %s", shown, typed, instead);
    size_t elsewhere = cli_find_flag(~(cli_command_set)0, name, n);
    if (elsewhere < cli_n_flags)
        for (size_t i = 0; i < cli_n_commands; i++)
            if (cli_flags[elsewhere].commands & cli_commands[i].bit)
                return cli_fail_usage("%.*s is a flag of '%s', not of '%s' (%s --help)", shown,
                                      typed, cli_commands[i].name, command->name,
                                      cli_command_title(command));

    for (size_t i = 0; i < cli_n_flags; i++)
        if (cli_flags[i].commands & command->bit) {
            words[n_words++] = cli_flags[i].name;
            if (cli_flags[i].alias)
                words[n_words++] = cli_flags[i].alias;
        }
    text[0] = '\0';
    if (n < sizeof text) {
        memcpy(text, name, n);
        text[n] = '\0';
    }
    const char *nearest = cli_find_nearest(text, words, n_words);
    if (command->operands[0] && access(typed, F_OK) == 0)
        return cli_fail_usage("unknown flag %.*s of '%s'; before a file of that name write --",
                              shown, typed, command->name);
    if (nearest)
        return cli_fail_usage("unknown flag %.*s of '%s'; did you mean --%s?", shown, typed,
                              command->name, nearest);
    return cli_fail_usage("unknown flag %.*s of '%s' (%s --help lists them)", shown, typed,
                          command->name, cli_command_title(command));
}

/* Reads a word that selects what the command does. */
static int read_word(const struct cli_command *command, const char *typed,
                     struct cli_options *options)
{
    size_t n = 0;
    while (command->words[n] && strcmp(command->words[n], typed) != 0)
        n++;
    if (command->words[n]) {
        options->word = command->words[n];
        return CLI_EXIT_OK;
    }
    const char *nearest = cli_find_nearest(typed, command->words, n);
    return cli_fail_usage("'%s' does not know '%s'%s%s (%s --help)", command->name, typed,
                          nearest ? "; did you mean " : "", nearest ? nearest : "",
                          cli_command_title(command));
}

/* The index of --help or --version among the arguments; cli_n_flags: neither. They are honored
 * whatever else is wrong. */
static size_t find_help(const struct cli_options *options)
{
    size_t i = 0;
    while (i < cli_n_flags && !(options->typed[i] && cli_is_help(&cli_flags[i])))
        i++;
    return i;
}

bool cli_is_help(const struct cli_flag *flag)
{
    return flag->offset == offsetof(struct cli_options, help) ||
           flag->offset == offsetof(struct cli_options, version);
}

int cli_add_text(struct cli_option_value *f, const char *text)
{
    if (f->all.n == CLI_MAX_TEXTS)
        return cli_fail_usage("%s is given more than %d times", f->shown, CLI_MAX_TEXTS);
    f->all.values[f->all.n++] = text;
    return CLI_EXIT_OK;
}

/* Reads argv[*i], a flag, and its value, which may be the next argument. */
static int read_flag(const struct cli_command *command, int argc, char **argv, int *i,
                     struct cli_options *options, struct cli_option_value *values)
{
    const char *typed = argv[*i], *next = *i + 1 < argc ? argv[*i + 1] : NULL;
    const char *name = typed + (typed[1] == '-' ? 2 : 1);
    const char *equals = strchr(name, '=');
    size_t n = equals ? (size_t)(equals - name) : strlen(name);
    size_t index = cli_find_flag(command->bit, name, n);
    if (index == cli_n_flags)
        return unknown_flag(command, typed, name, n);

    const struct cli_flag *flag = &cli_flags[index];
    struct cli_option_value *f = &values[index];
    if (flag->refusal)
        return cli_fail_usage("%.*s: %s", (int)(name - typed) + (int)n, typed, flag->refusal);
    size_t n_shown = (size_t)(name - typed) + n; /* shorter than CLI_ENV_BYTES: a known name */
    memcpy(f->shown, typed, n_shown);
    f->shown[n_shown] = '\0';
    f->source = CLI_SOURCE_ARGUMENT;
    f->joint = " ";
    options->typed[index] = typed;
    if (flag->kind == CLI_FLAG_BOOL) {
        if (equals)
            return cli_fail_usage("%s takes no value, but has '%s'", f->shown, equals + 1);
        f->text = "1";
    } else if (equals) {
        f->text = equals + 1;
    } else if (cli_takes_next(flag, next)) {
        f->text = next;
        ++*i;
    } else if (flag->otherwise) {
        f->text = flag->otherwise;
    } else {
        return cli_fail_usage("%s needs a value: %s %s", f->shown, f->shown, flag->value);
    }
    return flag->kind == CLI_FLAG_LIST || flag->kind == CLI_FLAG_TEXTS ? cli_add_text(f, f->text) :
                                                                         CLI_EXIT_OK;
}

static int read_arguments(const struct cli_command *command, int argc, char **argv,
                          struct cli_options *options, struct cli_option_value *values)
{
    struct cli_operands operands = { 0 };
    bool flags_ended = false; /* after "--" */
    int code = CLI_EXIT_OK;
    for (int i = 0; code == CLI_EXIT_OK && i < argc; i++) {
        const char *typed = argv[i];
        if (i == 0 && command->words && typed[0] != '-')
            code = read_word(command, typed, options);
        else if (!flags_ended && strcmp(typed, "--") == 0)
            flags_ended = true;
        else if (flags_ended || typed[0] != '-' || typed[1] == '\0')
            code = cli_read_operand(command, typed, &operands, values, options);
        else
            code = read_flag(command, argc, argv, &i, options, values);
        if (find_help(options) < cli_n_flags)
            return code;
    }
    return code == CLI_EXIT_OK ? cli_set_operands(command, &operands, values, options) : code;
}

/* Mutually exclusive group: at most one of its options may be given. An option from a weaker source
 * (argv > environment > file) yields. */
static int check_exclusive_group(struct cli_option_value *values,
                                 enum cli_exclusive_group exclusive_group)
{
    const struct cli_option_value *chosen = NULL;
    enum cli_source strongest = CLI_SOURCE_NONE;
    for (size_t i = 0; i < cli_n_flags; i++)
        if (cli_flags[i].exclusive_group == exclusive_group && values[i].source > strongest)
            strongest = values[i].source;
    for (size_t i = 0; i < cli_n_flags; i++) {
        if (cli_flags[i].exclusive_group != exclusive_group || values[i].source == CLI_SOURCE_NONE)
            continue;
        if (values[i].source < strongest)
            values[i].source = CLI_SOURCE_NONE;
        else if (chosen)
            return cli_fail_usage("%s and %s: only one of them can be given", chosen->shown,
                                  values[i].shown);
        else
            chosen = &values[i];
    }
    return CLI_EXIT_OK;
}

static int check_exclusive_groups(struct cli_option_value *values)
{
    int code = CLI_EXIT_OK;
    for (int exclusive_group = CLI_EXCLUSIVE_NONE + 1;
         code == CLI_EXIT_OK && exclusive_group < CLI_EXCLUSIVE_COUNT; exclusive_group++)
        code = check_exclusive_group(values, (enum cli_exclusive_group)exclusive_group);
    return code;
}

/* Checks --cpu: the machine's instruction sets are known only at run time. */
static int check_cpu(const struct cli_options *o, const struct cli_option_value *f)
{
    char known[256] = "";
    const char *name, *problem = akunu_cpu_problem(o->load.cpu);
    for (size_t i = 0; problem && (name = akunu_cpu_name(i)) != NULL; i++) {
        if (strlen(known) + strlen(name) + 3 < sizeof known) {
            strcat(known, i ? ", " : "");
            strcat(known, name);
        }
    }
    return problem ? cli_fail_value(f, "%s; usable here: %s", problem, known) : CLI_EXIT_OK;
}

/* Applies configuration files to flags without a stronger value. */
static int read_configuration(const struct cli_command *command, struct cli_option_value *values,
                              struct cli_options *options)
{
    size_t config = cli_find_flag(command->bit, "config", strlen("config"));
    int code =
        cli_config_read(values[config].source != CLI_SOURCE_NONE ? values[config].text : NULL,
                        options->configuration);
    if (code != CLI_EXIT_OK)
        return code;
    size_t model = cli_find_flag(command->bit, "model", strlen("model"));
    if (model < cli_n_flags && values[model].source != CLI_SOURCE_NONE &&
        cli_config_has_preset(options->configuration, values[model].text))
        options->preset =
            cli_config_keep(options->configuration, values[model].text, strlen(values[model].text));
    return cli_apply_config(command, options->configuration, values);
}

/* Sets the member of a flag, unless its value means the default. */
static int set_value(const struct cli_flag *flag, const struct cli_option_value *f,
                     struct cli_options *options)
{
    if (flag->refusal)
        return cli_fail_usage("%s: %s", f->shown, flag->refusal);
    if (flag->note && f->source == CLI_SOURCE_ARGUMENT)
        cli_aside("%s: %s", f->shown, flag->note);
    return cli_means_default(flag, f) ? CLI_EXIT_OK : cli_set_value(flag, f, options);
}

/* Sets all members; stops at the first wrong value, so there is one message. */
static int set_values(struct cli_option_value *values, struct cli_options *options)
{
    const struct cli_option_value *cpu = NULL;
    int code = check_exclusive_groups(values);
    for (size_t i = 0; code == CLI_EXIT_OK && i < cli_n_flags; i++) {
        if (values[i].source == CLI_SOURCE_NONE)
            continue;
        code = set_value(&cli_flags[i], &values[i], options);
        if (cli_flags[i].offset == offsetof(struct cli_options, load.cpu))
            cpu = &values[i];
    }
    return code == CLI_EXIT_OK ? check_cpu(options, cpu) : code;
}

/* Replaces *text by what its escapes mean. */
static int unescape(struct cli_options *options, const char **text)
{
    if (!*text || !strchr(*text, '\\'))
        return CLI_EXIT_OK;
    char *copy = cli_config_keep(options->configuration, *text, strlen(*text));
    if (!copy)
        return cli_fail_memory();
    cli_unescape(copy);
    *text = copy;
    return CLI_EXIT_OK;
}

static int unescape_texts(struct cli_options *o)
{
    const char **const texts[] = { &o->prompt.text, &o->chat.system_prompt, &o->prompt.in_prefix,
                                   &o->prompt.in_suffix };
    int code = CLI_EXIT_OK;
    if (o->command == CLI_EMBED)
        return unescape(o, &o->embed.separator);
    if (!(o->command & (CLI_RUN | CLI_INFILL | CLI_CHAT)) || o->prompt.no_escape)
        return CLI_EXIT_OK;
    for (size_t i = 0; code == CLI_EXIT_OK && i < sizeof texts / sizeof *texts; i++)
        code = unescape(o, texts[i]);
    for (size_t i = 0; code == CLI_EXIT_OK && i < o->text.stops.n; i++)
        code = unescape(o, &o->text.stops.values[i]);
    return code;
}

/* -hf, --hf-file and --model-url name the model as -m could: "hf:USER/REPO:FILE". */
static int name_model(struct cli_options *o)
{
    char *name = NULL;
    const char *what = o->model.hf_file;
    if (o->model.hf_file && !o->model.hf_repo)
        return cli_fail_usage("--hf-file %s: it needs the repository, -hf USER/REPO",
                              o->model.hf_file);
    if (!o->model.hf_repo && !o->model.url)
        return CLI_EXIT_OK;
    int n = o->model.url ?
                asprintf(&name, "%s", o->model.url) :
                asprintf(&name, "hf:%.*s%s%s",
                         (int)(what ? strcspn(o->model.hf_repo, ":") : strlen(o->model.hf_repo)),
                         o->model.hf_repo, what ? ":" : "", what ? what : "");
    o->model.name = n < 0 ? NULL : cli_config_keep(o->configuration, name, strlen(name));
    if (n >= 0)
        free(name);
    if (!o->model.name)
        return cli_fail_memory();
    if (o->command == CLI_BENCH)
        o->model.names = (struct cli_texts){ 1, { o->model.name } };
    return CLI_EXIT_OK;
}

int cli_options_parse(const struct cli_command *command, int argc, char **argv,
                      struct cli_options *options)
{
    struct cli_option_value values[CLI_MAX_FLAGS];
    assert(cli_n_flags <= CLI_MAX_FLAGS);
    memset(values, 0, sizeof values);
    set_defaults(command, options);
    int code = read_arguments(command, argc, argv, options, values);
    if (code != CLI_EXIT_OK)
        return code;

    size_t help = find_help(options);
    if (help < cli_n_flags)
        return cli_set_value(&cli_flags[help], &values[help], options);
    if (command->traits & CLI_STANDS_ALONE)
        return set_values(values, options);
    cli_read_environment(command, values);
    options->configuration = calloc(1, sizeof *options->configuration);
    if (!options->configuration)
        return cli_fail_memory();
    code = read_configuration(command, values, options);
    if (code == CLI_EXIT_OK)
        code = set_values(values, options);
    if (code == CLI_EXIT_OK)
        code = name_model(options);
    return code == CLI_EXIT_OK ? unescape_texts(options) : code;
}

void cli_options_free(struct cli_options *options)
{
    if (options->configuration)
        cli_config_free(options->configuration);
    free(options->configuration);
    options->configuration = NULL;
}

/* ---- Modes -------------------------------------------------------------- */
static const struct {
    unsigned mode;
    const char *during, *needed;
} modes[] = {
    { CLI_MODE_CHAT, "in a chat", "a chat (-cnv)" },
    { CLI_MODE_ANSWER, "on an answer by the chat template",
      "an answer by the chat template (-p without --raw)" },
    { CLI_MODE_CONTINUE, "on a text that is continued as it is",
      "a text that is continued as it is (--raw)" },
    { CLI_MODE_MEASURE, "without --tune", "a measurement (no --tune)" },
    { CLI_MODE_TUNE, "with --tune", "--tune" },
    { CLI_MODE_LIST, "on 'cache list'", "'cache list'" },
    { CLI_MODE_SHOW, "on 'cache show'", "'cache show'" },
    { CLI_MODE_PRUNE, "on 'cache prune'", "'cache prune'" },
};

int cli_check_mode(const struct cli_options *options, unsigned mode)
{
    for (size_t i = 0; i < cli_n_flags; i++) {
        const struct cli_flag *flag = &cli_flags[i];
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
        return cli_fail_usage("%.*s has no effect %s; it is for %s", (int)strcspn(typed, "="),
                              typed, during, needed);
    }
    return CLI_EXIT_OK;
}
