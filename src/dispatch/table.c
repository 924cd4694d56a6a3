#include <string.h>

#include "dispatch/builder.h"

static bool live_together(const struct ak_table_slot *a, const struct ak_table_slot *b)
{
    return a->row_set == b->row_set && a->first_use <= b->last_use && b->first_use <= a->last_use;
}

/* The lowest offset where slot i fits beside the earlier slots that it lives with. */
static uint32_t lowest_offset(const struct ak_table *t, uint32_t i)
{
    const struct ak_table_slot *slot = &t->slots[i];
    uint32_t offset = 0;
    for (uint32_t j = 0; j < i;) {
        const struct ak_table_slot *other = &t->slots[j++];
        if (live_together(slot, other) && offset < other->offset + other->width &&
            other->offset < offset + slot->width) {
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
        struct ak_table_slot *slot = &t->slots[i];
        slot->offset = lowest_offset(t, i);
        if (slot->offset + slot->width > t->arena_width[slot->row_set])
            t->arena_width[slot->row_set] = slot->offset + slot->width;
    }
}
