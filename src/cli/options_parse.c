/* From argv and the environment to struct cli_options. */
#include "cli/options.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "akunu/akunu.h"
#include "cli/message.h"
#include "cli/number.h"

enum { MAX_FLAGS = 160 };

/* Where a value came from; a stronger one is larger. */
enum source { ABSENT = 0, ENVIRONMENT = 1, ARGUMENT = 2 };

/* What was found for the flag of the same index. */
struct found {
    enum source source;
    const char *text; /* of a switch: "1" from an argument */
    struct cli_texts all; /* what a flag was given that may be repeated */
    char joint;       /* between the two where they are shown: ' ' or '=' */
    char shown[CLI_ENV_BYTES]; /* the flag as it was typed, or its variable */
};

static void set_defaults(const struct cli_command *command, struct cli_options *o)
{
    struct akunu_sampling sampling;
    akunu_sampling_default(&sampling);
    *o = (struct cli_options){
        .command = command->bit,
        .n_predict = -1,
        .n_gpu_layers = -1,
        .context = command->bit == CLI_PERPLEXITY ? 512 : 0,
        .k_type = AKUNU_KV_F16,
        .v_type = AKUNU_KV_F16,
        .seed = -1,
        .temperature = (double)sampling.temperature,
        .top_k = sampling.top_k,
        .top_p = (double)sampling.top_p,
        .min_p = (double)sampling.min_p,
        .repeat_penalty = (double)sampling.repeat_penalty,
        .repeat_last_n = sampling.repeat_last_n,
        .presence_penalty = (double)sampling.presence_penalty,
        .frequency_penalty = (double)sampling.frequency_penalty,
        .dynatemp_range = (double)sampling.dynatemp_range,
        .dynatemp_exponent = (double)sampling.dynatemp_exponent,
        .typical_p = (double)sampling.typical_p,
        .top_n_sigma = (double)sampling.top_n_sigma,
        .xtc_probability = (double)sampling.xtc_probability,
        .xtc_threshold = (double)sampling.xtc_threshold,
        .dry_multiplier = (double)sampling.dry_multiplier,
        .dry_base = (double)sampling.dry_base,
        .dry_allowed_length = sampling.dry_allowed_length,
        .dry_penalty_last_n = sampling.dry_penalty_last_n,
        .mirostat = sampling.mirostat,
        .mirostat_tau = (double)sampling.mirostat_tau,
        .mirostat_eta = (double)sampling.mirostat_eta,
        .adaptive_target = (double)sampling.adaptive_target,
        .adaptive_decay = (double)sampling.adaptive_decay,
        .logprobs = -1,
        .choices = 1,
        .chunks = -1,
        .n_parallel = { 1, { 1 } },
        .n_prompt = { 1, { 512 } },
        .n_generate = { 1, { 128 } },
        .depth = { 1, { 0 } },
        .repetitions = 5,
        .form = CLI_FORM_MD,
        .older_than = -1,
        .word = command->words ? command->words[0] : NULL,
    };
}

/* The flag of this command that is spelled by the n bytes at `name`, cli_n_flags
 * where there is none. A short name may come behind two dashes too, and a long
 * one behind one dash: both are habits. */
static size_t find_flag(unsigned commands, const char *name, size_t n)
{
    for (size_t i = 0; i < cli_n_flags; i++) {
        const struct cli_flag *flag = &cli_flags[i];
        const char *spellings[3] = { flag->name, flag->alias, flag->brief };
        if (!(flag->commands & commands))
            continue;
        for (int k = 0; k < 3; k++)
            if (spellings[k] && strlen(spellings[k]) == n && memcmp(spellings[k], name, n) == 0)
                return i;
    }
    return cli_n_flags;
}

/* Says that `typed` is no flag of the command, and what was probably meant. */
static int unknown_flag(const struct cli_command *command, const char *typed, const char *name, size_t n)
{
    const char *words[2 * MAX_FLAGS];
    size_t n_words = 0;
    char text[64];
    int shown = (int)(name - typed) + (int)n;

    size_t elsewhere = find_flag(CLI_ALL, name, n);
    if (elsewhere < cli_n_flags)
        for (size_t i = 0; i < cli_n_commands; i++)
            if (cli_flags[elsewhere].commands & cli_commands[i].bit)
                return cli_usage("%.*s is a flag of '%s', not of '%s' (akunu-cli %s --help)", shown, typed, cli_commands[i].name,
                                 command->name, command->name);

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
    const char *nearest = cli_nearest(text, words, n_words);
    if (nearest)
        return cli_usage("unknown flag %.*s of '%s'; did you mean --%s?", shown, typed, command->name, nearest);
    return cli_usage("unknown flag %.*s of '%s' (akunu-cli %s --help lists them)", shown, typed, command->name, command->name);
}

/* A word that is no flag: what the command is to do, where it has words. */
static int read_word(const struct cli_command *command, const char *typed, struct cli_options *options)
{
    size_t n = 0;
    while (command->words[n] && strcmp(command->words[n], typed) != 0)
        n++;
    if (command->words[n]) {
        options->word = command->words[n];
        return CLI_EXIT_OK;
    }
    const char *nearest = cli_nearest(typed, command->words, n);
    return cli_usage("'%s' does not know '%s'%s%s (akunu-cli %s --help)", command->name, typed, nearest ? "; did you mean " : "",
                     nearest ? nearest : "", command->name);
}

static int add_text(struct found *f, const char *text)
{
    if (f->all.n == CLI_MAX_TEXTS)
        return cli_usage("%s is given more than %d times", f->shown, CLI_MAX_TEXTS);
    f->all.values[f->all.n++] = text;
    return CLI_EXIT_OK;
}

/* A word that is no flag, as the value of one. */
static int read_operand(const struct cli_command *command, const char *typed, struct found *found)
{
    struct found *f = &found[find_flag(command->bit, command->operand, strlen(command->operand))];
    snprintf(f->shown, sizeof f->shown, "--%s", command->operand);
    f->source = ARGUMENT;
    f->joint = ' ';
    f->text = typed;
    return add_text(f, typed);
}

static int read_arguments(const struct cli_command *command, int argc, char **argv, struct cli_options *options, struct found *found)
{
    for (int i = 0; i < argc; i++) {
        const char *typed = argv[i];
        if (i == 0 && command->words && typed[0] != '-') {
            int code = read_word(command, typed, options);
            if (code != CLI_EXIT_OK)
                return code;
            continue;
        }
        if (typed[0] != '-' && command->operand) {
            int code = read_operand(command, typed, found);
            if (code != CLI_EXIT_OK)
                return code;
            continue;
        }
        if (typed[0] != '-' || typed[1] == '\0')
            return cli_usage("unexpected argument '%s': '%s' takes flags only (akunu-cli %s --help)", typed, command->name, command->name);
        const char *name = typed + (typed[1] == '-' ? 2 : 1);
        const char *equals = strchr(name, '=');
        size_t n = equals ? (size_t)(equals - name) : strlen(name);
        size_t index = find_flag(command->bit, name, n);
        if (index == cli_n_flags)
            return unknown_flag(command, typed, name, n);

        const struct cli_flag *flag = &cli_flags[index];
        struct found *f = &found[index];
        size_t n_shown = (size_t)(name - typed) + n; /* shorter than CLI_ENV_BYTES: a known name */
        memcpy(f->shown, typed, n_shown);
        f->shown[n_shown] = '\0';
        f->source = ARGUMENT;
        f->joint = ' ';
        if (flag->kind == CLI_FLAG_SWITCH) {
            if (equals)
                return cli_usage("%s takes no value, but has '%s'", f->shown, equals + 1);
            f->text = "1";
            if (flag->offset == offsetof(struct cli_options, help) || flag->offset == offsetof(struct cli_options, version))
                return CLI_EXIT_OK;
        } else if (equals) {
            f->text = equals + 1;
        } else if (i + 1 < argc) {
            f->text = argv[++i];
        } else {
            return cli_usage("%s needs a value: %s %s", f->shown, f->shown, flag->value);
        }
        int code = flag->kind == CLI_FLAG_LIST || flag->kind == CLI_FLAG_TEXTS ? add_text(f, f->text) : CLI_EXIT_OK;
        if (code != CLI_EXIT_OK)
            return code;
    }
    return CLI_EXIT_OK;
}

void cli_environment_name(const struct cli_flag *flag, char *out)
{
    size_t n = strlen("AKUNU_");
    memcpy(out, "AKUNU_", n);
    for (const char *p = flag->name; *p && n + 1 < CLI_ENV_BYTES; p++)
        out[n++] = *p == '-' ? '_' : (char)toupper((unsigned char)*p);
    out[n] = '\0';
}

static void read_environment(const struct cli_command *command, struct found *found)
{
    for (size_t i = 0; i < cli_n_flags; i++) {
        const struct cli_flag *flag = &cli_flags[i];
        char name[CLI_ENV_BYTES];
        if (!(flag->commands & command->bit) || found[i].source != ABSENT || strcmp(flag->group, "Other") == 0)
            continue;
        cli_environment_name(flag, name);
        const char *text = getenv(name);
        if (!text || !*text)
            continue;
        found[i].source = ENVIRONMENT;
        found[i].joint = '=';
        found[i].text = text;
        found[i].all = (struct cli_texts){ 1, { text } };
        memcpy(found[i].shown, name, sizeof name);
    }
}

/* At most one flag says what to work on; one from the environment yields. */
static int settle_sources(struct found *found)
{
    const struct found *chosen = NULL;
    enum source strongest = ABSENT;
    for (size_t i = 0; i < cli_n_flags; i++)
        if (cli_flags[i].source && found[i].source > strongest)
            strongest = found[i].source;
    for (size_t i = 0; i < cli_n_flags; i++) {
        if (!cli_flags[i].source || found[i].source == ABSENT)
            continue;
        if (found[i].source < strongest)
            found[i].source = ABSENT;
        else if (chosen)
            return cli_usage("%s and %s: only one of them can be given", chosen->shown, found[i].shown);
        else
            chosen = &found[i];
    }
    return CLI_EXIT_OK;
}

static bool is_one_of(const char *text, const char *const *words, int *index)
{
    for (int i = 0; words && words[i]; i++)
        if (strcmp(text, words[i]) == 0) {
            *index = i;
            return true;
        }
    return false;
}

static int set_switch(const struct found *f, bool *out)
{
    static const char *const yes[] = { "1", "true", "yes", "on", NULL };
    static const char *const no[] = { "0", "false", "no", "off", NULL };
    int index;
    *out = is_one_of(f->text, yes, &index);
    if (*out || is_one_of(f->text, no, &index))
        return CLI_EXIT_OK;
    return cli_usage("%s%c%s: expected 1 or 0", f->shown, f->joint, f->text);
}

static int set_choice(const struct cli_flag *flag, const struct found *f, int *out)
{
    char known[64] = "";
    if (is_one_of(f->text, flag->choices, out))
        return CLI_EXIT_OK;
    for (int i = 0; flag->choices[i]; i++) {
        strcat(known, i ? ", " : "");
        strcat(known, flag->choices[i]);
    }
    return cli_usage("%s%c%s: expected one of %s", f->shown, f->joint, f->text, known);
}

static int bad_number(const struct cli_flag *flag, const struct found *f, const char *kind)
{
    return cli_usage("%s%c%s: expected %s from %.10g to %.10g", f->shown, f->joint, f->text, kind, flag->low, flag->high);
}

static bool in_range(const struct cli_flag *flag, double value)
{
    return value >= flag->low && value <= flag->high;
}

/* Adds the numbers of one value. */
static int add_to_list(const struct cli_flag *flag, const struct found *f, struct cli_list *out)
{
    for (const char *p = f->text;; p++) {
        size_t n = strcspn(p, ",");
        char word[24];
        if (out->n == CLI_MAX_LIST)
            return cli_usage("%s%c%s: more than %d numbers", f->shown, f->joint, f->text, CLI_MAX_LIST);
        if (n >= sizeof word)
            return bad_number(flag, f, "whole numbers with commas between,");
        memcpy(word, p, n);
        word[n] = '\0';
        int64_t *value = &out->values[out->n++];
        if (!cli_parse_int(word, value) || !in_range(flag, (double)*value))
            return bad_number(flag, f, "whole numbers with commas between,");
        p += n;
        if (*p == '\0')
            return CLI_EXIT_OK;
    }
}

static int set_list(const struct cli_flag *flag, const struct found *f, struct cli_list *out)
{
    int code = CLI_EXIT_OK;
    out->n = 0;
    for (size_t i = 0; i < f->all.n && code == CLI_EXIT_OK; i++) {
        struct found one = *f;
        one.text = f->all.values[i];
        code = add_to_list(flag, &one, out);
    }
    return code;
}

static int set_value(const struct cli_flag *flag, const struct found *f, struct cli_options *options)
{
    void *member = (char *)options + flag->offset;
    switch (flag->kind) {
    case CLI_FLAG_SWITCH:
        return set_switch(f, member);
    case CLI_FLAG_TEXT:
        *(const char **)member = f->text;
        return CLI_EXIT_OK;
    case CLI_FLAG_INT:
        if (!cli_parse_int(f->text, member) || !in_range(flag, (double)*(int64_t *)member))
            return bad_number(flag, f, "a whole number");
        return CLI_EXIT_OK;
    case CLI_FLAG_REAL:
        if (!cli_parse_real(f->text, member) || !in_range(flag, *(double *)member))
            return bad_number(flag, f, "a number");
        return CLI_EXIT_OK;
    case CLI_FLAG_LIST:
        return set_list(flag, f, member);
    case CLI_FLAG_TEXTS:
        *(struct cli_texts *)member = f->all;
        return CLI_EXIT_OK;
    case CLI_FLAG_CHOICE:
        return set_choice(flag, f, member);
    }
    return CLI_EXIT_USAGE;
}

/* The machine's instruction sets are known only at run time. */
static int check_cpu(const struct cli_options *o, const struct found *f)
{
    char known[256] = "";
    const char *name;
    for (size_t i = 0; o->cpu && (name = akunu_cpu_name(i)) != NULL; i++) {
        if (strcmp(name, o->cpu) == 0)
            return CLI_EXIT_OK;
        if (strlen(known) + strlen(name) + 3 < sizeof known) {
            strcat(known, i ? ", " : "");
            strcat(known, name);
        }
    }
    return o->cpu ? cli_usage("%s%c%s: this machine or build does not have it; it has %s", f->shown, f->joint, o->cpu, known) : CLI_EXIT_OK;
}

int cli_options_parse(const struct cli_command *command, int argc, char **argv, struct cli_options *options)
{
    struct found found[MAX_FLAGS];
    assert(cli_n_flags <= MAX_FLAGS);
    memset(found, 0, sizeof found);
    set_defaults(command, options);
    int code = read_arguments(command, argc, argv, options, found);
    if (code != CLI_EXIT_OK)
        return code;

    for (size_t i = 0; i < cli_n_flags; i++) /* help is given whatever else is wrong */
        if (found[i].source == ARGUMENT && strcmp(cli_flags[i].group, "Other") == 0)
            return set_value(&cli_flags[i], &found[i], options);

    read_environment(command, found);
    code = settle_sources(found);
    const struct found *cpu = NULL;
    for (size_t i = 0; code == CLI_EXIT_OK && i < cli_n_flags; i++) {
        if (found[i].source == ABSENT)
            continue;
        code = set_value(&cli_flags[i], &found[i], options);
        if (cli_flags[i].offset == offsetof(struct cli_options, cpu))
            cpu = &found[i];
    }
    return code == CLI_EXIT_OK ? check_cpu(options, cpu) : code;
}
