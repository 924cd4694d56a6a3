/* Internals of ak_grammar_token_trie: the vocabulary as a trie over bytes, so that a mask tests the
 * common beginning of tokens once. Built by token_trie.c, used by matcher.c, token_mask.c and
 * forced.c. */
#ifndef AK_TEXT_GRAMMAR_TOKEN_TRIE_H
#define AK_TEXT_GRAMMAR_TOKEN_TRIE_H

#include "text/grammar/matcher.h"

enum { AK_GRAMMAR_TOKEN_BYTES_MAX = 1024 }; /* a longer token is never allowed */

/* Nodes are in depth-first order. */
struct ak_grammar_trie_node {
    uint32_t skip;  /* the first node after the subtree */
    int32_t token;  /* first token that ends here; -1: none */
    uint16_t depth; /* in bytes, from 1 */
    unsigned char byte;
    uint8_t height; /* length of the longest path below, in bytes, at most 255 */
};

/* Token with the same bytes as another: `canonical_token` is the one in the trie. */
struct ak_grammar_alias_token {
    uint32_t token, canonical_token;
};

struct ak_grammar_token_trie {
    const struct ak_tokenizer *tokenizer;
    uint32_t n_vocab, n_tokens; /* number of logits; tokens of the tokenizer, at most n_vocab */
    uint32_t max_token_bytes;   /* length of the longest token in the trie */
    struct ak_grammar_trie_node *nodes;
    uint32_t n_nodes;
    struct ak_grammar_alias_token *aliases;
    uint32_t n_aliases;
    char *bytes;     /* token i: from bytes[first[i]] up to bytes[first[i + 1]] */
    uint32_t *first; /* [n_vocab + 1] */
    /* bit sets of tokens. end_tokens end a text; non_text_tokens are control tokens, with the bytes
     * of their names, and tokens without bytes. */
    uint32_t *end_tokens;
    uint32_t *non_text_tokens;
};

static inline uint32_t ak_grammar_mask_n_words(const struct ak_grammar_token_trie *t)
{
    return (t->n_vocab + 31) / 32;
}
static inline void ak_grammar_mask_set(uint32_t *mask, uint32_t i)
{
    mask[i / 32] |= UINT32_C(1) << (i % 32);
}
static inline bool ak_grammar_mask_has(const uint32_t *mask, uint32_t i)
{
    return mask[i / 32] >> (i % 32) & 1;
}

#endif
