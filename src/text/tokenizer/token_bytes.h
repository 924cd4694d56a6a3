/* Token bytes table: the bytes of each token id, and a hash from bytes to id. Also a trie over the
 * table, for unigram.c and wordpiece.c, and a matcher of special tokens.
 *
 * The bytes lie in one arena with one offset per token. The hash uses open addressing. */
#ifndef AK_TEXT_TOKENIZER_TOKEN_BYTES_H
#define AK_TEXT_TOKENIZER_TOKEN_BYTES_H

#include "base/error.h"
#include "files/weights/provider.h"

struct ak_tok_bytes_slot {
    uint32_t hash, id;
};

struct ak_tok_bytes {
    uint32_t n;         /* tokens appended so far */
    uint32_t capacity;  /* tokens reserved */
    uint32_t max_bytes; /* length of the longest indexed token */
    char *arena;
    uint64_t arena_bytes;
    uint32_t *offsets; /* capacity + 1; token i is arena[offsets[i], offsets[i+1]) */
    struct ak_tok_bytes_slot *slots;
    uint32_t slot_mask; /* number of slots, a power of two, minus 1; at most two thirds full */
};

/* Reserves room for n tokens of `bytes` bytes in total. *p must be zero. After a failure too, p may
 * be passed to ak_tok_bytes_free. */
ak_status ak_tok_bytes_reserve(struct ak_tok_bytes *p, uint32_t n, uint64_t bytes,
                               struct ak_error *error);
void ak_tok_bytes_free(struct ak_tok_bytes *p);

/* _next returns where to write the bytes of the next token; _append adds a token of the n bytes
 * written there. The caller must stay within the reserved room. */
char *ak_tok_bytes_next(struct ak_tok_bytes *p);
void ak_tok_bytes_append(struct ak_tok_bytes *p, uint32_t n);

/* Indexes token `id`, unless it is empty or an equal token is indexed already. Tokens are indexed
 * in batches, so that their cache misses overlap; ak_tok_bytes_index_end flushes the last batch. */
enum { AK_TOK_BATCH_MAX = 96 };
struct ak_tok_bytes_batch {
    uint32_t ids[AK_TOK_BATCH_MAX];
    size_t n;
};
void ak_tok_bytes_index(struct ak_tok_bytes *p, struct ak_tok_bytes_batch *batch, uint32_t id);
void ak_tok_bytes_index_end(struct ak_tok_bytes *p, struct ak_tok_bytes_batch *batch);

/* The indexed token of exactly these bytes; -1: none. */
int32_t ak_tok_bytes_find(const struct ak_tok_bytes *p, const char *bytes, size_t n);

/* The same for n <= AK_TOK_BATCH_MAX texts. */
void ak_tok_bytes_find_all(const struct ak_tok_bytes *p, const struct ak_text *texts, size_t n,
                           int32_t *ids);

/* Frees the index; later lookups are not allowed. */
void ak_tok_bytes_drop_index(struct ak_tok_bytes *p);

uint64_t ak_tok_bytes_memory(const struct ak_tok_bytes *p);

static inline struct ak_text ak_tok_bytes_get(const struct ak_tok_bytes *p, uint32_t id)
{
    return (struct ak_text){ p->arena + p->offsets[id], p->offsets[id + 1] - p->offsets[id] };
}

/* ---- Trie --------------------------------------------------------------- */
/* Finds all tokens that begin a text, shortest first. A sorted array of ids; a range of it is a
 * node. */
struct ak_tok_trie {
    const struct ak_tok_bytes *table;
    uint32_t *order; /* ids sorted by bytes; of equal tokens the highest id first */
    uint32_t n;
    uint32_t first[257]; /* tokens that begin with byte b: [first[b], first[b+1]) */
};

/* The tokens order[low, high) agree in their first `depth` bytes. */
struct ak_tok_trie_node {
    uint32_t low, high, depth;
};

/* `order`: n ids of non-empty tokens in any order, from ak_alloc; the trie takes ownership. `table`
 * must outlive the trie. */
void ak_tok_trie_init(struct ak_tok_trie *t, const struct ak_tok_bytes *table, uint32_t *order,
                      uint32_t n);
void ak_tok_trie_free(struct ak_tok_trie *t);

static inline struct ak_tok_trie_node ak_tok_trie_root(const struct ak_tok_trie *t)
{
    return (struct ak_tok_trie_node){ 0, t->n, 0 };
}

/* Descends by one byte. False: no token continues so, and *node is no longer valid. */
bool ak_tok_trie_descend(const struct ak_tok_trie *t, struct ak_tok_trie_node *node,
                         unsigned char byte);

/* The token that ends at this node; of equal tokens the last one, as in the `tokenizers` package
 * and llama.cpp; -1: none. */
int32_t ak_tok_trie_token(const struct ak_tok_trie *t, const struct ak_tok_trie_node *node);

/* ---- Special tokens ----------------------------------------------------- */
/* Control tokens ("<|im_end|>") and added tokens. They are matched before the model runs. */
struct ak_tok_special {
    const char *text; /* points into the arena of the table, n bytes */
    uint32_t n;
    int32_t id;
    bool matches_always; /* also matched without AKUNU_PARSE_SPECIAL */
    /* tokenizer.json: matches only if no word continues at either end */
    bool single_word;
    bool lstrip, rstrip; /* tokenizer.json: takes the whitespace to its left, right */
};

struct ak_tok_specials {
    struct ak_tok_special *sorted; /* by bytes */
    uint32_t n;
    uint32_t first[257]; /* tokens that begin with byte b: [first[b], first[b+1]) */
};

/* `sorted`: n tokens with non-empty texts in any order, from ak_alloc; *s takes ownership. */
void ak_tok_specials_init(struct ak_tok_specials *s, struct ak_tok_special *sorted, uint32_t n);
void ak_tok_specials_free(struct ak_tok_specials *s);

/* The first special token at or after text[from], the longest of those that begin at one place;
 * NULL: none. *at: its offset. `control`: match control tokens too. */
const struct ak_tok_special *ak_tok_specials_next(const struct ak_tok_specials *s, bool control,
                                                  const char *text, size_t n, size_t from,
                                                  size_t *at);

/* The special token of exactly this text; NULL: none. */
const struct ak_tok_special *ak_tok_specials_find(const struct ak_tok_specials *s,
                                                  const char *name);

#endif
