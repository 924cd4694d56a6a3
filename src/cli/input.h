/* The text or the ids that a command works on. */
#ifndef AK_CLI_INPUT_H
#define AK_CLI_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* ---- Numbers: number.c -------------------------------------------------- */
/* Numbers as people type them, taken whole or not at all. */

/* A whole decimal number of int64 with nothing before or behind it. */
bool cli_parse_int(const char *text, int64_t *out);

/* A finite decimal number: "0.8", "-1", "1e-3". */
bool cli_parse_real(const char *text, double *out);

/* Token ids separated by blanks, commas or newlines; one pair of brackets
 * around them is allowed. On success *ids is to be freed and may be NULL where
 * *n is 0. On failure: an exit code after a message that begins with `what`. */
int cli_parse_ids(const char *what, const char *text, size_t n_bytes, akunu_token **ids, size_t *n);

/* Checks ids against a vocabulary: CLI_EXIT_OK, or CLI_EXIT_USAGE after a message. */
int cli_check_ids(const char *what, const akunu_token *ids, size_t n, size_t n_vocab);

#endif
