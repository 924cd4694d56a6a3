/* Shards: how ranks divide the elements of an activation, and so the rows of the weight that makes
 * them. Rank r of n has the elements from ak_op_shard_begin(r) to ak_op_shard_begin(r + 1).
 * engine/spec/ decides what is divided, engine/pack/ narrows weights to a rank's rows, and
 * engine/cpu/ exchanges shards. */
#ifndef AK_ENGINE_OP_SHARD_H
#define AK_ENGINE_OP_SHARD_H

#include <stdint.h>

struct ak_op_shard {
    uint32_t n;      /* elements of all ranks */
    uint32_t unit;   /* elements that stay together: those of a head, or a tile's rows */
    uint32_t groups; /* of heads: the KV heads, which share the units evenly; 0: no heads */
};

/* Elements in units of 16, the rows of a tile, if there are enough of them. */
struct ak_op_shard ak_op_shard_of(uint32_t n, uint32_t n_ranks);

/* First element of a rank's shard; of rank n_ranks: n. A rank has the heads of whole groups or,
 * with more ranks than groups, some heads of one. n_ranks is at most the number of heads. */
uint32_t ak_op_shard_begin(const struct ak_op_shard *s, uint32_t n_ranks, uint32_t rank);

/* The groups [*first, *first + *n) whose heads a rank has; ranks may share one. */
void ak_op_shard_groups(const struct ak_op_shard *s, uint32_t n_ranks, uint32_t rank,
                        uint32_t *first, uint32_t *n);

#endif
