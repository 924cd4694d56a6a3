/* Makes the dispatch table: has the model's commands built over the packed weights, and plans the
 * slots into arenas by liveness. */
#include "engine/dispatch/table.h"

#include <string.h>

#include "base/mem.h"

/* ---- Arena -------------------------------------------------------------- */
static bool live_together(const struct ak_op_slot *a, const struct ak_op_slot *b)
{
    return a->row_set == b->row_set && a->first_use <= b->last_use && b->first_use <= a->last_use;
}

/* The lowest offset where slot i overlaps no earlier slot that is live at the same time. */
static uint32_t lowest_offset(const struct ak_table *t, uint32_t i)
{
    const struct ak_op_slot *slot = &t->slots[i];
    uint32_t offset = 0;
    for (uint32_t j = 0; j < i;) {
        const struct ak_op_slot *other = &t->slots[j++];
        if (!other->is_part && live_together(slot, other) &&
            offset < other->offset + other->width && other->offset < offset + slot->width) {
            offset = other->offset + other->width;
            j = 0;
        }
    }
    return offset;
}

void ak_table_plan_arena(struct ak_table *t)
{
    memset(t->arena_width, 0, sizeof t->arena_width);
    for (uint32_t i = 0; i < t->n_slots; i++) {
        struct ak_op_slot *slot = &t->slots[i];
        if (slot->is_part)
            continue;
        slot->offset = lowest_offset(t, i);
        if (slot->offset + slot->width > t->arena_width[slot->row_set])
            t->arena_width[slot->row_set] = slot->offset + slot->width;
    }
    for (uint32_t i = 0; i < t->n_slots; i++)
        if (t->slots[i].is_part)
            t->slots[i].offset = t->slots[t->slots[i].whole].offset + t->slots[i].at;
}

/* ---- The packed weights, for engine/spec/build.c ------------------------------ */
static uint32_t find_vector(const void *weights, enum ak_role role, int layer)
{
    return ak_pack_find_vector(weights, role, layer);
}

static uint32_t vector_elems(const void *weights, uint32_t vector)
{
    return ((const struct ak_weights *)weights)->vectors[vector].n;
}

static uint32_t find_linear(const void *weights, enum ak_op_linear linear, int layer,
                            uint32_t *first)
{
    uint32_t n;
    ak_pack_find_linear(weights, linear, layer, first, &n);
    return n;
}

static uint32_t linear_width(const void *weights, enum ak_op_linear linear, int layer)
{
    return ak_pack_linear_width(weights, linear, layer);
}

static bool linear_part(const void *weights, uint32_t packed, uint32_t i,
                        struct ak_weight_part *out)
{
    const struct ak_pack_weight *weight = &((const struct ak_weights *)weights)->packed[packed];
    if (i >= weight->n_parts)
        return false;
    *out = (struct ak_weight_part){ .role = weight->parts[i].role,
                                    .offset = weight->parts[i].output_offset,
                                    .n = weight->parts[i].all_rows,
                                    .bias = weight->bias };
    return true;
}

static bool linear_adapter(const void *weights, enum ak_op_linear linear, int layer, uint32_t i,
                           struct ak_weight_adapter *out)
{
    const struct ak_weights *w = weights;
    uint32_t first, n;
    ak_pack_find_linear(w, linear, layer, &first, &n);
    for (uint32_t j = 0; j < w->n_adapters; j++) {
        const struct ak_pack_adapter *adapter = &w->adapters[j];
        if (adapter->packed < first || adapter->packed >= first + n || i-- > 0)
            continue;
        const struct ak_pack_part *part = &w->packed[adapter->packed].parts[adapter->part];
        *out = (struct ak_weight_adapter){ .a = adapter->a,
                                           .b = adapter->b,
                                           .rank = w->packed[adapter->b].cols,
                                           .offset = part->output_offset,
                                           .n = part->rows,
                                           .scale = adapter->scale };
        return true;
    }
    return false;
}

/* ---- Table -------------------------------------------------------------- */
ak_status ak_table_build(const struct ak_spec *spec, const struct ak_weights *weights,
                         enum ak_build_variant variant, struct ak_table *out,
                         struct ak_error *error)
{
    const struct ak_weight_map map = { .weights = weights,
                                       .types = weights->types != NULL,
                                       .positions = weights->positions != NULL,
                                       .find_vector = find_vector,
                                       .vector_elems = vector_elems,
                                       .find_linear = find_linear,
                                       .linear_width = linear_width,
                                       .linear_part = linear_part,
                                       .linear_adapter = linear_adapter };
    struct ak_build_list list;
    *out = (struct ak_table){ 0 };
    AK_TRY(ak_build_commands(spec, &map, variant, &list, error));
    *out = (struct ak_table){ .commands = list.commands,
                              .n_commands = list.n_commands,
                              .slots = list.slots,
                              .n_slots = list.n_slots,
                              .logits = list.logits,
                              .sampled = list.sampled };
    ak_table_plan_arena(out);
    ak_status status = ak_table_dump(out, weights, error);
    if (status != AKUNU_OK)
        ak_table_clear(out);
    return status;
}

void ak_table_clear(struct ak_table *t)
{
    ak_free(t->commands);
    ak_free(t->slots);
    ak_free(t->dump);
    *t = (struct ak_table){ 0 };
}

uint64_t ak_table_bytes(const struct ak_table *t)
{
    return (uint64_t)t->n_commands * sizeof *t->commands + (uint64_t)t->n_slots * sizeof *t->slots;
}
