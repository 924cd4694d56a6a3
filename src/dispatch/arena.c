#include <string.h>

#include "dispatch/builder.h"

static bool live_together(const struct ak_slot *a, const struct ak_slot *b)
{
    return a->row_set == b->row_set && a->first_use <= b->last_use && b->first_use <= a->last_use;
}

/* The lowest place where slot i fits beside the earlier slots that it lives with. */
static uint32_t lowest_place(const struct ak_table *t, uint32_t i)
{
    const struct ak_slot *slot = &t->slots[i];
    uint32_t place = 0;
    for (uint32_t j = 0; j < i;) {
        const struct ak_slot *other = &t->slots[j++];
        if (live_together(slot, other) && place < other->place + other->width &&
            other->place < place + slot->width) {
            place = other->place + other->width;
            j = 0;
        }
    }
    return place;
}

void ak_table_plan_arena(struct ak_table *t)
{
    memset(t->arena_width, 0, sizeof t->arena_width);
    for (uint32_t i = 0; i < t->n_slots; i++) {
        struct ak_slot *slot = &t->slots[i];
        slot->place = lowest_place(t, i);
        if (slot->place + slot->width > t->arena_width[slot->row_set])
            t->arena_width[slot->row_set] = slot->place + slot->width;
    }
}
