/* What the host makes of a pass's tokens, alike for every backend: the rows that EMBED
 * puts into the table, and the angles by which QKV rotates. */
#ifndef AK_DISPATCH_TOKENS_H
#define AK_DISPATCH_TOKENS_H

#include "dispatch/table.h"

/* A token's row of an EMBED command, config.width floats; `scratch` has room for as many.
 * dequantize[type] opens stored rows; NULL: as ak_quant_info() says, to the same bits. */
void ak_table_embed_token(const struct ak_weights *weights, const struct ak_op_embed_params *params,
                          ak_quant_dequantize_fn *const *dequantize, int32_t token,
                          uint32_t position, float *scratch, float *out);

/* The frequencies of each rotation table in a session with this much context:
 * [rope_dims/2] each, of the spec. */
void ak_table_rope_frequencies(const struct ak_spec *spec, uint32_t context,
                               const float *out[AK_SPEC_ROPE_TABLES_MAX]);

/* Cosines and sines of a position in one of these tables, rope_dims/2 each. */
void ak_table_rope_angles(const struct ak_spec *spec,
                          const float *const frequencies[AK_SPEC_ROPE_TABLES_MAX], uint32_t table,
                          uint32_t position, float *cosines, float *sines);

#endif
