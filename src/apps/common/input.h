/* Input of commands: texts and ids from flags, files and standard input, and numbers from text. */
#ifndef AK_APPS_COMMON_INPUT_H
#define AK_APPS_COMMON_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "akunu/akunu.h"
#include "apps/common/options.h"

/* Bytes of any kind, NUL and invalid UTF-8 included. */
struct app_text {
    char *bytes;
    size_t n;
};

/* Whether there is input: a flag, or standard input that is not a terminal. */
bool app_has_input(const struct app_options *options);

/* Reads -p, else -f ("-": standard input), else standard input unless it is a terminal. `what`
 * names the missing input in messages ("a prompt"). On success free out->bytes. Returns an exit
 * code, after a message unless it is APP_EXIT_OK. */
int app_read_text(const struct app_options *options, const char *what, struct app_text *out);

/* Reads the prompt of `run` in the same way; one final newline of a file or of standard input is
 * dropped, as an editor or echo ends a text. */
int app_read_prompt(const struct app_options *options, const char *what, struct app_text *out);

/* Drops one final newline of a text with room for a NUL: "\n" or "\r\n". */
void app_drop_newline(char *text, size_t *n);

/* Replaces \n, \r, \t, \', \", \\ and \xHH (not \x00) in a string by the characters that they
 * mean; any other backslash stays. */
void app_unescape(char *text);

bool app_ends_with(const char *text, const char *end);

/* Reads the file that a flag names ("-": standard input) and appends a NUL; as app_read_text. On
 * failure there is nothing to free. */
int app_read_file(const char *flag, const char *path, struct app_text *out);

/* Reads the ids of --ids, else of -f or standard input; free *ids. */
int app_read_ids(const struct app_options *options, akunu_token **ids, size_t *n);

/* Source of app_read_ids for messages: "--ids", the name given to -f, or "standard input". */
const char *app_ids_name(const struct app_options *options);

/* Tokenizes `text`; free *ids. `flags` as for akunu_tokenizer_encode. */
int app_tokenize_text(const struct akunu_tokenizer *tokenizer, const struct app_text *text,
                      unsigned flags, akunu_token **ids, size_t *n);

/* Tokens of a text whose embedding is wanted (akunu_model_encode_embedding); free *ids. */
int app_encode_embedding(const struct akunu_model *model, const struct app_text *text,
                         struct akunu_embedding_text *how, akunu_token **ids, size_t *n);

/* The bytes of a token, and a NUL; `flags` as for akunu_tokenizer_decode. A token outside of the
 * vocabulary has none. Free with free; NULL: out of memory. */
char *app_token_bytes(const struct akunu_tokenizer *tokenizer, akunu_token token, unsigned flags,
                      size_t *n);

/* The BOS that the tokenizer adds before a text; -1: none. */
akunu_token app_bos_of(const struct akunu_tokenizer *tokenizer);

/* ---- Numbers: number.c -------------------------------------------------- */
/* Strict parsing: a number is the whole text, or an error. */

/* A decimal integer of int64, without whitespace. */
bool app_parse_int(const char *text, int64_t *out);

/* A finite decimal number: "0.8", "-1", "1e-3". */
bool app_parse_real(const char *text, double *out);

/* A number of bytes: "1500000", "350M", "3.5G"; K, M and G are powers of 1000. */
bool app_parse_size(const char *text, uint64_t *out);

/* Token ids separated by spaces, commas or newlines, optionally in one pair of brackets. On success
 * free *ids, which may be NULL if *n is 0. On failure returns an exit code after a message that
 * begins with `what`. */
int app_parse_ids(const char *what, const char *text, size_t n_bytes, akunu_token **ids, size_t *n);

/* Checks ids against a vocabulary: APP_EXIT_OK, or APP_EXIT_USAGE after a message. */
int app_check_ids(const char *what, const akunu_token *ids, size_t n, size_t n_vocab);

#endif
