/* Configuration files: YAML whose keys are the long flags, and presets of
 * models.
 *
 *     threads: 8
 *     models:
 *       coder:                        # -m coder
 *         model: ~/models/qwen.gguf
 *         temp: 0.2
 */
#ifndef AK_CLI_CONFIGURATION_H
#define AK_CLI_CONFIGURATION_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/options.h"

/* One key of a file. Strings live as long as the configuration. */
struct cli_setting {
    const char *file; /* for messages, with the line of the key */
    unsigned long line;
    /* a flag of that name; the command at hand may have another one, or none */
    const struct cli_flag *flag;
    const char *preset;      /* that it belongs to; NULL: it holds always */
    struct cli_texts values; /* one, or those of a list */
};

/* In the order of their strength, the weakest first. */
struct cli_config {
    struct cli_setting *settings;
    size_t n, capacity;
    char **strings; /* all that the settings point to */
    size_t n_strings;
};

/* Reads the file at `path`, or where that is NULL those of the system and of the
 * user that are there; a preset of the user's replaces the system's of that name.
 * Gives an exit code, after a message unless it is CLI_EXIT_OK: an unknown key, a
 * key given twice, a value that is no text or list. Whatever it gives,
 * cli_config_free(out) is to be called. */
int cli_config_read(const char *path, struct cli_config *out);
void cli_config_free(struct cli_config *config);

/* Adds the settings of one file's n bytes; `name` is what messages call it. */
int cli_config_parse(const char *name, const char *text, size_t n, struct cli_config *config);

/* A copy that lives as long as the configuration; NULL without memory. */
const char *cli_config_keep(struct cli_config *config, const char *text, size_t n);

bool cli_config_has_preset(const struct cli_config *config, const char *name);

/* ---- Option values: options_values.c, options_config.c ------------------ */
/* What was found for a flag, and making a value of it. */

/* Where a value came from; a stronger one is larger. */
enum cli_source {
    CLI_SOURCE_NONE = 0,
    CLI_SOURCE_CONFIG = 1,
    CLI_SOURCE_PRESET = 2,
    CLI_SOURCE_ENVIRONMENT = 3,
    CLI_SOURCE_ARGUMENT = 4
};

/* What was found for the flag of the same index. */
struct cli_option_value {
    enum cli_source source;
    const char *text;          /* of a switch: "1" from an argument */
    struct cli_texts all;      /* what a flag was given that may be repeated */
    const char *joint;         /* between the two where they are shown: " ", "=" or ": " */
    char shown[CLI_ENV_BYTES]; /* the flag as it was typed, its variable or its key */
    const char *file;          /* that has it, and the line; NULL: none */
    unsigned long line;
};

/* "FILE:LINE: KEY: VALUE: " or "FLAG VALUE: ", and what was expected; CLI_EXIT_USAGE. */
int cli_fail_value(const struct cli_option_value *value, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Sets the flag's member. Gives an exit code, after a message unless it is CLI_EXIT_OK. */
int cli_set_value(const struct cli_flag *flag, const struct cli_option_value *values,
                  struct cli_options *options);

/* Brings the settings of the configuration, and of the preset that the model is
 * named after, to what nothing stronger was found for. All values that the
 * command knows are checked. Gives an exit code as above. */
int cli_apply_config(const struct cli_command *command, const struct cli_config *config,
                     struct cli_option_value *values);

#endif
