/* What the parts of the tokenizer share. */
#ifndef AK_TEXT_STATE_H
#define AK_TEXT_STATE_H

#include "tokenizer/merge.h"
#include "tokenizer/pieces.h"
#include "tokenizer/pipeline.h"
#include "tokenizer/pretokenize.h"
#include "tokenizer/rules.h"
#include "tokenizer/specials.h"
#include "tokenizer/tokenizer.h"

/* A pair of neighbors that byte-level BPE merges. */
struct ak_pair {
    uint32_t left, right, rank;
    int32_t joined;
};

enum {
    AK_TOKEN_NORMAL,
    AK_TOKEN_BYTE,
    AK_TOKEN_ADDED,
    AK_TOKEN_CONTROL,
    AK_TOKEN_UNUSED,
    AK_TOKEN_KIND = 7,
    AK_TOKEN_END = 8
};

struct ak_tokenizer {
    bool byte_level; /* byte-level BPE, else SentencePiece BPE */
    /* the bytes of each token; a blank is a blank, whatever the vocabulary writes for it */
    struct ak_pieces pieces;
    uint8_t *marks;            /* of each token: its kind, and whether it ends a text */
    int32_t byte_tokens[256];  /* of single bytes, -1: none */
    int32_t bos, eos, unknown; /* -1: none */
    bool add_bos, add_eos;
    struct ak_specials specials;

    /* NULL where the text needs no steps but those below */
    struct ak_pipeline *pipeline;

    /* BPE by pairs */
    bool whole_words;            /* a word that is a token is not merged */
    struct ak_pretokenizer *pre; /* NULL with a pipeline */
    struct ak_pair *pairs;       /* open addressing; a free one has left = UINT32_MAX */
    uint32_t pair_mask;

    /* SentencePiece BPE */
    uint32_t *priorities; /* of each token: the order of the scores, the best one lowest */
    bool add_space_prefix;
    bool words_apart; /* no piece spans the end of a word, so that words are merged one by one */
};

/* One call of ak_tokenize. */
struct ak_run {
    const struct ak_tokenizer *t;
    int32_t *ids;
    size_t capacity, n; /* n counts on beyond the capacity */
    struct ak_merge merge;
    struct ak_matcher *matcher;
    char *text; /* SentencePiece BPE: the normalized text */
    size_t text_capacity;
    struct ak_work work; /* a pipeline */
};

static inline void ak_run_push(struct ak_run *r, int32_t id)
{
    if (r->n < r->capacity)
        r->ids[r->n] = id;
    r->n++;
}

/* Fill in what is their own of a tokenizer whose other fields, marks among them,
 * are set. */
ak_status ak_bpe_load(struct ak_tokenizer *t, const struct ak_vocab *vocab, struct ak_error *error);
ak_status ak_spm_load(struct ak_tokenizer *t, const struct ak_vocab *vocab, struct ak_error *error);

/* The merges of BPE by pairs, of tokens of ak_bpe_index; a line parts its pair by a
 * blank, or by NUL. Of equal merges in a tokenizer.json (`is_json`) the last one ranks,
 * as in `tokenizers`, and one that names no tokens is an error. In GGUF the first one ranks,
 * as in llama.cpp, and one that names no tokens does nothing. */
ak_status ak_bpe_load_merges(struct ak_tokenizer *t, const struct ak_vocab *vocab, bool is_json,
                             struct ak_error *error);
/* Appends the bytes of all tokens of byte-level BPE and makes words findable. */
void ak_bpe_load_pieces(struct ak_tokenizer *t, const struct ak_vocab *vocab);

/* What text is looked up in. */
static inline const struct ak_pieces *ak_bpe_index(const struct ak_tokenizer *t)
{
    return t->byte_level ? &t->pieces : &t->pipeline->words;
}

/* BPE over characters, of GGUF. */
ak_status ak_raw_bpe_load(struct ak_tokenizer *t, const struct ak_vocab *vocab,
                          const struct ak_raw_rule *rule, struct ak_error *error);

/* bert and t5 of GGUF. */
ak_status ak_wordpiece_load(struct ak_tokenizer *t, const struct ak_vocab *vocab,
                            struct ak_error *error);
ak_status ak_unigram_load(struct ak_tokenizer *t, const struct ak_vocab *vocab,
                          struct ak_error *error);
/* The bytes that a token of WordPiece gives after others: a blank before it where it
 * begins a word, and none before a few signs and endings ("cleanup" of the
 * `tokenizers` package). `out` has room for n + 1 bytes; gives their number. */
uint32_t ak_wordpiece_text(const char *text, uint32_t n, bool begins, char *out);
void ak_pipeline_free(struct ak_pipeline *p); /* NULL allowed */
uint64_t ak_pipeline_bytes(const struct ak_pipeline *p);

/* Tokenize text without special tokens: the whole, or what is between two of them. */
ak_status ak_bpe_text(struct ak_run *r, const char *text, size_t n, struct ak_error *error);
ak_status ak_spm_text(struct ak_run *r, const char *text, size_t n, struct ak_error *error);
/* `start`: at the beginning of the whole text. */
ak_status ak_pipeline_text(struct ak_run *r, const char *text, size_t n, bool control, bool start,
                           struct ak_error *error);

/* Tokenize a word: what the steps of a pipeline left of the text. */
ak_status ak_bpe_word(struct ak_run *r, const char *word, size_t n, struct ak_error *error);
ak_status ak_unigram_word(struct ak_run *r, const char *text, size_t n, struct ak_error *error);
ak_status ak_wordpiece_word(struct ak_run *r, const char *text, size_t n, struct ak_error *error);

/* Splits the text at the special tokens and gives what is between them to `fn`. */
typedef ak_status ak_part_fn(struct ak_run *r, const char *text, size_t n, bool control, bool start,
                             struct ak_error *error);
ak_status ak_add_parts(struct ak_run *r, const struct ak_specials *specials, const char *text,
                       size_t n, bool control, bool start, ak_part_fn *fn, struct ak_error *error);

/* bytes.c: what pieces are written as. */
/* "<0x0A>" is 10; -1 for another text. */
int ak_byte_of(struct ak_text text);
/* Undoes the printable form of byte-level BPE into out, at least n bytes. False
 * where the text has other characters: then it stands for itself. */
bool ak_bytes_of_printable(const char *text, uint32_t n, char *out, uint32_t *n_out);
/* The printable form of a byte, in UTF-8; gives the number of its bytes. */
size_t ak_printable_of_byte(unsigned char byte, char out[4]);
/* Copies text with every ▁ as a blank; out has room for n bytes. */
uint32_t ak_unmark(const char *text, size_t n, char *out);

/* Marks the tokens that end a text. */
void ak_mark_ends(struct ak_tokenizer *t, const struct ak_vocab *vocab);

static inline uint8_t ak_kind(const struct ak_tokenizer *t, uint32_t id)
{
    return t->marks[id] & AK_TOKEN_KIND;
}

#endif
