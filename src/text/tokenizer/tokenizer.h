/* Tokenizer: text to token ids and back. Created from a vocabulary of GGUF or of Whisper's GGML
 * files, from tokenizer.json or from SentencePiece's tokenizer.model.
 *
 * A tokenizer is immutable once created; all functions may run in several threads at once. */
#ifndef AK_TEXT_TOKENIZER_TOKENIZER_H
#define AK_TEXT_TOKENIZER_TOKENIZER_H

#include "base/buffer.h"
#include "base/error.h"
#include "files/weights/provider.h"

struct ak_tokenizer;

/* Copies what it needs from `vocab`. AKUNU_ERROR_UNSUPPORTED: unknown tokenizer model or
 * pre-tokenizer; the message names it. */
ak_status ak_tok_create(const struct ak_vocab *vocab, struct ak_tokenizer **out,
                        struct ak_error *error);
/* The files of a Hugging Face folder; n = 0: the folder has no such file. */
struct ak_tok_files {
    struct ak_text tokenizer; /* tokenizer.json */
    struct ak_text config; /* tokenizer_config.json: names of BOS, EOS and other special tokens */
    struct ak_text generation; /* generation_config.json: further end tokens */
};

/* Copies what it needs. AKUNU_ERROR_FORMAT: damaged file; AKUNU_ERROR_UNSUPPORTED: unknown part.
 * Messages name the file and the field. */
ak_status ak_tok_from_json(const struct ak_tok_files *files, struct ak_tokenizer **out,
                           struct ak_error *error);

/* From SentencePiece's tokenizer.model: BPE without normalization, and Unigram. */
ak_status ak_tok_from_sentencepiece(struct ak_text bytes, struct ak_tokenizer **out,
                                    struct ak_error *error);

/* The tokenizer of a model: from its own vocabulary, else from the files beside it. A model
 * without a tokenizer is not an error: *out is NULL. */
ak_status ak_tok_open(const struct ak_provider *p, struct ak_tokenizer **out,
                      struct ak_error *error);

/* One more owner of the tokenizer, who frees it too. */
struct ak_tokenizer *ak_tok_ref(struct ak_tokenizer *t);
void ak_tok_free(struct ak_tokenizer *t); /* NULL allowed */

size_t ak_tok_n_tokens(const struct ak_tokenizer *t);
uint64_t ak_tok_memory_bytes(const struct ak_tokenizer *t); /* heap bytes held */
bool ak_tok_is_end(const struct ak_tokenizer *t, int32_t token);
bool ak_tok_is_control(const struct ak_tokenizer *t, int32_t token);
int32_t ak_tok_bos(const struct ak_tokenizer *t); /* -1: none */
int32_t ak_tok_special(const struct ak_tokenizer *t, enum akunu_special_token purpose); /* same */

/* ---- Fill-in-the-middle: fim.c ------------------------------------------ */
/* Id of a token for fill-in-the-middle: the file's, else the one of a known spelling; -1: none. */
int32_t ak_tok_fim(const struct ak_tokenizer *t, enum ak_vocab_fim which);

struct ak_tok_infill {
    struct ak_text prefix, suffix; /* the text before and after the gap */
    bool suffix_first;             /* even if the model wants the prefix first */
    size_t max_tokens;             /* of the prompt; 0: any number */
    /* set by ak_tok_encode_infill: tokens left out of the prefix's beginning, the suffix's end */
    size_t n_prefix_dropped, n_suffix_dropped;
};

/* Encodes the prompt after which the model writes what fills the gap: special tokens that precede
 * a text, then prefix and suffix with their markers, in the order of the model's family. Control
 * tokens in the texts are text. If the prompt exceeds max_tokens, prefix and suffix are shortened
 * to three quarters and one; what one does not need, the other gets. AKUNU_ERROR_UNSUPPORTED: the
 * vocabulary has no such tokens. AKUNU_ERROR_CONTEXT: max_tokens are too few for the markers. */
ak_status ak_tok_encode_infill(const struct ak_tokenizer *t, struct ak_tok_infill *infill,
                               int32_t *ids, size_t capacity, size_t *n_ids,
                               struct ak_error *error);

/* ---- Encoding ----------------------------------------------------------- */
/* flags: AKUNU_ADD_SPECIAL, AKUNU_PARSE_SPECIAL. Writes at most `capacity` ids; *n_ids is the
 * number of ids of the whole text. */
ak_status ak_tok_encode(const struct ak_tokenizer *t, const char *text, size_t n_bytes,
                        unsigned flags, int32_t *ids, size_t capacity, size_t *n_ids,
                        struct ak_error *error);

/* Number of tokens that AKUNU_ADD_SPECIAL puts before and after a text. */
void ak_tok_count_added(const struct ak_tokenizer *t, size_t *n_before, size_t *n_after);

/* flags: AKUNU_SKIP_SPECIAL, AKUNU_CONTINUE. Writes at most `capacity` bytes; *n_bytes is the
 * length of the whole text. Fails on ids outside the vocabulary. */
ak_status ak_tok_decode(const struct ak_tokenizer *t, const int32_t *ids, size_t n_ids,
                        unsigned flags, char *text, size_t capacity, size_t *n_bytes,
                        struct ak_error *error);

/* Decodes one token at a time. Allocates nothing after creation. Keeps its tokenizer alive. */
struct ak_tok_stream;
ak_status ak_tok_stream_create(struct ak_tokenizer *t, unsigned flags, struct ak_tok_stream **out,
                               struct ak_error *error);
void ak_tok_stream_free(struct ak_tok_stream *s);
/* *text gets the characters that `token` completed; valid until the next call. */
ak_status ak_tok_stream_push(struct ak_tok_stream *s, int32_t token, const char **text,
                             size_t *n_bytes, struct ak_error *error);
void ak_tok_stream_end(struct ak_tok_stream *s, const char **text, size_t *n_bytes);

/* ---- Export ------------------------------------------------------------- */
/* A tokenizer as GGUF vocabulary keys, for convert. `vocab` points into the other members. */
struct ak_tok_export {
    struct ak_vocab vocab;
    struct ak_buffer bytes; /* text of all tokens and merges */
    struct ak_text *tokens, *merges;
    float *scores;
    int32_t *types;
    int64_t fim[AK_VOCAB_FIM_COUNT];
    int add_separator; /* one more separator between two texts; -1: not stated, 0, 1 */
};

/* Exports exactly `n_tokens` tokens: missing ones become unused tokens, surplus ones are left out.
 * The caller fills in the id of the mask and the model's name. `pre`: the name of the
 * pre-tokenizer of byte-level BPE; n = 0: find it, AKUNU_ERROR_UNSUPPORTED if no known one splits
 * text alike. Call ak_tok_export_free(out) even after a failure. */
ak_status ak_tok_export_vocab(const struct ak_tokenizer *t, uint32_t n_tokens, struct ak_text pre,
                              struct ak_tok_export *out, struct ak_error *error);
void ak_tok_export_free(struct ak_tok_export *e);

/* Whether a control token strips the whitespace to its right. GGUF has no key for it; llama.cpp
 * looks for "phi-3" in the model name. */
bool ak_tok_has_rstrip_control(const struct ak_tokenizer *t);

/* pre_name.c: the first known pre-tokenizer that splits a set of probe texts as `t` does; n = 0:
 * none does. */
ak_status ak_tok_find_pre_name(const struct ak_tokenizer *t, struct ak_text *out,
                               struct ak_error *error);

#endif
