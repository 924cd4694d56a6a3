/* What a list has in addition if several ranks share the model: exchanges of shards, and of the
 * activations between ranks that have different layers. Without ranks, values stay as they are. */
#include "engine/spec/builder.h"

#include "base/mem.h"
#include "engine/spec/arch.h"

/* ---- Shards of rows ----------------------------------------------------- */
/* Has the shard x computed where it belongs in the rows of `whole`, unless that is within an
 * aligned group of elements: products write whole groups. */
static void place(struct ak_builder *b, ak_build_value x, ak_build_value whole, uint32_t at)
{
    struct ak_op_slot *slots = b->list->slots;
    if (b->status != AKUNU_OK || at % AK_BUILDER_SLOT_ALIGN != 0 || slots[x].is_part)
        return;
    slots[x].is_part = true;
    slots[x].whole = whole;
    slots[x].at = at;
    if (slots[whole].first_use > slots[x].first_use)
        slots[whole].first_use = slots[x].first_use;
}

/* Where this rank's shard begins. */
static uint32_t own_begin(const struct ak_builder *b, const struct ak_op_shard *shard)
{
    return ak_op_shard_begin(shard, b->spec->n_ranks, b->spec->rank);
}

/* x[to …] = the shards of all ranks of in[at …] */
static void add_all_gather(struct ak_builder *b, ak_build_value in, uint32_t at,
                           struct ak_op_shard shard, ak_build_value out, uint32_t to, int layer)
{
    struct ak_command c = ak_builder_command(AK_OP_ALL_GATHER, layer, in, out);
    c.params.all_gather = (struct ak_op_all_gather_params){ .shard = shard, .at = at, .to = to };
    ak_builder_add(b, c);
}

ak_build_value ak_builder_gather_input(struct ak_builder *b, ak_build_value x,
                                       enum ak_op_linear linear, int layer)
{
    struct ak_op_shard shard;
    const struct ak_arch_rule *rule =
        ak_arch_find_rule(b->spec->arch, ak_op_linear_info(linear)->parts[0].weight);
    if (!rule || !ak_spec_shard(b->spec, rule->cols, &shard))
        return x;
    ak_build_value out = ak_builder_add_slot(b, shard.n, ak_builder_row_set(b, x));
    place(b, x, out, own_begin(b, &shard));
    add_all_gather(b, x, 0, shard, out, 0, layer);
    return out;
}

ak_build_value ak_builder_gather_output(struct ak_builder *b, ak_build_value x,
                                        enum ak_op_linear linear, int layer)
{
    const struct ak_weight_map *map = b->map;
    uint32_t first, n = map->find_linear(map->weights, linear, layer, &first), width = 0, to = 0,
                    n_parts = 0;
    struct ak_weight_part part;
    if (ak_spec_shards(b->spec, linear) != AK_OP_SHARDS_GATHERED)
        return x;
    for (uint32_t i = first; i < first + n; i++)
        for (uint32_t j = 0; map->linear_part(map->weights, i, j, &part); j++, n_parts++)
            width += (uint32_t)ak_round_up(part.n, AK_BUILDER_SLOT_ALIGN);
    ak_build_value out = ak_builder_add_slot(b, width, ak_builder_row_set(b, x));
    for (uint32_t i = first; i < first + n; i++)
        for (uint32_t j = 0; map->linear_part(map->weights, i, j, &part); j++) {
            struct ak_op_shard shard = ak_spec_shard_of(b->spec, linear, part.n);
            if (n_parts == 1)
                place(b, x, out, own_begin(b, &shard));
            add_all_gather(b, x, part.offset, shard, out, to, layer);
            to += (uint32_t)ak_round_up(part.n, AK_BUILDER_SLOT_ALIGN);
        }
    return out;
}

static struct ak_op_shard shard_of_sums(const struct ak_builder *b)
{
    return ak_spec_shard_of(b->spec, AK_OP_LINEAR_EXPERTS_DOWN, b->spec->config.width);
}

ak_build_value ak_builder_place_sums(struct ak_builder *b, ak_build_value x, uint32_t *n)
{
    struct ak_op_shard shard = shard_of_sums(b);
    *n = b->spec->config.width;
    if (!ak_spec_has_shards(b->spec))
        return x;
    *n = ak_op_shard_begin(&shard, b->spec->n_ranks, b->spec->rank + 1) - own_begin(b, &shard);
    ak_build_value sums = ak_builder_add_slot(b, *n, ak_builder_row_set(b, x));
    place(b, sums, x, own_begin(b, &shard));
    return sums;
}

void ak_builder_gather_sums(struct ak_builder *b, ak_build_value sums, ak_build_value x, int layer)
{
    if (ak_spec_has_shards(b->spec))
        add_all_gather(b, sums, 0, shard_of_sums(b), x, 0, layer);
}

/* ---- Ranks with layers of their own ------------------------------------- */
ak_build_value ak_builder_receive(struct ak_builder *b)
{
    ak_build_value out = ak_builder_add_slot(b, b->spec->config.width, AK_OP_ROWS_TOKENS);
    struct ak_command c = ak_builder_command(AK_OP_RECEIVE, AK_ROLE_NO_LAYER, AK_OP_NONE, out);
    c.params.receive.from = b->spec->rank - 1;
    return ak_builder_add(b, c);
}

void ak_build_send(struct ak_builder *b, ak_build_value x)
{
    const struct ak_spec_descriptor *d = &b->spec->descriptor;
    struct ak_command c = ak_builder_command(AK_OP_SEND, AK_ROLE_NO_LAYER, x, x);
    c.params.send.to = b->spec->rank + 1;
    ak_builder_add(b, c);
    if (d->encoder)
        ak_build_hidden(b, x);
    else
        ak_build_logits(b, x, d->logit_divisor, d->logit_cap);
}

/* ---- Results ------------------------------------------------------------ */
ak_build_value ak_builder_collect(struct ak_builder *b, ak_build_value x, uint32_t n)
{
    bool has_shards = ak_spec_has_shards(b->spec);
    if (!ak_spec_is_shared(b->spec))
        return x;
    if (!ak_spec_has_output(b->spec))
        x = ak_builder_add_slot(b, b->spec->rank == 0 ? n : 1, AK_OP_ROWS_LOGITS);
    ak_build_value all =
        has_shards && b->spec->rank == 0 ? ak_builder_add_slot(b, n, AK_OP_ROWS_LOGITS) : x;
    struct ak_command c = ak_builder_command(AK_OP_COLLECT, AK_ROLE_NO_LAYER, x, all);
    c.params.collect.shard = has_shards ? ak_op_shard_of(n, b->spec->n_ranks) :
                                          (struct ak_op_shard){ .n = n, .unit = n };
    if (all != x)
        place(b, x, all, 0);
    ak_builder_add(b, c);
    return all;
}
