/* The bytes that each token stands for: one arena, one offset a token, and one
 * open-addressing hash from bytes to token. */
#ifndef AK_TOKENIZER_TOKEN_BYTES_H
#define AK_TOKENIZER_TOKEN_BYTES_H

#include "base/error.h"
#include "weights/provider.h"

struct ak_tok_bytes_slot {
    uint32_t hash, id;
};

struct ak_tok_bytes {
    uint32_t n;         /* pieces so far */
    uint32_t capacity;  /* as reserved */
    uint32_t max_bytes; /* bytes of the longest one in the index */
    char *arena;
    uint64_t arena_bytes;
    uint32_t *offsets; /* capacity + 1: piece i is [offsets[i], offsets[i+1]) of the arena */
    struct ak_tok_bytes_slot *slots;
    uint32_t slot_mask; /* slots - 1; a power of two, at most half full */
};

/* Makes room for n pieces of `bytes` bytes in all. p is all zero before, and may
 * be given to ak_tok_bytes_free whatever comes back. */
ak_status ak_tok_bytes_reserve(struct ak_tok_bytes *p, uint32_t n, uint64_t bytes,
                               struct ak_error *error);
void ak_tok_bytes_free(struct ak_tok_bytes *p);

/* Where the next piece's bytes are to be written, and that n of them were. Both
 * stay within what was reserved: the caller's duty. */
char *ak_tok_bytes_next(struct ak_tok_bytes *p);
void ak_tok_bytes_append(struct ak_tok_bytes *p, uint32_t n);

/* Makes piece `id` findable, unless it is empty or an equal one is there already:
 * at the latest with ak_tok_bytes_index_end. Several at once take less time than one
 * by one, since they do not wait for memory one after another. */
enum { AK_TOK_BATCH_MAX = 96 };
struct ak_tok_bytes_batch {
    uint32_t ids[AK_TOK_BATCH_MAX];
    size_t n;
};
void ak_tok_bytes_index(struct ak_tok_bytes *p, struct ak_tok_bytes_batch *batch, uint32_t id);
void ak_tok_bytes_index_end(struct ak_tok_bytes *p, struct ak_tok_bytes_batch *batch);

/* The token that stands for these bytes, -1 where none was indexed. */
int32_t ak_tok_bytes_find(const struct ak_tok_bytes *p, const char *bytes, size_t n);

/* The same for n ≤ AK_TOK_BATCH_MAX texts. */
void ak_tok_bytes_find_all(const struct ak_tok_bytes *p, const struct ak_text *texts, size_t n,
                           int32_t *ids);

/* Gives back the index, where nothing will be looked up any more. */
void ak_tok_bytes_drop_index(struct ak_tok_bytes *p);

uint64_t ak_tok_bytes_memory(const struct ak_tok_bytes *p);

static inline struct ak_text ak_tok_bytes_get(const struct ak_tok_bytes *p, uint32_t id)
{
    return (struct ak_text){ p->arena + p->offsets[id], p->offsets[id + 1] - p->offsets[id] };
}

/* ---- Trie --------------------------------------------------------------- */

struct ak_tok_trie {
    const struct ak_tok_bytes *table;
    uint32_t *order; /* ids by bytes; of equal pieces the highest id first */
    uint32_t n;
    uint32_t first[257]; /* those that begin with byte b are [first[b], first[b+1]) */
};

/* A node: the pieces of [low, high) agree in their first `depth` bytes. */
struct ak_tok_trie_node {
    uint32_t low, high, depth;
};

/* `order` is an array from ak_alloc of n ids of non-empty pieces in any order; it
 * is the trie's own from now on. The pieces must outlive it. */
void ak_tok_trie_init(struct ak_tok_trie *t, const struct ak_tok_bytes *table, uint32_t *order,
                      uint32_t n);
void ak_tok_trie_free(struct ak_tok_trie *t);

static inline struct ak_tok_trie_node ak_tok_trie_root(const struct ak_tok_trie *t)
{
    return (struct ak_tok_trie_node){ 0, t->n, 0 };
}

/* Goes down by one byte: false where no piece goes on so, and the node is spent. */
bool ak_tok_trie_descend(const struct ak_tok_trie *t, struct ak_tok_trie_node *node,
                         unsigned char byte);

/* The piece that ends at this node; of equal pieces the last one, as in `tokenizers` and llama.cpp;
 * -1: none. */
int32_t ak_tok_trie_token(const struct ak_tok_trie *t, const struct ak_tok_trie_node *node);

/* ---- Special tokens ----------------------------------------------------- */

struct ak_tok_special {
    const char *text; /* in the arena of the pieces */
    uint32_t n;
    int32_t id;
    bool matches_always; /* not only where control tokens are asked for */
    /* Of tokenizer.json: only where no word goes on at its ends; takes the blanks to
     * its left, to its right. */
    bool single_word, lstrip, rstrip;
};

struct ak_tok_specials {
    struct ak_tok_special *sorted; /* by their bytes */
    uint32_t n;
    uint32_t first[257]; /* those that begin with byte b are [first[b], first[b+1]) */
};

/* `sorted` is an array from ak_alloc of n with non-empty texts, in any order; it
 * is the specials' own from now on. */
void ak_tok_specials_init(struct ak_tok_specials *s, struct ak_tok_special *sorted, uint32_t n);
void ak_tok_specials_free(struct ak_tok_specials *s);

/* The next special token at or after text[from], the longest where several begin
 * at one place; NULL where there is none. *at is where it begins. */
const struct ak_tok_special *ak_tok_specials_next(const struct ak_tok_specials *s, bool control,
                                                  const char *text, size_t n, size_t from,
                                                  size_t *at);

/* The token of exactly this text, NULL where it is none. */
const struct ak_tok_special *ak_tok_specials_find(const struct ak_tok_specials *s,
                                                  const char *name);

#endif
