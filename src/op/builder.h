/* What an architecture's emission calls: one call an operation, in order.
 *
 * Values are activation slots. The first failure sticks: later calls do nothing,
 * and the build ends with its message, so emission needs no checks. */
#ifndef AK_OP_BUILDER_H
#define AK_OP_BUILDER_H

#include "op/op.h"

struct ak_builder;
typedef uint32_t ak_build_value;

/* [tokens, width]; adds the rows of type 0 and of the positions where the model has tables of them.
 */
ak_build_value ak_build_embed(struct ak_builder *b, float scale);

/* RMS norm with the vector (role, layer); the shape stays. */
ak_build_value ak_build_norm(struct ak_builder *b, ak_build_value x, enum ak_role weight, int layer,
                             float eps);

/* LayerNorm with the vectors (weight, layer) and, where the model has it, (bias, layer). */
ak_build_value ak_build_layer_norm(struct ak_builder *b, ak_build_value x, enum ak_role weight,
                                   enum ak_role bias, int layer, float eps);

/* Whether the layer has the vector. */
bool ak_build_has_vector(const struct ak_builder *b, enum ak_role vector, int layer);

/* RMS norm over the whole of one part of a linear operator's output, in place. */
void ak_build_norm_part(struct ak_builder *b, ak_build_value x, enum ak_op_linear linear,
                        uint32_t part, enum ak_role weight, int layer, float eps);

/* All parts that the model has of the operator side by side, each from a multiple of 16 elements
 * on; biases where the model has them. */
ak_build_value ak_build_linear(struct ak_builder *b, ak_build_value x, enum ak_op_linear linear,
                               int layer);

/* Element where part `part` of a linear operator's output starts. */
uint32_t ak_build_part_offset(const struct ak_builder *b, enum ak_op_linear linear, int layer,
                              uint32_t part);

/* Norms of each head (norm_heads: where the layer has the vectors), rotation and cache
 * write, in place; params->q_at, k_at, v_at, q_step and kv_layer are filled in. */
void ak_build_qkv(struct ak_builder *b, ak_build_value qkv, int layer, bool norm_heads,
                  struct ak_op_qkv_params params);

/* [tokens, n_heads · head_dim]; params.q_at, q_step, gated and kv_layer are filled in. With the
 * layer's sinks where it has them. */
ak_build_value ak_build_attention(struct ak_builder *b, ak_build_value qkv, int layer,
                                  struct ak_op_attention_params params);

/* [tokens, width] of what CONV_IN made: gated, convolved over `taps` tokens, gated. */
ak_build_value ak_build_short_conv(struct ak_builder *b, ak_build_value in, int layer,
                                   uint32_t taps);

/* The gated delta rule: q, k and v of what DELTA_IN made, convolved; what its heads give,
 * by what DELTA_GATES made; these normed and gated by z of what DELTA_IN made. */
ak_build_value ak_build_conv(struct ak_builder *b, ak_build_value in, int layer);
ak_build_value ak_build_delta(struct ak_builder *b, ak_build_value qkv, ak_build_value gates,
                              int layer);
ak_build_value ak_build_norm_gated(struct ak_builder *b, ak_build_value heads, ak_build_value in,
                                   int layer, float eps);

/* [rows, n] from the two parts of `linear`'s output. */
ak_build_value ak_build_gated(struct ak_builder *b, ak_build_value gate_up,
                              enum ak_op_linear linear, int layer, enum ak_op_activation activation,
                              uint32_t n);

/* The experts of each token from the router's logits: [tokens, 2 · n_used]. */
ak_build_value ak_build_route(struct ak_builder *b, ak_build_value logits, int layer,
                              struct ak_op_route_params params);

/* [tokens · n_used, width]: rows for the experts' operators, expert by expert. Linear
 * operators follow, and nothing else reads it. */
ak_build_value ak_build_gather(struct ak_builder *b, ak_build_value x, ak_build_value routes,
                               int layer);

/* x += the experts' rows, weighted */
void ak_build_combine(struct ak_builder *b, ak_build_value x, ak_build_value rows,
                      ak_build_value routes, int layer);

/* x += y · sigmoid(the vector (role, layer) · h) */
void ak_build_add_gated(struct ak_builder *b, ak_build_value x, ak_build_value y, ak_build_value h,
                        enum ak_role vector, int layer);

/* [tokens, n]; a GELU. */
ak_build_value ak_build_activate(struct ak_builder *b, ak_build_value x, int layer,
                                 enum ak_op_activation activation, uint32_t n);

/* x += y · scale */
void ak_build_add(struct ak_builder *b, ak_build_value x, ak_build_value y, float scale);

/* The rows whose result is wanted. */
ak_build_value ak_build_select(struct ak_builder *b, ak_build_value x);

/* Ends the table: x is what a pass gives. */
void ak_build_hidden(struct ak_builder *b, ak_build_value x);

/* The same with logits = OUTPUT · x / divisor, then a soft cap unless it is 0; in a
 * table of hidden states it is x. */
void ak_build_logits(struct ak_builder *b, ak_build_value x, float divisor, float cap);

#endif
