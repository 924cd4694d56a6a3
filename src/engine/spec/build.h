/* Builder of command lists. An architecture's emit function calls one function per operation, in
 * order, and the builder makes the flat command list of a pass. engine/dispatch/table.c starts it,
 * then plans the memory of the slots; engine/session/ names the variants to build.
 *
 * Values are activation slots. The first failure is kept: later calls do nothing and the build ends
 * with its message, so emission needs no checks. */
#ifndef AK_ENGINE_SPEC_BUILD_H
#define AK_ENGINE_SPEC_BUILD_H

#include "base/error.h"
#include "engine/op/op.h"

struct ak_spec;
struct ak_builder;
typedef uint32_t ak_build_value;

/* ---- Building a list ---------------------------------------------------- */
/* One role's part of a packed weight. */
struct ak_weight_part {
    enum ak_role role;
    uint32_t offset; /* element of the operator's output where the part starts */
    uint32_t n;      /* elements of the part, of all ranks */
    uint32_t bias;   /* vector slot of the packed weight's bias; AK_OP_NONE: none */
};

/* What an adapter adds to n elements, from `offset` on, of an operator's output:
 * scale · b · a · x, with a and b packed weights. */
struct ak_weight_adapter {
    uint32_t a, b, rank, offset, n;
    float scale;
};

/* Access to a model's packed weights. engine/dispatch/table.c fills it in, because packing comes
 * after this layer. */
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
    /* adapter `i` of an operator: false past the last one. NULL: there are none */
    bool (*linear_adapter)(const void *weights, enum ak_op_linear linear, int layer, uint32_t i,
                           struct ak_weight_adapter *out);
};

/* What a pass gives: logits, tokens sampled from them, or the hidden states before the
 * output matrix. An encoder's list always ends in hidden states. AK_BUILD_ENCODED is the list of
 * the encoder in a model that also has a decoder: hidden states, and the K and V of the decoder's
 * cross-attention. */
enum ak_build_variant { AK_BUILD_LOGITS, AK_BUILD_SAMPLED, AK_BUILD_HIDDEN, AK_BUILD_ENCODED };

struct ak_build_list {
    struct ak_command *commands;
    uint32_t n_commands;
    struct ak_op_slot *slots; /* offsets are 0: not planned yet */
    uint32_t n_slots;
    uint32_t logits;  /* slot of the logits, or of the hidden states */
    uint32_t sampled; /* slot of the sampled tokens; AK_OP_NONE unless AK_BUILD_SAMPLED */
};

/* Emits the architecture's commands. The caller frees both arrays; after a failure they are NULL.
 */
ak_status ak_build_commands(const struct ak_spec *spec, const struct ak_weight_map *weights,
                            enum ak_build_variant variant, struct ak_build_list *out,
                            struct ak_error *error);

/* ---- Emission ----------------------------------------------------------- */
/* Embedding rows, [tokens, width]. Adds row 0 of the token type table and the position rows if the
 * model has these tables. On a rank whose first layer is a later one: the rows that the rank before
 * sends. */
ak_build_value ak_build_embed(struct ak_builder *b, float scale);

/* n elements of the pass's frames, `step` after those of the position before, [tokens, n]. */
ak_build_value ak_build_frames(struct ak_builder *b, uint32_t step, uint32_t n);

/* x += the rows of the positions */
void ak_build_add_position(struct ak_builder *b, ak_build_value x);

/* The second half of each row's predecessor, or zeros, then the n elements of the row,
 * [tokens, n / 2 + n]. */
ak_build_value ak_build_previous(struct ak_builder *b, ak_build_value x, uint32_t n);

/* RMS norm with the vector (weight, layer). The shape stays. */
ak_build_value ak_build_norm(struct ak_builder *b, ak_build_value x, enum ak_role weight, int layer,
                             float eps);

/* LayerNorm with the vectors (weight, layer) and, if the model has it, (bias, layer). */
ak_build_value ak_build_layer_norm(struct ak_builder *b, ak_build_value x, enum ak_role weight,
                                   enum ak_role bias, int layer, float eps);

/* True if the layer has the vector. */
bool ak_build_has_vector(const struct ak_builder *b, enum ak_role vector, int layer);

/* RMS norm over one whole part of a linear operator's output, in place. */
void ak_build_norm_part(struct ak_builder *b, ak_build_value x, enum ak_op_linear linear,
                        uint32_t part, enum ak_role weight, int layer, float eps);

/* Output of a linear operator: all of its parts that the model has, side by side, each starting at
 * a multiple of 16 elements. Adds biases if the model has them, and what adapters add. Of several
 * ranks: the rank's heads or elements, or all of them, which it gets from the others. */
ak_build_value ak_build_linear(struct ak_builder *b, ak_build_value x, enum ak_op_linear linear,
                               int layer);

/* Element where part `part` of a linear operator's output starts. */
uint32_t ak_build_part_offset(const struct ak_builder *b, enum ak_op_linear linear, int layer,
                              uint32_t part);

/* Norms per head (if norm_heads and the layer has their vectors), rotation and KV cache write, in
 * place. `linear` made qkv; its last two parts are K and V. Fills in params.q_at, k_at, v_at,
 * q_step and kv_layer. */
void ak_build_qkv(struct ak_builder *b, ak_build_value qkv, enum ak_op_linear linear, int layer,
                  bool norm_heads, struct ak_op_qkv_params params);

/* Attention, [tokens, n_heads · head_dim], with sinks if the layer has them. The first part of
 * `linear` is q. Fills in params.q_at, q_step, gated and kv_layer. */
ak_build_value ak_build_attention(struct ak_builder *b, ak_build_value qkv,
                                  enum ak_op_linear linear, int layer,
                                  struct ak_op_attention_params params);

/* Short convolution of CONV_IN's output, [tokens, width]: gated, convolved over `taps` tokens,
 * gated. */
ak_build_value ak_build_short_conv(struct ak_builder *b, ak_build_value in, int layer,
                                   uint32_t taps);

/* Gated delta rule. conv: q, k and v of DELTA_IN's output, convolved. delta: the heads' outputs,
 * controlled by DELTA_GATES' output. norm_gated: these normed, then gated by z of DELTA_IN's
 * output. */
ak_build_value ak_build_conv(struct ak_builder *b, ak_build_value in, int layer);
ak_build_value ak_build_delta(struct ak_builder *b, ak_build_value qkv, ak_build_value gates,
                              int layer);
ak_build_value ak_build_norm_gated(struct ak_builder *b, ak_build_value heads, ak_build_value in,
                                   int layer, float eps);

/* Activation of the gate part times the up part of `linear`'s output, [rows, n]. */
ak_build_value ak_build_gated(struct ak_builder *b, ak_build_value gate_up,
                              enum ak_op_linear linear, int layer, enum ak_op_activation activation,
                              uint32_t n);

/* The experts of each token, chosen by the router's logits: [tokens, 2 · n_used]. */
ak_build_value ak_build_route(struct ak_builder *b, ak_build_value logits, int layer,
                              struct ak_op_route_params params);

/* One row per token and used expert, [tokens · n_used, width], sorted by expert. Only the experts'
 * linear operators read it. */
ak_build_value ak_build_gather(struct ak_builder *b, ak_build_value x, ak_build_value routes,
                               int layer);

/* x += weighted sum of the experts' rows */
void ak_build_combine(struct ak_builder *b, ak_build_value x, ak_build_value rows,
                      ak_build_value routes, int layer);

/* x += y · sigmoid(vector (role, layer) · h) */
void ak_build_add_gated(struct ak_builder *b, ak_build_value x, ak_build_value y, ak_build_value h,
                        enum ak_role vector, int layer);

/* x = GELU of x, [tokens, n], in place: x must not be read as it was before. */
void ak_build_activate(struct ak_builder *b, ak_build_value x, int layer,
                       enum ak_op_activation activation, uint32_t n);

/* x += y · scale */
void ak_build_add(struct ak_builder *b, ak_build_value x, ak_build_value y, float scale);

/* Selects the logit rows: those with a wanted result. */
ak_build_value ak_build_select(struct ak_builder *b, ak_build_value x);

/* Ends the list of a rank that has no output: x goes to the rank with the next layers, and rank 0
 * gets the results from the last one. */
void ak_build_send(struct ak_builder *b, ak_build_value x);

/* Ends the list: x is the pass's result. */
void ak_build_hidden(struct ak_builder *b, ak_build_value x);

/* Ends the list with logits = OUTPUT · x / divisor, then a soft cap unless cap is 0. Variant
 * AK_BUILD_HIDDEN: with x. */
void ak_build_logits(struct ak_builder *b, ak_build_value x, float divisor, float cap);

#endif
