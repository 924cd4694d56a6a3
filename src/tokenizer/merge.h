/* Joins neighbors of a sequence, the best pair first, until no pair joins: the
 * heart of both kinds of byte-pair encoding. O(n log n) for any text. */
#ifndef AK_TOKENIZER_MERGE_H
#define AK_TOKENIZER_MERGE_H

#include "base/error.h"

#define AK_TOK_NO_NODE UINT32_MAX

/* A run of the text, in a list. */
struct ak_tok_node {
    uint32_t begin, bytes; /* in the text */
    int32_t id;            /* the token it is so far, -1 where it is none */
    uint32_t prev, next;   /* AK_TOK_NO_NODE at the ends */
    uint32_t priority;     /* of joining with `next`, UINT32_MAX: it does not */
    int32_t merged;        /* the token that would come of it */
};

/* Tells what joining two neighbors gives: false for nothing. A lower priority,
 * below UINT32_MAX, goes first; of equals the leftmost. */
typedef bool ak_tok_merge_fn(const void *context, const struct ak_tok_node *left,
                             const struct ak_tok_node *right, uint32_t *priority, int32_t *merged);

/* Reused for word after word; all zero at first. */
struct ak_tok_merge {
    struct ak_tok_node *nodes; /* the first node of a word is always nodes[0] */
    uint32_t n_nodes;
    uint64_t *heap; /* priority << 32 | node */
    size_t n_heap;
    size_t capacity; /* in nodes; the heap has twice that */
};

/* Forgets the last word and makes room for one of n < 2^31 nodes. */
ak_status ak_tok_merge_begin(struct ak_tok_merge *m, size_t n, struct ak_error *error);
void ak_tok_merge_free(struct ak_tok_merge *m);

/* Puts a node at the end of the word. */
static inline void ak_tok_merge_add(struct ak_tok_merge *m, uint32_t begin, uint32_t bytes,
                                    int32_t id)
{
    uint32_t i = m->n_nodes++;
    m->nodes[i] = (struct ak_tok_node){ begin,          bytes,      id, i ? i - 1 : AK_TOK_NO_NODE,
                                        AK_TOK_NO_NODE, UINT32_MAX, -1 };
    if (i)
        m->nodes[i - 1].next = i;
}

/* Joins what joins. Then walk nodes[0], nodes[nodes[0].next], … */
void ak_tok_merge_run(struct ak_tok_merge *m, ak_tok_merge_fn *merge_pair, const void *context);

#endif
