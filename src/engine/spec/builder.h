/* The builder behind build.h, for the files that implement it: build.c, and build_ranks.c for
 * several ranks. */
#ifndef AK_ENGINE_SPEC_BUILDER_H
#define AK_ENGINE_SPEC_BUILDER_H

#include "engine/spec/build.h"

enum { AK_BUILDER_SLOT_ALIGN = 16 /* floats */ };

struct ak_builder {
    const struct ak_spec *spec;
    const struct ak_weight_map *map;
    struct ak_build_list *list;
    uint32_t command_capacity, slot_capacity;
    enum ak_build_variant variant;
    ak_status status; /* of the first failure */
    struct ak_error *error;
};

/* A new slot; its width is rounded up to AK_BUILDER_SLOT_ALIGN. Returns 0 after a failure. */
ak_build_value ak_builder_add_slot(struct ak_builder *b, uint32_t width,
                                   enum ak_op_row_set row_set);
enum ak_op_row_set ak_builder_row_set(const struct ak_builder *b, ak_build_value v);
/* A command without weights and vectors. */
struct ak_command ak_builder_command(enum ak_op op, int layer, ak_build_value in,
                                     ak_build_value out);
/* Adds the command to the list and returns its output. */
ak_build_value ak_builder_add(struct ak_builder *b, struct ak_command command);

/* ---- Ranks: build_ranks.c ----------------------------------------------- */
/* The activations that the rank with the layers before sends. */
ak_build_value ak_builder_receive(struct ak_builder *b);
/* Returns the whole input of an operator if x is this rank's shard of it, otherwise x. */
ak_build_value ak_builder_gather_input(struct ak_builder *b, ak_build_value x,
                                       enum ak_op_linear linear, int layer);
/* Returns the whole output of an operator, part by part, if all ranks need it, otherwise x. */
ak_build_value ak_builder_gather_output(struct ak_builder *b, ak_build_value x,
                                        enum ak_op_linear linear, int layer);
/* Returns where this rank adds up the *n elements that it has of the experts' rows: x, or a slot
 * whose sums ak_builder_gather_sums() then gathers into x on all ranks. */
ak_build_value ak_builder_place_sums(struct ak_builder *b, ak_build_value x, uint32_t *n);
void ak_builder_gather_sums(struct ak_builder *b, ak_build_value sums, ak_build_value x, int layer);
/* Returns rank 0's slot for results of n elements, of which x is this rank's shard. If ranks have
 * layers of their own, the last rank has all elements, and the others have none. */
ak_build_value ak_builder_collect(struct ak_builder *b, ak_build_value x, uint32_t n);

#endif
