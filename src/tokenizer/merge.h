/* Joins neighbors of a sequence, the best pair first, until no pair joins: the
 * heart of both kinds of byte-pair encoding. O(n log n) for any text. */
#ifndef AK_TEXT_MERGE_H
#define AK_TEXT_MERGE_H

#include "base/error.h"

#define AK_NO_NODE UINT32_MAX

/* A run of the text, in a list. */
struct ak_node {
    uint32_t begin, bytes; /* in the text */
    int32_t id;            /* the token it is so far, -1 where it is none */
    uint32_t prev, next;   /* AK_NO_NODE at the ends */
    uint32_t priority;     /* of joining with `next`, UINT32_MAX: it does not */
    int32_t joined;        /* the token that would come of it */
};

/* Tells what joining two neighbors gives: false for nothing. A lower priority,
 * below UINT32_MAX, goes first; of equals the leftmost. */
typedef bool ak_join_fn(const void *context, const struct ak_node *left,
                        const struct ak_node *right, uint32_t *priority, int32_t *joined);

/* Reused for word after word; all zero at first. */
struct ak_merge {
    struct ak_node *nodes; /* the first node of a word is always nodes[0] */
    uint32_t n_nodes;
    uint64_t *heap; /* priority << 32 | node */
    size_t n_heap;
    size_t capacity; /* in nodes; the heap has twice that */
};

/* Forgets the last word and makes room for one of n < 2^31 nodes. */
ak_status ak_merge_begin(struct ak_merge *m, size_t n, struct ak_error *error);
void ak_merge_free(struct ak_merge *m);

/* Puts a node at the end of the word. */
static inline void ak_merge_add(struct ak_merge *m, uint32_t begin, uint32_t bytes, int32_t id)
{
    uint32_t i = m->n_nodes++;
    m->nodes[i] =
        (struct ak_node){ begin, bytes, id, i ? i - 1 : AK_NO_NODE, AK_NO_NODE, UINT32_MAX, -1 };
    if (i)
        m->nodes[i - 1].next = i;
}

/* Joins what joins. Then walk nodes[0], nodes[nodes[0].next], … */
void ak_merge_run(struct ak_merge *m, ak_join_fn *join, const void *context);

#endif
