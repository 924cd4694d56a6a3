/* Shell completion, made from the tables of commands and flags. completion.c runs `completion`,
 * completion_<shell>.c print the scripts. */
#ifndef AK_CLI_COMPLETION_H
#define AK_CLI_COMPLETION_H

#include "cli/options.h"
#include "cli/output.h"

/* What a shell offers for a flag's value. */
enum cli_offer {
    CLI_OFFER_NOTHING,
    CLI_OFFER_FILES,
    CLI_OFFER_FOLDERS,
    CLI_OFFER_CHOICES,
    CLI_OFFER_MODELS, /* files, and what `akunu-cli completion models` prints */
    CLI_OFFER_CPUS    /* what `akunu-cli completion cpus` prints */
};
enum cli_offer cli_find_offer(const struct cli_flag *flag);

void cli_complete_bash(struct cli_output *out);
void cli_complete_zsh(struct cli_output *out);
void cli_complete_fish(struct cli_output *out);

#endif
