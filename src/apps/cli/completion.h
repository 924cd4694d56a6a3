/* Shell completion, made from the tables of commands and flags. completion.c runs `completion`,
 * completion_<shell>.c print the scripts. */
#ifndef AK_APPS_CLI_COMPLETION_H
#define AK_APPS_CLI_COMPLETION_H

#include "apps/common/options.h"
#include "apps/common/output.h"

/* What a shell completes the value of a flag to. */
enum cli_completion_kind {
    CLI_COMPLETION_NOTHING,
    CLI_COMPLETION_FILES,
    CLI_COMPLETION_FOLDERS,
    CLI_COMPLETION_CHOICES,
    CLI_COMPLETION_MODELS, /* files, and what `akunu-cli completion models` prints */
    CLI_COMPLETION_CPUS    /* what `akunu-cli completion cpus` prints */
};
enum cli_completion_kind cli_find_completion_kind(const struct app_flag *flag);
/* Word i of those that complete a flag with CLI_COMPLETION_CHOICES; NULL: past the last one. */
const char *cli_find_choice(const struct app_flag *flag, size_t i);

void cli_complete_bash(struct app_output *out);
void cli_complete_zsh(struct app_output *out);
void cli_complete_fish(struct app_output *out);

#endif
