/* The dispatch table: the flat command list of one pass, with its activation slots planned by
 * liveness into one arena per row set. engine/session/ builds it once per variant at load.
 * engine/cpu/ turns it into steps, opencl/ into launches, and engine/backends/ splits it between
 * two backends. api/ reports its size; bench/ makes tables of its own. */
#ifndef AK_ENGINE_DISPATCH_TABLE_H
#define AK_ENGINE_DISPATCH_TABLE_H

#include "engine/pack/pack.h"

struct ak_table {
    struct ak_command *commands;
    uint32_t n_commands;
    struct ak_op_slot *slots;
    uint32_t n_slots;
    uint32_t arena_width[AK_OP_ROWS_COUNT]; /* floats of a row, per row set */
    uint32_t logits;                        /* slot of the logits, or of the hidden states */
    uint32_t sampled; /* slot of the sampled tokens; AK_OP_NONE in the other variants */
    char *dump;
};

/* Builds the architecture's commands over the packed weights, plans the arenas and dumps the table.
 */
ak_status ak_table_build(const struct ak_spec *spec, const struct ak_weights *weights,
                         enum ak_build_variant variant, struct ak_table *out,
                         struct ak_error *error);
void ak_table_clear(struct ak_table *t);
/* Plans each slot's offset in its row set's arena, by first and last use. */
void ak_table_plan_arena(struct ak_table *t);
uint64_t ak_table_bytes(const struct ak_table *t);

/* Splits a table in two before `split_layer` (1 … layers − 1), for composite backends. `head` ends
 * with the hidden states of all rows, the one value that crosses the split. `tail` begins with an
 * EMBED that reads it from the batch (`hidden`); its KV layers and state offsets are counted from
 * its own first layer. AKUNU_ERROR_UNSUPPORTED: more than one value crosses the split. */
ak_status ak_table_split(const struct ak_table *table, const struct ak_spec *spec,
                         uint32_t split_layer, struct ak_table *head, struct ak_table *tail,
                         struct ak_error *error);

/* Fills t->dump: a line per slot and per command. */
ak_status ak_table_dump(struct ak_table *t, const struct ak_weights *weights,
                        struct ak_error *error);

/* ---- Tokens (tokens.c) -------------------------------------------------- */
/* What the host computes from the tokens of a pass, the same for every backend: embedding rows for
 * EMBED and rotation angles for QKV. */
/* A token's row of an EMBED command, config.width floats. `type`: its token type, 0 or 1. `scratch`
 * holds config.width floats.
 * dequantize[type] reads stored rows; NULL: ak_quant_info(), same bits. */
void ak_table_embed_token(const struct ak_weights *weights, const struct ak_op_embed_params *params,
                          ak_quant_dequantize_fn *const *dequantize, int32_t token,
                          uint32_t position, uint32_t type, float *scratch, float *out);

/* Adds the row of an ADD_POSITION command to `out`; `scratch` and `dequantize` as above. */
void ak_table_add_position(const struct ak_weights *weights,
                           ak_quant_dequantize_fn *const *dequantize, uint32_t position,
                           float *scratch, float *out);

/* The frequencies of each rotation table for a session's context, [rope_dims/2] each; `spec` owns
 * them. */
void ak_table_rope_frequencies(const struct ak_spec *spec, uint32_t context,
                               const float *out[AK_SPEC_ROPE_TABLES_MAX]);

/* Cosines and sines of a position in one of these tables, [rope_dims/2] each. */
void ak_table_rope_angles(const struct ak_spec *spec,
                          const float *const frequencies[AK_SPEC_ROPE_TABLES_MAX], uint32_t table,
                          uint32_t position, float *cosines, float *sines);

#endif
