/* Numbers as people type them, taken whole or not at all. */
#ifndef AK_CLI_NUMBER_H
#define AK_CLI_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "akunu/akunu.h"

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
