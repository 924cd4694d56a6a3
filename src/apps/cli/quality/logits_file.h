/* Files of base logits: what a model says of a text, for others to be compared with. The form is
 * llama.cpp's (llama-perplexity --save-all-logits), in the byte order of the machine:
 *
 *     "_logits_", then context, vocabulary and number of chunks as 32 bits each
 *     tokens          int32 [chunks, context]: the text's own, BOS included only before the text
 *     log-probabilities  [chunks, context - 1 - context/2] records, of the positions that are
 *                     scored, from context/2 on
 *
 * A record is two floats, scale and least log-probability, and 16 bits per token of the vocabulary
 * (one more if it is odd): log p = least + scale · value. What is more than 16 below the largest
 * counts as the least. */
#ifndef AK_APPS_CLI_QUALITY_LOGITS_FILE_H
#define AK_APPS_CLI_QUALITY_LOGITS_FILE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "akunu/akunu.h"
#include "apps/cli/quality/new_file.h"

/* Scale, least log-probability and values of a record, as units of 16 bits. */
enum { CLI_RECORD_HEAD = 4 };
static inline size_t cli_record_elems(size_t n_vocab)
{
    return CLI_RECORD_HEAD + (n_vocab + 1) / 2 * 2;
}

struct cli_logits_reader {
    const char *path;
    FILE *file;
    uint32_t context, n_vocab, n_chunks;
    akunu_token *tokens; /* [n_chunks, context] */
    size_t n_read;       /* records */
};

/* Opens a file and checks its header, its size and its tokens; the model has n_vocab tokens.
 * Returns an exit code, after a message unless it is APP_EXIT_OK. Call cli_logits_close in any
 * case. */
int cli_logits_open(const char *path, size_t n_vocab, struct cli_logits_reader *out);

/* Reads the next n records, [n, cli_record_elems(n_vocab)]. */
int cli_logits_read(struct cli_logits_reader *reader, size_t n, uint16_t *records);
void cli_logits_close(struct cli_logits_reader *reader);

struct cli_logits_writer {
    struct cli_new_file file;
    size_t n_vocab;
};

/* Begins a file for the flag --save-logits; as cli_new_file_begin. */
int cli_logits_create(const char *path, const akunu_token *tokens, uint32_t context,
                      uint32_t n_chunks, size_t n_vocab, struct cli_logits_writer *out);
int cli_logits_write(struct cli_logits_writer *writer, size_t n, const uint16_t *records);

/* Fills a record from n_vocab logits, of which log_sum is log Σ e^x and `largest` the largest. */
void cli_record_encode(const float *logits, size_t n_vocab, float largest, double log_sum,
                       uint16_t *record);

#endif
