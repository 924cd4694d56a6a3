/* Configuration files: YAML with long flags as keys, and presets of models. They set flags that
 * neither the command line nor an environment variable sets. Also the values found for flags, from
 * any source.
 *
 *     threads: 8
 *     models:
 *       coder:                        # -m coder
 *         model: ~/models/qwen.gguf
 *         temp: 0.2 */
#ifndef AK_APPS_COMMON_CONFIGURATION_H
#define AK_APPS_COMMON_CONFIGURATION_H

#include <stdbool.h>
#include <stddef.h>

#include "apps/common/options.h"

/* One key of a file. Strings live as long as the configuration. */
struct app_setting {
    const char *file; /* for messages */
    unsigned long line;
    /* a flag of that name; the current command may have another one, or none */
    const struct app_flag *flag;
    const char *preset;      /* preset that it belongs to; NULL: none, it always applies */
    struct app_texts values; /* one value, or those of a list */
};

/* Settings in ascending precedence. */
struct app_config {
    struct app_setting *settings;
    size_t n, capacity;
    char **strings; /* strings that the settings point to */
    size_t n_strings;
};

/* Reads the file at `path`. NULL: reads the system's and the user's if they exist; a preset of the
 * user's replaces the system's of the same name. Returns an exit code, after a message unless it is
 * APP_EXIT_OK: an unknown key, a duplicate key, a value that is neither text nor list. Call
 * app_config_free(out) in any case. */
int app_config_read(const char *path, struct app_config *out);
void app_config_free(struct app_config *config);

/* Adds the settings of one file of n bytes; `name` is its name in messages. */
int app_config_parse(const char *name, const char *text, size_t n, struct app_config *config);

/* A copy owned by the configuration; NULL if out of memory. */
char *app_config_keep(struct app_config *config, const char *text, size_t n);

/* Name of preset i, in their order in the files; NULL: there are fewer. */
const char *app_config_preset(const struct app_config *config, size_t i);

bool app_config_has_preset(const struct app_config *config, const char *name);

/* The model of a preset. */
const char *app_config_model(const struct app_config *config, const char *preset);

/* ---- Option values: options_values.c, options_config.c ------------------ */
/* The value found for an option, and its source. */

/* Source of a value; larger values take precedence. */
enum app_source {
    APP_SOURCE_NONE = 0,
    APP_SOURCE_CONFIG = 1,
    APP_SOURCE_PRESET = 2,
    APP_SOURCE_ENVIRONMENT = 3,
    APP_SOURCE_ARGUMENT = 4
};

/* Value found for the flag of the same index. */
enum { APP_ENV_BYTES = 64 };
struct app_option_value {
    enum app_source source;
    const char *text;          /* "1" for a switch given as an argument */
    struct app_texts all;      /* values of a flag that may be repeated */
    const char *joint;         /* separates flag and value in messages: " ", "=" or ": " */
    char shown[APP_ENV_BYTES]; /* the flag as typed, its variable or its key */
    const char *file;          /* configuration file of the value, and its line below; NULL: none */
    unsigned long line;
};

/* Index of the flag of one of these commands that is spelled by the n bytes at `name`; app_n_flags:
 * none. A short name may follow two dashes and a long one a single dash: both are habits. */
size_t app_find_flag(app_command_set commands, const char *name, size_t n);

/* The index behind the flag argv[i] and its value, if it is one of these commands' flags; argc: it
 * is none. */
int app_skip_flag(app_command_set commands, int argc, char **argv, int i);

/* Drops what are not flags of the command and their values, and all after "--". Returns how many
 * arguments are left. */
int app_keep_flags(const struct app_command *command, int argc, char **argv);

/* --help and --version. */
bool app_is_help(const struct app_flag *flag);

/* Whether the flag takes the argument after it as its value; `next` NULL: there is none. */
bool app_takes_next(const struct app_flag *flag, const char *next);

/* Adds a value of a flag that may be repeated; APP_EXIT_USAGE after a message: too many. */
int app_add_text(struct app_option_value *value, const char *text);

/* Reads the environment for flags of the command that have no value yet. Warns of each AKUNU_…
 * variable that no command reads. */
void app_read_environment(const struct app_command *command, struct app_option_value *values);

/* options_operands.c: arguments that are not flags. The first function takes one as it is met, the
 * second gives them to their flags when all arguments are known. Return an exit code, after a
 * message unless it is APP_EXIT_OK. */
struct app_operands {
    int n;
    const char *texts[2];
};
int app_read_operand(const struct app_command *command, const char *text,
                     struct app_operands *operands, struct app_option_value *values,
                     struct app_options *options);
int app_set_operands(const struct app_command *command, const struct app_operands *operands,
                     struct app_option_value *values, struct app_options *options);

/* Prints "FILE:LINE: KEY: VALUE: " or "FLAG VALUE: ", then what was expected; returns
 * APP_EXIT_USAGE. */
int app_fail_value(const struct app_option_value *value, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Whether the value means the flag's default, as -1 does for -t. */
bool app_means_default(const struct app_flag *flag, const struct app_option_value *value);

/* Sets the flag's member in `options`. Returns an exit code, after a message unless it is
 * APP_EXIT_OK. */
int app_set_value(const struct app_flag *flag, const struct app_option_value *values,
                  struct app_options *options);

/* Copies the settings of the configuration, and of the preset that the model names, to flags
 * without a stronger value. All values that the command knows are checked. Returns an exit code as
 * above. */
int app_apply_config(const struct app_command *command, const struct app_config *config,
                     struct app_option_value *values);

#endif
