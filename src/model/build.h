/* Emission: an architecture calls one function per operation, in order, and the builder makes
 * the flat command list. dispatch/table.c starts it, then plans the memory of the slots.
 *
 * Values are activation slots. The first failure is kept: later calls do nothing and the build
 * ends with its message, so emission needs no checks. */
#ifndef AK_MODEL_BUILD_H
#define AK_MODEL_BUILD_H

#include "base/error.h"
#include "op/op.h"

struct ak_spec;
struct ak_builder;
typedef uint32_t ak_build_value;

/* ---- Building a list ---------------------------------------------------- */
/* How the packed weights of a model are reached: dispatch/table.c fills it in, because packing
 * comes after this layer. */
struct ak_weight_part {
    enum ak_role role;
    uint32_t offset; /* element of the operator's output where the part starts */
    uint32_t bias;   /* vector slot of the packed weight's bias; AK_OP_NONE: none */
};
struct ak_weight_map {
    const void *weights;   /* passed to each function */
    bool types, positions; /* the model has these embedding tables */
    /* vector slot of (role, layer); AK_OP_NONE: the model has none */
    uint32_t (*find_vector)(const void *weights, enum ak_role role, int layer);
    uint32_t (*vector_elems)(const void *weights, uint32_t vector);
    /* the packed weights of an operator: returns how many from *first on */
    uint32_t (*find_linear)(const void *weights, enum ak_op_linear linear, int layer,
                            uint32_t *first);
    /* elements of the operator's output */
    uint32_t (*linear_width)(const void *weights, enum ak_op_linear linear, int layer);
    /* part `i` of a packed weight: false past the last one */
    bool (*linear_part)(const void *weights, uint32_t packed, uint32_t i,
                        struct ak_weight_part *out);
};

/* What a pass gives: logits, tokens sampled from them, or the hidden states that logits would
 * be made of. An encoder's list always ends in hidden states. */
enum ak_build_variant { AK_BUILD_LOGITS, AK_BUILD_SAMPLED, AK_BUILD_HIDDEN };

struct ak_build_list {
    struct ak_command *commands;
    uint32_t n_commands;
    struct ak_op_slot *slots; /* offsets are 0: not planned yet */
    uint32_t n_slots;
    uint32_t logits;  /* slot of the logits, or of the hidden states */
    uint32_t sampled; /* slot of the sampled tokens; AK_OP_NONE unless AK_BUILD_SAMPLED */
};

/* Emits the family's commands. The caller frees both arrays; after a failure they are NULL. */
ak_status ak_build_commands(const struct ak_spec *spec, const struct ak_weight_map *weights,
                            enum ak_build_variant variant, struct ak_build_list *out,
                            struct ak_error *error);

/* ---- Emission ----------------------------------------------------------- */

/* [tokens, width]; adds the rows of type 0 and of the positions where the model has tables of them.
 */
ak_build_value ak_build_embed(struct ak_builder *b, float scale);

/* RMS norm with the vector (weight, layer). The result has the shape of x. */
ak_build_value ak_build_norm(struct ak_builder *b, ak_build_value x, enum ak_role weight, int layer,
                             float eps);

/* LayerNorm with the vector (weight, layer) and, if the model has it, (bias, layer). */
ak_build_value ak_build_layer_norm(struct ak_builder *b, ak_build_value x, enum ak_role weight,
                                   enum ak_role bias, int layer, float eps);

/* Whether the layer has the vector. */
bool ak_build_has_vector(const struct ak_builder *b, enum ak_role vector, int layer);

/* RMS norm over one whole part of a linear operator's output, in place. */
void ak_build_norm_part(struct ak_builder *b, ak_build_value x, enum ak_op_linear linear,
                        uint32_t part, enum ak_role weight, int layer, float eps);

/* All parts of the operator that the model has, side by side. Each starts at a multiple of 16
 * elements. Adds the biases that the model has. */
ak_build_value ak_build_linear(struct ak_builder *b, ak_build_value x, enum ak_op_linear linear,
                               int layer);

/* Element where part `part` of a linear operator's output starts. */
uint32_t ak_build_part_offset(const struct ak_builder *b, enum ak_op_linear linear, int layer,
                              uint32_t part);

/* Norm of each head (if norm_heads, and the layer has the vectors), rotation and cache write, in
 * place. Sets q_at, k_at, v_at, q_step and kv_layer of params. */
void ak_build_qkv(struct ak_builder *b, ak_build_value qkv, int layer, bool norm_heads,
                  struct ak_op_qkv_params params);

/* [tokens, n_heads · head_dim]. Sets q_at, q_step, gated and kv_layer of params. Uses the layer's
 * attention sinks, if any. */
ak_build_value ak_build_attention(struct ak_builder *b, ak_build_value qkv, int layer,
                                  struct ak_op_attention_params params);

/* [tokens, width] from the output of CONV_IN: gated, convolved over `taps` tokens, gated. */
ak_build_value ak_build_short_conv(struct ak_builder *b, ak_build_value in, int layer,
                                   uint32_t taps);

/* The gated delta rule, in three calls. ak_build_conv: q, k and v of `in`, the output of DELTA_IN,
 * convolved. ak_build_delta: outputs of the heads; `gates` is the output of DELTA_GATES.
 * ak_build_norm_gated: these outputs, normalized and gated by z of `in`. */
ak_build_value ak_build_conv(struct ak_builder *b, ak_build_value in, int layer);
ak_build_value ak_build_delta(struct ak_builder *b, ak_build_value qkv, ak_build_value gates,
                              int layer);
ak_build_value ak_build_norm_gated(struct ak_builder *b, ak_build_value heads, ak_build_value in,
                                   int layer, float eps);

/* [rows, n] from the two parts of `linear`'s output. */
ak_build_value ak_build_gated(struct ak_builder *b, ak_build_value gate_up,
                              enum ak_op_linear linear, int layer, enum ak_op_activation activation,
                              uint32_t n);

/* [tokens, 2 · n_used]: the experts of each token, from the router's logits. */
ak_build_value ak_build_route(struct ak_builder *b, ak_build_value logits, int layer,
                              struct ak_op_route_params params);

/* [tokens · n_used, width]: the input rows of the experts, grouped by expert. Only the experts'
 * linear operators may read them. */
ak_build_value ak_build_gather(struct ak_builder *b, ak_build_value x, ak_build_value routes,
                               int layer);

/* x += the sum of the experts' rows, weighted by `routes` */
void ak_build_combine(struct ak_builder *b, ak_build_value x, ak_build_value rows,
                      ak_build_value routes, int layer);

/* x += y · sigmoid(the vector (role, layer) · h) */
void ak_build_add_gated(struct ak_builder *b, ak_build_value x, ak_build_value y, ak_build_value h,
                        enum ak_role vector, int layer);

/* [tokens, n]: the activation of each element; a GELU. */
ak_build_value ak_build_activate(struct ak_builder *b, ak_build_value x, int layer,
                                 enum ak_op_activation activation, uint32_t n);

/* x += y · scale */
void ak_build_add(struct ak_builder *b, ak_build_value x, ak_build_value y, float scale);

/* The logit rows: rows of tokens for which the pass returns a result. */
ak_build_value ak_build_select(struct ak_builder *b, ak_build_value x);

/* Ends the table: a pass returns x. */
void ak_build_hidden(struct ak_builder *b, ak_build_value x);

/* Ends the table with logits = OUTPUT · x / divisor, soft-capped unless `cap` is 0. A table of
 * hidden states returns x instead. */
void ak_build_logits(struct ak_builder *b, ak_build_value x, float divisor, float cap);

#endif
