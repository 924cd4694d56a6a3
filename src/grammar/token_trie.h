/* The inside of ak_grammar_token_trie. */
#ifndef AK_GRAMMAR_TOKEN_TRIE_H
#define AK_GRAMMAR_TOKEN_TRIE_H

#include "grammar/matcher.h"

enum { AK_GRAMMAR_TOKEN_BYTES_MAX = 1024 }; /* a longer one is never allowed */

/* Nodes come in the order of a walk: first a node, then what is below it. */
struct ak_grammar_trie_node {
    uint32_t skip;  /* the node after all that are below this one */
    int32_t token;  /* the first that ends here, -1: none */
    uint16_t depth; /* from 1 on */
    unsigned char byte;
    uint8_t height; /* bytes of the longest way down from here, at most 255 */
};

/* A token whose bytes are those of one that a node has. */
struct ak_grammar_alias_token {
    uint32_t token, canonical_token;
};

struct ak_grammar_token_trie {
    const struct ak_tokenizer *tokenizer;
    uint32_t n_vocab, n_tokens; /* of the logits, of the tokenizer */
    uint32_t max_token_bytes;
    struct ak_grammar_trie_node *nodes;
    uint32_t n_nodes;
    struct ak_grammar_alias_token *aliases;
    uint32_t n_aliases;
    char *bytes; /* of token i: bytes[first[i] … first[i + 1]) */
    uint32_t *first;
    uint32_t *end_tokens; /* sets of tokens: those that end a text, */
    /* and those that no text has: control tokens, whose bytes are those of their names, and
     * those without bytes */
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
