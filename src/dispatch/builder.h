/* The builder behind op/builder.h; private to this folder. */
#ifndef AK_DISPATCH_BUILDER_H
#define AK_DISPATCH_BUILDER_H

#include "dispatch/table.h"

struct ak_builder {
    const struct ak_spec *spec;
    const struct ak_weights *weights;
    struct ak_table *table;
    uint32_t command_capacity, slot_capacity;
    enum ak_table_variant variant;
    ak_status status; /* of the first failure */
    struct ak_error *error;
};

/* Gives every slot its place in its row set's arena, by first and last use. */
void ak_table_plan_arena(struct ak_table *t);

#endif
