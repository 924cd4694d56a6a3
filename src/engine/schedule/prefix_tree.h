/* Prefix cache: a radix tree over KV pages. A node is a page and the tokens whose keys and values
 * it holds, so the path to a node spells a text. A prompt with the same beginning shares the pages
 * instead of computing them.
 *
 * The tree holds a reference to each of its pages. A page that nothing else holds can be evicted.
 * Not for models with recurrent state, which pages do not have. */
#ifndef AK_ENGINE_SCHEDULE_PREFIX_TREE_H
#define AK_ENGINE_SCHEDULE_PREFIX_TREE_H

#include "engine/session/kv.h"

struct ak_sched_node;

struct ak_sched_tree {
    struct ak_session_kv *kv;
    struct ak_sched_node *roots;           /* first pages */
    struct ak_sched_node *newest, *oldest; /* all nodes by their last use */
    uint32_t n_nodes;
};

void ak_sched_tree_init(struct ak_sched_tree *t, struct ak_session_kv *kv);
void ak_sched_tree_clear(struct ak_sched_tree *t);

/* Extends a sequence that is `length` tokens long, a multiple of AK_KV_PAGE_TOKENS and the first of
 * the n tokens at `ids`, by the pages that the tree has for the next of them. Shares at most n
 * tokens in all; returns the new length. */
uint32_t ak_sched_tree_share(struct ak_sched_tree *t, int32_t sequence, const int32_t *ids,
                             uint32_t n);

/* Adds the pages of a sequence; `partial`: also the last one if it is not full. Pages whose tokens
 * the tree has already are not added. Out of memory: adds fewer. */
void ak_sched_tree_add(struct ak_sched_tree *t, int32_t sequence, bool partial);

/* Frees the page that was not used for the longest time and that no sequence holds. False: there is
 * none. */
bool ak_sched_tree_evict(struct ak_sched_tree *t);

/* Fills an empty sequence with a text that no other continues and that was not given before; false:
 * there is none of n_min tokens or more. */
bool ak_sched_tree_give(struct ak_sched_tree *t, int32_t sequence, uint32_t n_min);

/* Pages that ak_sched_tree_evict can free, one after the other. */
uint32_t ak_sched_tree_count_evictable(const struct ak_sched_tree *t);

#endif
