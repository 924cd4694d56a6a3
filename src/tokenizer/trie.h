/* All pieces that begin a text, shorter ones first: a sorted array of ids, a range
 * of which is a node of a trie. */
#ifndef AK_TOKENIZER_TRIE_H
#define AK_TOKENIZER_TRIE_H

#include "tokenizer/token_bytes.h"

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

#endif
