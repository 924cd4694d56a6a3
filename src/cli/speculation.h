/* Speculation, as the flags say. */
#ifndef AK_CLI_SPECULATION_H
#define AK_CLI_SPECULATION_H

#include "cli/load.h"

/* Fills in what `generation` says of it, and loads the draft model of -md into *draft, with a
 * session of as many tokens as `session` has. Gives an exit code, after a message unless it is
 * CLI_EXIT_OK. Whatever it gives, cli_unload(draft) is to be called after the last use of
 * `generation`. *draft must not move. */
int cli_read_speculation(const struct cli_options *options, const struct akunu_session *session,
                         struct cli_model_session *draft, struct akunu_generation *generation);

#endif
