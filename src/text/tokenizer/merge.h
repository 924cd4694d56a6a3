/* Merge loop of both kinds of BPE (bpe.c, spm.c): merges neighbors, the smallest priority (a rank)
 * first, until no pair merges. O(n log n) for any text. */
#ifndef AK_TEXT_TOKENIZER_MERGE_H
#define AK_TEXT_TOKENIZER_MERGE_H

#include "base/error.h"

#define AK_TOK_NO_NODE UINT32_MAX

/* A part of the text, in a doubly linked list. */
struct ak_tok_node {
    uint32_t begin, bytes; /* in the text */
    int32_t id;            /* its token so far; -1: none */
    uint32_t prev, next;   /* AK_TOK_NO_NODE: first, last */
    uint32_t priority;     /* of merging with `next`; UINT32_MAX: they do not merge */
    int32_t merged;        /* the token that this merge makes */
};

/* Gives the merge of two neighbors; false: none. The smallest priority goes first, of equal ones
 * the leftmost. A priority is below UINT32_MAX. */
typedef bool ak_tok_merge_fn(const void *context, const struct ak_tok_node *left,
                             const struct ak_tok_node *right, uint32_t *priority, int32_t *merged);

/* State of one word, reused for the next. Zero-initialize. */
struct ak_tok_merge {
    struct ak_tok_node *nodes; /* the first node of a word is always nodes[0] */
    uint32_t n_nodes;
    uint64_t *heap; /* priority << 32 | node */
    size_t n_heap;
    size_t capacity; /* in nodes; of the heap twice that */
};

/* Starts a word of at most n < 2^31 nodes. */
ak_status ak_tok_merge_begin(struct ak_tok_merge *m, size_t n, struct ak_error *error);
void ak_tok_merge_free(struct ak_tok_merge *m);

/* Appends a node to the word. */
static inline void ak_tok_merge_add(struct ak_tok_merge *m, uint32_t begin, uint32_t bytes,
                                    int32_t id)
{
    uint32_t i = m->n_nodes++;
    m->nodes[i] = (struct ak_tok_node){ begin,          bytes,      id, i ? i - 1 : AK_TOK_NO_NODE,
                                        AK_TOK_NO_NODE, UINT32_MAX, -1 };
    if (i)
        m->nodes[i - 1].next = i;
}

/* Merges. The result is the list nodes[0], nodes[nodes[0].next], … */
void ak_tok_merge_run(struct ak_tok_merge *m, ak_tok_merge_fn *merge_pair, const void *context);

#endif
