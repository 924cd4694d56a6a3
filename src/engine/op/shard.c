/* Where the shards of ranks begin. */
#include "engine/op/shard.h"

enum { TILE_ROWS = 16 };

struct ak_op_shard ak_op_shard_of(uint32_t n, uint32_t n_ranks)
{
    uint32_t unit = n / TILE_ROWS >= n_ranks ? TILE_ROWS : 1;
    return (struct ak_op_shard){ .n = n, .unit = unit };
}

/* Chunk i of n: where it begins among `count`. */
static uint32_t chunk_begin(uint32_t count, uint32_t n, uint32_t i)
{
    return (uint32_t)((uint64_t)count * i / n);
}

/* Heads of the groups before, then those of the ranks that share the rank's group. */
static uint32_t first_head(const struct ak_op_shard *s, uint32_t n_ranks, uint32_t rank)
{
    uint32_t per_group = s->n / s->unit / s->groups;
    if (n_ranks <= s->groups)
        return chunk_begin(s->groups, n_ranks, rank) * per_group;
    uint32_t group = chunk_begin(s->groups, n_ranks, rank), first = rank, end = rank;
    while (first > 0 && chunk_begin(s->groups, n_ranks, first - 1) == group)
        first--;
    while (end < n_ranks && chunk_begin(s->groups, n_ranks, end) == group)
        end++;
    return group * per_group +
           (end > first ? chunk_begin(per_group, end - first, rank - first) : 0);
}

uint32_t ak_op_shard_begin(const struct ak_op_shard *s, uint32_t n_ranks, uint32_t rank)
{
    uint32_t units = (s->n + s->unit - 1) / s->unit;
    uint64_t begin =
        (uint64_t)(s->groups ? first_head(s, n_ranks, rank) : chunk_begin(units, n_ranks, rank)) *
        s->unit;
    return begin < s->n ? (uint32_t)begin : s->n;
}

void ak_op_shard_groups(const struct ak_op_shard *s, uint32_t n_ranks, uint32_t rank,
                        uint32_t *first, uint32_t *n)
{
    *first = chunk_begin(s->groups, n_ranks, rank);
    *n = n_ranks <= s->groups ? chunk_begin(s->groups, n_ranks, rank + 1) - *first : 1;
}
