/* Internals of the tokenizer: struct ak_tokenizer, the encoders of its models, and the forms in
 * which vocabularies write bytes (bytes.c). Private to this folder, except for tests/fuzz. */
#ifndef AK_TEXT_TOKENIZER_INTERNAL_H
#define AK_TEXT_TOKENIZER_INTERNAL_H

#include "base/refs.h"
#include "text/tokenizer/merge.h"
#include "text/tokenizer/pipeline.h"
#include "text/tokenizer/pretokenize.h"
#include "text/tokenizer/token_bytes.h"
#include "text/tokenizer/tokenizer.h"

/* A merge of BPE: tokens `left` and `right` become `merged`. */
struct ak_tok_pair {
    uint32_t left, right, rank;
    int32_t merged;
};

/* Token flags: a kind, and AK_TOK_END_FLAG if the token ends a text. */

enum {
    AK_TOK_KIND_NORMAL,
    AK_TOK_KIND_BYTE,
    AK_TOK_KIND_ADDED,
    AK_TOK_KIND_CONTROL,
    AK_TOK_KIND_UNUSED,
    AK_TOK_KIND_MASK = 7,
    AK_TOK_END_FLAG = 8
};

struct ak_tokenizer {
    struct ak_refs refs;
    bool byte_level; /* byte-level BPE, else SentencePiece BPE */
    /* what each token decodes to: a space is a space, however the vocabulary writes it */
    struct ak_tok_bytes token_bytes;
    uint8_t *token_flags;                    /* per token */
    int32_t byte_tokens[256];                /* token of each single byte; -1: none */
    int32_t bos, eos, eot, padding, unknown; /* -1: none */
    bool add_bos, add_eos;
    int32_t fim[AK_VOCAB_FIM_COUNT]; /* fill-in-the-middle; -1: none */
    struct ak_tok_specials specials;

    /* NULL: byte-level or SentencePiece BPE with the members below */
    struct ak_tok_pipeline *pipeline;

    /* BPE with a list of merges */
    bool ignore_merges;                       /* a word that is a token stays whole */
    bool ranked;                              /* ids are the ranks of merges; there is no list */
    struct ak_tok_pretokenizer *pretokenizer; /* NULL with a pipeline */
    struct ak_tok_pair *pairs;                /* open addressing; free slot: left = UINT32_MAX */
    uint32_t pair_mask;

    /* SentencePiece BPE */
    uint32_t *priorities; /* per token, by score: the best score is the lowest number */
    bool add_space_prefix;
    /* no token spans the end of a word, so each word is merged on its own */
    bool merges_within_words;
};

/* One call of ak_tok_encode. */
struct ak_tok_encoding {
    const struct ak_tokenizer *t;
    int32_t *ids;
    size_t capacity, n; /* n goes on counting past the capacity */
    struct ak_tok_merge merge;
    struct ak_tok_matcher *matcher;
    char *text; /* SentencePiece BPE: the normalized text */
    size_t text_capacity;
    struct ak_tok_scratch scratch; /* of a pipeline */
};

static inline void ak_tok_push(struct ak_tok_encoding *r, int32_t id)
{
    if (r->n < r->capacity)
        r->ids[r->n] = id;
    r->n++;
}

/* Load a model into *t. Its common fields, token_flags among them, must be set. */
ak_status ak_tok_bpe_load(struct ak_tokenizer *t, const struct ak_vocab *vocab,
                          struct ak_error *error);
ak_status ak_tok_spm_load(struct ak_tokenizer *t, const struct ak_vocab *vocab,
                          struct ak_error *error);

/* Loads the merges; ak_tok_bpe_index must be filled. A line holds two tokens separated by a space
 * or NUL. tokenizer.json (`is_json`): of equal merges the last one counts, as in the `tokenizers`
 * package; a merge of unknown tokens is an error. GGUF: the first one counts, as in llama.cpp; a
 * merge of unknown tokens is ignored. */
ak_status ak_tok_bpe_load_merges(struct ak_tokenizer *t, const struct ak_vocab *vocab, bool is_json,
                                 struct ak_error *error);
/* Loads a vocabulary of plain bytes in the order of ranks (tiktoken), which has no merges. */
ak_status ak_tok_bpe_load_ranks(struct ak_tokenizer *t, const struct ak_vocab *vocab,
                                struct ak_error *error);
/* The merges of such a vocabulary, by rank, as a list of them would have them: a token is made of
 * the two parts that the merges before it leave of its bytes. The caller frees *out. */
ak_status ak_tok_bpe_find_merges(const struct ak_tokenizer *t, struct ak_tok_pair **out,
                                 uint32_t *n, struct ak_error *error);
/* Appends the bytes of all tokens of byte-level BPE and indexes those that text can become. */
void ak_tok_bpe_load_bytes(struct ak_tokenizer *t, const struct ak_vocab *vocab);

/* The table in which text is looked up. */
static inline const struct ak_tok_bytes *ak_tok_bpe_index(const struct ak_tokenizer *t)
{
    return t->byte_level ? &t->token_bytes : &t->pipeline->words;
}

/* GGUF: BPE over characters. */
ak_status ak_tok_char_bpe_load(struct ak_tokenizer *t, const struct ak_vocab *vocab,
                               const struct ak_tok_char_rule *rule, struct ak_error *error);

/* GGUF: "bert" and "t5". */
ak_status ak_tok_wordpiece_load(struct ak_tokenizer *t, const struct ak_vocab *vocab,
                                struct ak_error *error);
ak_status ak_tok_unigram_load(struct ak_tokenizer *t, const struct ak_vocab *vocab,
                              struct ak_error *error);
/* Decodes a WordPiece token in the middle of a text: with a space before it if it begins a word,
 * except before some punctuation and endings ("cleanup" of the `tokenizers` package). Writes at
 * most n + 1 bytes; returns their number. */
uint32_t ak_tok_wordpiece_decode(const char *text, uint32_t n, bool begins, char *out);
/* Lowers text if the folder's sentence_bert_config.json says do_lower_case. */
ak_status ak_tok_apply_lower_case(const struct ak_provider *p, struct ak_tokenizer *t,
                                  struct ak_error *error);
void ak_tok_pipeline_free(struct ak_tok_pipeline *p); /* NULL allowed */
uint64_t ak_tok_pipeline_memory(const struct ak_tok_pipeline *p);

/* Encode text that contains no special tokens: a whole text or a part between two of them. */
ak_status ak_tok_bpe_encode(struct ak_tok_encoding *r, const char *text, size_t n,
                            struct ak_error *error);
ak_status ak_tok_spm_encode(struct ak_tok_encoding *r, const char *text, size_t n,
                            struct ak_error *error);
/* `start`: the part begins the whole text. `control`: match control tokens too. */
ak_status ak_tok_pipeline_encode(struct ak_tok_encoding *r, const char *text, size_t n,
                                 bool control, bool start, struct ak_error *error);

/* Encode a word as the pre-tokenizers give it. */
ak_status ak_tok_bpe_encode_word(struct ak_tok_encoding *r, const char *word, size_t n,
                                 struct ak_error *error);
ak_status ak_tok_unigram_encode_word(struct ak_tok_encoding *r, const char *text, size_t n,
                                     struct ak_error *error);
ak_status ak_tok_wordpiece_encode_word(struct ak_tok_encoding *r, const char *text, size_t n,
                                       struct ak_error *error);

/* Splits the text at its special tokens and calls `fn` for each part between them. */
typedef ak_status ak_tok_part_fn(struct ak_tok_encoding *r, const char *text, size_t n,
                                 bool control, bool start, struct ak_error *error);
ak_status ak_tok_encode_parts(struct ak_tok_encoding *r, const struct ak_tok_specials *specials,
                              const char *text, size_t n, bool control, bool start,
                              ak_tok_part_fn *fn, struct ak_error *error);

/* Start of the trailing whitespace of text[from, to). */
size_t ak_tok_find_whitespace_begin(const char *text, size_t from, size_t to);

/* bytes.c: how vocabularies write bytes. */
/* "<0x0A>" is 10; -1: not of that form. */
int ak_tok_parse_byte(struct ak_text text);
/* Decodes the printable form of byte-level BPE; `out` has room for n bytes. False: the text has
 * other characters and stands for itself. */
bool ak_tok_decode_printable(const char *text, uint32_t n, char *out, uint32_t *n_out);
/* Writes the printable form of a byte as UTF-8; returns its length. */
size_t ak_tok_encode_printable(unsigned char byte, char out[4]);
/* Copies the text with a space for each ▁; `out` has room for n bytes. Returns the length. */
uint32_t ak_tok_decode_metaspace(const char *text, size_t n, char *out);

/* Fills in t->fim from the file's ids and from the special tokens. */
void ak_tok_find_fim(struct ak_tokenizer *t, const struct ak_vocab *vocab);

/* Marks the tokens that end a text. t->fim must be filled in. */
void ak_tok_mark_ends(struct ak_tokenizer *t, const struct ak_vocab *vocab);

/* ---- Special tokens: special_tokens.c ----------------------------------- */
/* The special or added token of this name; -1: none. */
int32_t ak_tok_find_special(const struct ak_tokenizer *t, const char *name);

/* Finds the tokens for end of turn and padding. Call it after the ends are
 * marked. */
void ak_tok_find_special_tokens(struct ak_tokenizer *t, const struct ak_vocab *vocab);

static inline uint8_t ak_tok_kind(const struct ak_tokenizer *t, uint32_t id)
{
    return t->token_flags[id] & AK_TOK_KIND_MASK;
}

#endif
