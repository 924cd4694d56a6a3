/* A text as chunks of tokens, split as llama.cpp does, so that figures compare: if the model begins
 * texts with BOS, BOS precedes the text and replaces the first token of each chunk. What is left
 * over at the end is no chunk. */
#ifndef AK_APPS_CLI_QUALITY_CHUNKS_H
#define AK_APPS_CLI_QUALITY_CHUNKS_H

#include "apps/common/input.h"
#include "apps/common/load.h"

struct cli_chunks {
    akunu_token *ids; /* of the whole text, to be freed */
    size_t n, size;   /* chunks; tokens of each */
    akunu_token bos;  /* -1: chunks begin with the text's own token */
};

/* Tokenizes the text; `flags` as for akunu_tokenizer_encode. Returns an exit code, after a message
 * unless it is APP_EXIT_OK; a text of less than one chunk is APP_EXIT_FAILURE. Free out->ids in any
 * case. */
int cli_read_chunks(const struct app_model_session *loaded, const struct app_text *text,
                    unsigned flags, size_t size, struct cli_chunks *out);

/* n chunks of a text that the model writes itself (own_text.c), with a session of their own. As
 * cli_read_chunks. */
int cli_write_own_chunks(const struct app_options *o, struct app_model_session *loaded, size_t size,
                         size_t n, struct app_progress *progress, struct cli_chunks *out);

/* The tokens of chunk i, each of which is taken once. */
const akunu_token *cli_get_chunk(struct cli_chunks *chunks, size_t i);

#endif
