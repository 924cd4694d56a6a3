/* The dispatch table of a model: its commands and the activation slots, planned by liveness into
 * one arena. */
#ifndef AK_DISPATCH_TABLE_H
#define AK_DISPATCH_TABLE_H

#include "pack/pack.h"

struct ak_table {
    struct ak_command *commands;
    uint32_t n_commands;
    struct ak_op_slot *slots;
    uint32_t n_slots;
    uint32_t arena_width[AK_OP_ROWS_COUNT]; /* elements of a row of each row set's arena */
    uint32_t logits;                        /* slot of the logits, or of the hidden states */
    uint32_t sampled; /* slot of the sampled tokens, AK_OP_NONE in the other variants */
    char *dump;
};

/* Emits the family's commands, plans the arenas and dumps the table. */
ak_status ak_table_build(const struct ak_spec *spec, const struct ak_weights *weights,
                         enum ak_build_variant variant, struct ak_table *out,
                         struct ak_error *error);
void ak_table_clear(struct ak_table *t);
/* Gives every slot its offset in its row set's arena, by first and last use. */
void ak_table_plan_arena(struct ak_table *t);
uint64_t ak_table_bytes(const struct ak_table *t);

/* Splits a table before `split_layer`, 1 to one less than the layers, in two, for backends that
 * share a model. `head` ends in the one value that goes from layer to layer, as hidden states of
 * all rows. `tail` begins with an EMBED that takes it from the batch (its `hidden`); its layers of
 * the KV cache and places in a sequence's state are counted from its own first ones.
 * AKUNU_ERROR_UNSUPPORTED: more than one value crosses the cut. */
ak_status ak_table_split(const struct ak_table *table, const struct ak_spec *spec,
                         uint32_t split_layer, struct ak_table *head, struct ak_table *tail,
                         struct ak_error *error);

/* Fills t->dump: a line a slot and a command. */
ak_status ak_table_dump(struct ak_table *t, const struct ak_weights *weights,
                        struct ak_error *error);

/* ---- Tokens (tokens.c) -------------------------------------------------- */
/* What the host computes from the tokens of a pass, the same for every backend: embedding rows for
 * EMBED and rotation angles for QKV. */
/* A token's row of an EMBED command, config.width floats; `scratch` has room for as many.
 * dequantize[type] opens stored rows; NULL: as ak_quant_info() says, to the same bits. */
void ak_table_embed_token(const struct ak_weights *weights, const struct ak_op_embed_params *params,
                          ak_quant_dequantize_fn *const *dequantize, int32_t token,
                          uint32_t position, float *scratch, float *out);

/* The frequencies of each rotation table in a session with this much context: [rope_dims/2] each,
 * of the spec. */
void ak_table_rope_frequencies(const struct ak_spec *spec, uint32_t context,
                               const float *out[AK_SPEC_ROPE_TABLES_MAX]);

/* Cosines and sines of a position in one of these tables, rope_dims/2 each. */
void ak_table_rope_angles(const struct ak_spec *spec,
                          const float *const frequencies[AK_SPEC_ROPE_TABLES_MAX], uint32_t table,
                          uint32_t position, float *cosines, float *sines);

#endif
