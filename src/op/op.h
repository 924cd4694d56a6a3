/* Commands: ops with operands and parameters. A dispatch table is a flat list of them; operands
 * are activation slots, weight slots and the KV cache. model/ emits the commands, dispatch/ plans
 * their slots, backends run them. Nothing writes them while they run. */
#ifndef AK_OP_OP_H
#define AK_OP_OP_H

#include <stdbool.h>
#include <stdint.h>

#include "op/role.h"

enum ak_op {
#define AK_OP(symbol, name) AK_OP_##symbol,
#include "op/op.def"
#undef AK_OP
    AK_OP_COUNT
};

const char *ak_op_name(enum ak_op op);

enum ak_op_linear {
#define AK_LINEAR(symbol, name, n_parts, ...) AK_OP_LINEAR_##symbol,
#include "op/linear.def"
#undef AK_LINEAR
    AK_OP_LINEAR_COUNT
};

enum { AK_OP_LINEAR_PARTS_MAX = 3 };

struct ak_op_linear_part {
    enum ak_role weight;
    enum ak_role bias; /* AK_ROLE_COUNT: none */
};

struct ak_op_linear_info {
    const char *name;
    uint32_t n_parts;
    struct ak_op_linear_part parts[AK_OP_LINEAR_PARTS_MAX];
};

const struct ak_op_linear_info *ak_op_linear_info(enum ak_op_linear linear);

/* Row set of a slot: rows per token of the pass, per logit row, or per expert of a token. */
enum ak_op_row_set { AK_OP_ROWS_TOKENS, AK_OP_ROWS_LOGITS, AK_OP_ROWS_EXPERTS, AK_OP_ROWS_COUNT };

/* Index of an absent slot or weight. */
#define AK_OP_NONE UINT32_MAX

enum ak_op_activation {
    AK_OP_ACTIVATION_SILU,
    AK_OP_ACTIVATION_GELU_TANH,
    AK_OP_ACTIVATION_GELU_ERF,
    AK_OP_ACTIVATION_SWIGLU_CLAMPED /* gpt-oss; only in GATED, of a gate and an up part */
};

/* The token at position i takes row first_position + i of the position embedding. */
struct ak_op_embed_params {
    float scale;
    bool types, positions; /* adds the row of token type 0; of the position */
    uint32_t first_position;
};
/* Norm of the elements [offset, offset + n) of a row. */
struct ak_op_norm_params {
    float eps;
    uint32_t offset, n;
    bool layer_norm;
};
/* The output starts at element `offset` of the out slot's rows. */
struct ak_op_linear_params {
    uint32_t offset;
};
struct ak_op_qkv_params {
    uint32_t q_at, k_at, v_at; /* first element of each part in a row */
    uint32_t q_step;           /* elements from one head of q to the next */
    uint32_t n_heads, n_kv_heads, head_dim;
    uint32_t rope_dims;   /* 0: no rotation */
    uint32_t rope_table;  /* index among the model's rotation tables */
    uint32_t interleaved; /* 1: pairs are neighbors; 0: elements i and i + rope_dims / 2 */
    uint32_t kv_layer;    /* layer index in the KV cache */
    float norm_eps;       /* of the q and k norms, if the command has their vectors */
};
struct ak_op_attention_params {
    uint32_t q_at, q_step, n_heads, n_kv_heads, head_dim;
    uint32_t kv_layer;
    uint32_t window; /* tokens that a token sees, itself included; 0: all */
    /* not causal: a token sees later ones of its pass; half of a window on each side */
    bool bidirectional;
    bool alibi; /* subtracts the distance times the head's slope from a score */
    bool gated; /* multiplies a head's output by the sigmoid of the elements after its q */
    float scale;
    float cap; /* 0: none */
};
/* A row of `in` has b, c and x, n elements each. The vector is the kernel, [n][taps], newest tap
 * last. `state_at` is the index of the first float in a sequence's recurrent state: [taps − 1][n]
 * values of b · x, oldest first. */
struct ak_op_short_conv_params {
    uint32_t n, taps;
    uint64_t state_at;
};
/* The channels are three parts, one after another; each part is n_groups groups of n channels.
 * Group g of a part starts at element offset + g · step of a row of `in`. The vector is the
 * kernel, [channels][taps], newest tap last; `state_at` is as above. */
struct ak_op_conv_part {
    uint32_t offset, step, n;
};
enum { AK_OP_CONV_PARTS = 3 };
struct ak_op_conv_params {
    uint32_t n, taps, n_groups;
    struct ak_op_conv_part parts[AK_OP_CONV_PARTS];
    uint64_t state_at;
};
/* A row of `in` has q of all key heads (k_dim elements each), their k, and v of all value heads
 * (v_dim each). With r = n_v_heads / n_k_heads, value head h uses key head h / r; if `tiled`,
 * h mod n_k_heads. In slot `gates` its beta is at beta_at + g and its alpha at alpha_at + g,
 * g = h / r · gate_step + h mod r. The vectors are the decay of each value head, below 0, and
 * alpha's bias. At `state_at` are [n_v_heads][k_dim][v_dim] values. */
struct ak_op_delta_params {
    uint32_t n_k_heads, n_v_heads, k_dim, v_dim;
    uint32_t gates, beta_at, alpha_at, gate_step;
    bool tiled;
    uint64_t state_at;
};
/* n_heads heads of n elements. The part of head h in slot `gate` starts at
 * gate_at + h / per_group · gate_step + h mod per_group · n. */
struct ak_op_norm_gated_params {
    float eps;
    uint32_t n_heads, n, gate, gate_at, gate_step, per_group;
};
struct ak_op_gated_params {
    enum ak_op_activation activation;
    uint32_t gate_at, up_at, n;
};
struct ak_op_activate_params {
    enum ak_op_activation activation;
    uint32_t n;
};
struct ak_op_add_params {
    float scale;
    uint32_t n;
};
/* DIVIDE: the divisor; CAP: the cap. */
struct ak_op_scalar_params {
    float value;
    uint32_t n;
};
/* Selects the n_used largest of n_experts logits; of equal ones the first. A row of `out` has
 * their indices, then their weights: the softmax over all logits or, if `normalized`, over the
 * selected ones. */
struct ak_op_route_params {
    uint32_t n_experts, n_used;
    bool normalized;
};
/* GATHER, COMBINE: `routes` is the `out` slot of a ROUTE. */
struct ak_op_routed_params {
    uint32_t routes, n;
};
/* `gate` is the slot of the rows that the vector is multiplied with. */
struct ak_op_add_gated_params {
    uint32_t gate, n;
};
struct ak_op_select_params {
    uint32_t n;
};
/* GUMBEL, ARGMAX */
struct ak_op_logits_params {
    uint32_t n;
};

/* An activation slot. Rows lie `width` elements apart. Each row set has an arena of its own;
 * slots whose lives do not overlap share its elements. */
struct ak_op_slot {
    uint32_t width; /* float elements of a row, a multiple of 16 */
    enum ak_op_row_set row_set;
    uint32_t offset;              /* elements into a row of the arena (dispatch/table.c) */
    uint32_t first_use, last_use; /* commands */
};

struct ak_command {
    enum ak_op op;
    int layer;        /* AK_ROLE_NO_LAYER outside of layers */
    uint32_t in, out; /* activation slots */
    uint32_t weight;  /* LINEAR: weight slot; EMBED: that of the embedding */
    /* vector slots. Norms: weight, LayerNorm's bias; QKV: q norm, k norm; ATTENTION: sinks;
     * SHORT_CONV, CONV: kernel; DELTA: decay, alpha's bias */
    uint32_t vector, vector2;
    union {
        struct ak_op_embed_params embed;
        struct ak_op_norm_params norm;
        struct ak_op_linear_params linear;
        struct ak_op_qkv_params qkv;
        struct ak_op_attention_params attention;
        struct ak_op_short_conv_params short_conv;
        struct ak_op_conv_params conv;
        struct ak_op_delta_params delta;
        struct ak_op_norm_gated_params norm_gated;
        struct ak_op_gated_params gated;
        struct ak_op_activate_params activate;
        struct ak_op_route_params route;
        struct ak_op_routed_params routed;
        struct ak_op_add_gated_params add_gated;
        struct ak_op_add_params add;
        struct ak_op_scalar_params scalar;
        struct ak_op_select_params select;
        struct ak_op_logits_params logits;
    } params;
};

_Static_assert(sizeof(((struct ak_command *)0)->params) <= 64,
               "parameters of a command are at most 64 bytes");

#endif
