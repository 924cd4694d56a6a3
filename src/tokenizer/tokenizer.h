/* Text to tokens and back, from a vocabulary.
 *
 * A tokenizer is immutable after it was made; every call below may run in
 * several threads at once. */
#ifndef AK_TOKENIZER_TOKENIZER_H
#define AK_TOKENIZER_TOKENIZER_H

#include "base/buffer.h"
#include "base/error.h"
#include "weights/provider.h"

struct ak_tokenizer;

/* Copies what it needs of `vocab`. An unknown tokenizer model or pre-tokenizer is
 * AKUNU_ERROR_UNSUPPORTED and named. */
ak_status ak_tok_create(const struct ak_vocab *vocab, struct ak_tokenizer **out,
                        struct ak_error *error);
/* The files of a Hugging Face folder; n = 0: the folder has none of that name. */
struct ak_tok_files {
    struct ak_text tokenizer;  /* tokenizer.json */
    struct ak_text config;     /* tokenizer_config.json: which tokens begin and end a text */
    struct ak_text generation; /* generation_config.json: which ones end it too */
};

/* Copies what it needs. What is damaged is AKUNU_ERROR_FORMAT, a part that is not
 * known AKUNU_ERROR_UNSUPPORTED; messages name the file and the field. */
ak_status ak_tok_from_json(const struct ak_tok_files *files, struct ak_tokenizer **out,
                           struct ak_error *error);

/* From SentencePiece's tokenizer.model: BPE that does not normalize, and Unigram. */
ak_status ak_tok_from_sentencepiece(struct ak_text bytes, struct ak_tokenizer **out,
                                    struct ak_error *error);

/* The tokenizer of a model: its own vocabulary, else the files beside it. *out is
 * NULL, and that no error, where there is none. */
ak_status ak_tok_open(const struct ak_provider *p, struct ak_tokenizer **out,
                      struct ak_error *error);

void ak_tok_free(struct ak_tokenizer *t); /* NULL allowed */

size_t ak_tok_n_tokens(const struct ak_tokenizer *t);
uint64_t ak_tok_memory_bytes(const struct ak_tokenizer *t); /* memory held */
bool ak_tok_is_end(const struct ak_tokenizer *t, int32_t token);
bool ak_tok_is_control(const struct ak_tokenizer *t, int32_t token);
int32_t ak_tok_bos(const struct ak_tokenizer *t); /* -1: none */

/* flags: AKUNU_ADD_SPECIAL, AKUNU_PARSE_SPECIAL. At most `capacity` ids are
 * written; *n_ids is the number of the whole text. */
ak_status ak_tok_encode(const struct ak_tokenizer *t, const char *text, size_t n_bytes,
                        unsigned flags, int32_t *ids, size_t capacity, size_t *n_ids,
                        struct ak_error *error);

/* flags: AKUNU_SKIP_SPECIAL, AKUNU_CONTINUE. At most `capacity` bytes are written; *n_bytes is the
 * number of the whole text. Fails on ids outside the vocabulary. */
ak_status ak_tok_decode(const struct ak_tokenizer *t, const int32_t *ids, size_t n_ids,
                        unsigned flags, char *text, size_t capacity, size_t *n_bytes,
                        struct ak_error *error);

/* A stream of tokens into text. Nothing is allocated after creation. */
struct ak_tok_stream;
ak_status ak_tok_stream_create(const struct ak_tokenizer *t, unsigned flags,
                               struct ak_tok_stream **out, struct ak_error *error);
void ak_tok_stream_free(struct ak_tok_stream *s);
/* *text gets what became complete, valid until the next call. */
ak_status ak_tok_stream_push(struct ak_tok_stream *s, int32_t token, const char **text,
                             size_t *n_bytes, struct ak_error *error);
void ak_tok_stream_end(struct ak_tok_stream *s, const char **text, size_t *n_bytes);

/* ---- Export ------------------------------------------------------------- */

/* `vocab` points into the rest. */
struct ak_tok_export {
    struct ak_vocab vocab;
    struct ak_buffer bytes; /* of all texts */
    struct ak_text *tokens, *merges;
    float *scores;
    int32_t *types;
    int add_separator; /* between two texts there is one more, -1, 0, 1 as in the vocabulary */
};

/* `n_tokens` tokens: those that the tokenizer lacks are unused ones, and those it has
 * beyond are left out. Ids of padding and mask, and the model's name, are the caller's
 * to fill in. `pre`: the name of the pre-tokenizer of byte-level BPE; n = 0: it is looked
 * for, and AKUNU_ERROR_UNSUPPORTED where no known one cuts words alike. *out is for
 * ak_tok_export_free also after a failure. */
ak_status ak_tok_export_vocab(const struct ak_tokenizer *t, uint32_t n_tokens, struct ak_text pre,
                              struct ak_tok_export *out, struct ak_error *error);
void ak_tok_export_free(struct ak_tok_export *e);

/* Whether control tokens take the blanks to their right. GGUF has no key for it: llama.cpp
 * goes by "phi-3" in the model's name. */
bool ak_tok_has_rstrip_control(const struct ak_tokenizer *t);

/* pre_name.c: the first of the known pre-tokenizers that cuts a number of texts as `t`
 * does; n = 0: none of them. */
ak_status ak_tok_find_pre_name(const struct ak_tokenizer *t, struct ak_text *out,
                               struct ak_error *error);

#endif
