/* What the parts of the tokenizer share. */
#ifndef AK_TOKENIZER_INTERNAL_H
#define AK_TOKENIZER_INTERNAL_H

#include "tokenizer/merge.h"
#include "tokenizer/pipeline.h"
#include "tokenizer/pretokenize.h"
#include "tokenizer/token_bytes.h"
#include "tokenizer/tokenizer.h"

/* A pair of neighbors that byte-level BPE merges. */
struct ak_tok_pair {
    uint32_t left, right, rank;
    int32_t merged;
};

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
    bool byte_level; /* byte-level BPE, else SentencePiece BPE */
    /* the bytes of each token; a blank is a blank, whatever the vocabulary writes for it */
    struct ak_tok_bytes token_bytes;
    uint8_t *token_flags;      /* of each token: its kind, and whether it ends a text */
    int32_t byte_tokens[256];  /* of single bytes, -1: none */
    int32_t bos, eos, unknown; /* -1: none */
    bool add_bos, add_eos;
    struct ak_tok_specials specials;

    /* NULL where the text needs no steps but those below */
    struct ak_tok_pipeline *pipeline;

    /* BPE by pairs */
    bool ignore_merges;                       /* a word that is a token is not merged */
    struct ak_tok_pretokenizer *pretokenizer; /* NULL with a pipeline */
    struct ak_tok_pair *pairs; /* open addressing; a free one has left = UINT32_MAX */
    uint32_t pair_mask;

    /* SentencePiece BPE */
    uint32_t *priorities; /* of each token: the order of the scores, the best one lowest */
    bool add_space_prefix;
    /* no piece spans the end of a word, so that words are merged one by one */
    bool merges_within_words;
};

/* One call of ak_tok_encode. */
struct ak_tok_encoding {
    const struct ak_tokenizer *t;
    int32_t *ids;
    size_t capacity, n; /* n counts on beyond the capacity */
    struct ak_tok_merge merge;
    struct ak_tok_matcher *matcher;
    char *text; /* SentencePiece BPE: the normalized text */
    size_t text_capacity;
    struct ak_tok_scratch scratch; /* a pipeline */
};

static inline void ak_tok_push(struct ak_tok_encoding *r, int32_t id)
{
    if (r->n < r->capacity)
        r->ids[r->n] = id;
    r->n++;
}

/* Fill in what is their own of a tokenizer whose other fields, token_flags among them,
 * are set. */
ak_status ak_tok_bpe_load(struct ak_tokenizer *t, const struct ak_vocab *vocab,
                          struct ak_error *error);
ak_status ak_tok_spm_load(struct ak_tokenizer *t, const struct ak_vocab *vocab,
                          struct ak_error *error);

/* The merges of BPE by pairs, of tokens of ak_tok_bpe_index; a line parts its pair by a
 * blank, or by NUL. Of equal merges in a tokenizer.json (`is_json`) the last one ranks,
 * as in `tokenizers`, and one that names no tokens is an error. In GGUF the first one ranks,
 * as in llama.cpp, and one that names no tokens does nothing. */
ak_status ak_tok_bpe_load_merges(struct ak_tokenizer *t, const struct ak_vocab *vocab, bool is_json,
                                 struct ak_error *error);
/* Appends the bytes of all tokens of byte-level BPE and makes words findable. */
void ak_tok_bpe_load_bytes(struct ak_tokenizer *t, const struct ak_vocab *vocab);

/* What text is looked up in. */
static inline const struct ak_tok_bytes *ak_tok_bpe_index(const struct ak_tokenizer *t)
{
    return t->byte_level ? &t->token_bytes : &t->pipeline->words;
}

/* BPE over characters, of GGUF. */
ak_status ak_tok_char_bpe_load(struct ak_tokenizer *t, const struct ak_vocab *vocab,
                               const struct ak_tok_char_rule *rule, struct ak_error *error);

/* bert and t5 of GGUF. */
ak_status ak_tok_wordpiece_load(struct ak_tokenizer *t, const struct ak_vocab *vocab,
                                struct ak_error *error);
ak_status ak_tok_unigram_load(struct ak_tokenizer *t, const struct ak_vocab *vocab,
                              struct ak_error *error);
/* The bytes that a token of WordPiece gives after others: a blank before it where it
 * begins a word, and none before a few signs and endings ("cleanup" of the
 * `tokenizers` package). `out` has room for n + 1 bytes; gives their number. */
uint32_t ak_tok_wordpiece_decode(const char *text, uint32_t n, bool begins, char *out);
void ak_tok_pipeline_free(struct ak_tok_pipeline *p); /* NULL allowed */
uint64_t ak_tok_pipeline_memory(const struct ak_tok_pipeline *p);

/* Tokenize text without special tokens: the whole, or what is between two of them. */
ak_status ak_tok_bpe_encode(struct ak_tok_encoding *r, const char *text, size_t n,
                            struct ak_error *error);
ak_status ak_tok_spm_encode(struct ak_tok_encoding *r, const char *text, size_t n,
                            struct ak_error *error);
/* `start`: at the beginning of the whole text. */
ak_status ak_tok_pipeline_encode(struct ak_tok_encoding *r, const char *text, size_t n,
                                 bool control, bool start, struct ak_error *error);

/* Tokenize a word: what the steps of a pipeline left of the text. */
ak_status ak_tok_bpe_encode_word(struct ak_tok_encoding *r, const char *word, size_t n,
                                 struct ak_error *error);
ak_status ak_tok_unigram_encode_word(struct ak_tok_encoding *r, const char *text, size_t n,
                                     struct ak_error *error);
ak_status ak_tok_wordpiece_encode_word(struct ak_tok_encoding *r, const char *text, size_t n,
                                       struct ak_error *error);

/* Splits the text at the special tokens and gives what is between them to `fn`. */
typedef ak_status ak_tok_part_fn(struct ak_tok_encoding *r, const char *text, size_t n,
                                 bool control, bool start, struct ak_error *error);
ak_status ak_tok_encode_parts(struct ak_tok_encoding *r, const struct ak_tok_specials *specials,
                              const char *text, size_t n, bool control, bool start,
                              ak_tok_part_fn *fn, struct ak_error *error);

/* bytes.c: what pieces are written as. */
/* "<0x0A>" is 10; -1 for another text. */
int ak_tok_parse_byte(struct ak_text text);
/* Undoes the printable form of byte-level BPE into out, at least n bytes. False
 * where the text has other characters: then it stands for itself. */
bool ak_tok_decode_printable(const char *text, uint32_t n, char *out, uint32_t *n_out);
/* The printable form of a byte, in UTF-8; gives the number of its bytes. */
size_t ak_tok_encode_printable(unsigned char byte, char out[4]);
/* Copies text with every ▁ as a blank; out has room for n bytes. */
uint32_t ak_tok_decode_metaspace(const char *text, size_t n, char *out);

/* Marks the tokens that end a text. */
void ak_tok_mark_ends(struct ak_tokenizer *t, const struct ak_vocab *vocab);

static inline uint8_t ak_tok_kind(const struct ak_tokenizer *t, uint32_t id)
{
    return t->token_flags[id] & AK_TOK_KIND_MASK;
}

#endif
