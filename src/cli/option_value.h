/* What was found for a flag, and making a value of it. */
#ifndef AK_CLI_OPTION_VALUE_H
#define AK_CLI_OPTION_VALUE_H

#include "cli/configuration.h"
#include "cli/options.h"

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
