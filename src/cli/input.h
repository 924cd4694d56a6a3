/* The text or the ids that a command works on. */
#ifndef AK_CLI_INPUT_H
#define AK_CLI_INPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "akunu/akunu.h"
#include "cli/options.h"

/* Bytes of any kind, NUL and invalid UTF-8 included. */
struct cli_text {
    char *bytes;
    size_t n;
};

/* Whether something was given to work on: a flag, or standard input that is no terminal. */
bool cli_has_input(const struct cli_options *options);

/* -p, else -f ("-": standard input), else standard input unless it is a
 * terminal; `what` is asked for where there is nothing ("a prompt"). On success
 * out->bytes is to be freed. Gives an exit code, after a message unless it is
 * CLI_EXIT_OK. */
int cli_read_text(const struct cli_options *options, const char *what, struct cli_text *out);

/* The bytes of a file that a flag names ("-": standard input), with a NUL behind them; as
 * cli_read_text. Nothing is to be freed on failure. */
int cli_read_file(const char *flag, const char *path, struct cli_text *out);

/* The ids of --ids, else of -f or standard input; *ids is to be freed. */
int cli_read_ids(const struct cli_options *options, akunu_token **ids, size_t *n);

/* What cli_read_ids read from, for messages: "--ids", "-f FILE's name" or "standard input". */
const char *cli_ids_name(const struct cli_options *options);

/* The tokens of `text`; *ids is to be freed. flags as for akunu_tokenize. */
int cli_tokenize_text(const struct akunu_tokenizer *tokenizer, const struct cli_text *text,
                      unsigned flags, akunu_token **ids, size_t *n);

#endif
