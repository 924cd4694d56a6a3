/* What the parts of the tokenizer share. */
#ifndef AK_TEXT_STATE_H
#define AK_TEXT_STATE_H

#include "text/merge.h"
#include "text/pieces.h"
#include "text/pretokenize.h"
#include "text/specials.h"
#include "text/tokenizer.h"

/* A pair of neighbours that byte-level BPE merges. */
struct ak_pair {
    uint32_t left, right, rank;
    int32_t joined;
};

enum { AK_TOKEN_NORMAL, AK_TOKEN_BYTE, AK_TOKEN_ADDED, AK_TOKEN_CONTROL, AK_TOKEN_UNUSED, AK_TOKEN_KIND = 7, AK_TOKEN_END = 8 };

struct ak_tokenizer {
    bool byte_level;           /* byte-level BPE, else SentencePiece BPE */
    struct ak_pieces pieces;   /* the bytes of each token; a blank is a blank, whatever the vocabulary writes for it */
    uint8_t *marks;            /* of each token: its kind, and whether it ends a text */
    int32_t byte_tokens[256];  /* of single bytes, -1: none */
    int32_t bos, eos, unknown; /* -1: none */
    bool add_bos, add_eos;
    struct ak_specials specials;

    /* byte-level BPE */
    struct ak_pretokenizer *pre;
    struct ak_pair *pairs; /* open addressing; a free one has left = UINT32_MAX */
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
    struct ak_matcher *matcher; /* byte-level BPE */
    char *text;               /* SentencePiece BPE: the normalised text */
    size_t text_capacity;
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

/* Tokenize text without special tokens: the whole, or what is between two of them. */
ak_status ak_bpe_text(struct ak_run *r, const char *text, size_t n, struct ak_error *error);
ak_status ak_spm_text(struct ak_run *r, const char *text, size_t n, struct ak_error *error);

/* Marks the tokens that end a text. */
void ak_mark_ends(struct ak_tokenizer *t, const struct ak_vocab *vocab);

static inline uint8_t ak_kind(const struct ak_tokenizer *t, uint32_t id)
{
    return t->marks[id] & AK_TOKEN_KIND;
}

#endif
