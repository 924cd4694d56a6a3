/* The flat description of one pass: operations over activation slots, weight
 * slots and the KV cache. Built once, never written while it runs. */
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
    enum ak_role bias; /* AK_ROLE_COUNT: never has one */
};

struct ak_op_linear_info {
    const char *name;
    uint32_t n_parts;
    struct ak_op_linear_part parts[AK_OP_LINEAR_PARTS_MAX];
};

const struct ak_op_linear_info *ak_op_linear_info(enum ak_op_linear linear);

/* Which rows a slot has: one a token of the pass, one a wanted token, or one for each
 * expert of each token. */
enum ak_op_row_set { AK_OP_ROWS_TOKENS, AK_OP_ROWS_LOGITS, AK_OP_ROWS_EXPERTS, AK_OP_ROWS_COUNT };

/* No slot, no weight. */
#define AK_OP_NONE UINT32_MAX

enum ak_op_activation {
    AK_OP_ACTIVATION_SILU,
    AK_OP_ACTIVATION_GELU_TANH,
    AK_OP_ACTIVATION_GELU_ERF,
    AK_OP_ACTIVATION_SWIGLU_CLAMPED /* gpt-oss: of a gate and an up part alone */
};

/* Token i stands at row first_position + i of the positions' table. */
struct ak_op_embed_params {
    float scale;
    bool types, positions;
    uint32_t first_position;
};
/* Of the elements [offset, offset + n) of a row. */
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
    uint32_t q_at, k_at, v_at; /* elements of a row where each part starts */
    uint32_t q_step;           /* from one head of q to the next */
    uint32_t n_heads, n_kv_heads, head_dim;
    uint32_t rope_dims;  /* 0: no rotation */
    uint32_t rope_table; /* which of the model's tables */
    uint32_t interleaved;
    uint32_t kv_layer; /* of the cache */
    float norm_eps;    /* of the q and k norms, where the command has them */
};
struct ak_op_attention_params {
    uint32_t q_at, q_step, n_heads, n_kv_heads, head_dim;
    uint32_t kv_layer;
    uint32_t window; /* tokens that a token sees, itself included; 0: all */
    /* it sees those after it too, all of which are in its pass; of a window, half on each side */
    bool bidirectional;
    bool alibi; /* a score loses the distance times the head's slope */
    bool gated; /* what a head gives is multiplied by the sigmoid of what follows its q */
    float scale;
    float cap; /* 0: none */
};
/* A row of `in` has b, c and x, n elements each; the vector is the kernel, [n][taps], the
 * newest tap last. `state_at` is where [taps − 1][n] values of b · x, the oldest first, are
 * among the floats of a sequence's state. */
struct ak_op_short_conv_params {
    uint32_t n, taps;
    uint64_t state_at;
};
/* The channels are those of three parts, one after another, and a part's those of n_groups
 * groups, n each; group g of a row of `in` begins at element offset + g · step. The vector is
 * the kernel, [channels][taps], the newest tap last; `state_at` is as above. */
struct ak_op_conv_part {
    uint32_t offset, step, n;
};
enum { AK_OP_CONV_PARTS = 3 };
struct ak_op_conv_params {
    uint32_t n, taps, n_groups;
    struct ak_op_conv_part parts[AK_OP_CONV_PARTS];
    uint64_t state_at;
};
/* A row of `in` has q of all key heads, k_dim elements each, k of them, and v of all value
 * heads, v_dim each. With r = n_v_heads / n_k_heads, value head h has key head h / r, or,
 * where `tiled`, h mod n_k_heads; in slot `gates` its beta is at beta_at + g, its alpha at
 * alpha_at + g, g = h / r · gate_step + h mod r. The vectors have each value head's decay,
 * below 0, and alpha's bias. At `state_at` are [n_v_heads][k_dim][v_dim] values. */
struct ak_op_delta_params {
    uint32_t n_k_heads, n_v_heads, k_dim, v_dim;
    uint32_t gates, beta_at, alpha_at, gate_step;
    bool tiled;
    uint64_t state_at;
};
/* Of n_heads heads of n elements; head h's part of slot `gate` is at
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
/* DIVIDE, CAP */
struct ak_op_scalar_params {
    float value;
    uint32_t n;
};
/* Of n_experts logits the n_used largest, the first of equals; a row of the out slot has
 * their indices, then their weights: the softmax over all logits, or where `normalized`
 * over those chosen. */
struct ak_op_route_params {
    uint32_t n_experts, n_used;
    bool normalized;
};
/* GATHER, COMBINE: `routes` is the slot of a ROUTE. */
struct ak_op_routed_params {
    uint32_t routes, n;
};
/* `gate` is the slot whose rows meet the vector. */
struct ak_op_add_gated_params {
    uint32_t gate, n;
};
struct ak_op_select_params {
    uint32_t n;
};
struct ak_op_logits_params {
    uint32_t n;
}; /* GUMBEL, ARGMAX */

struct ak_command {
    enum ak_op op;
    int layer;        /* AK_ROLE_NO_LAYER outside of layers */
    uint32_t in, out; /* activation slots */
    uint32_t weight;  /* LINEAR: weight slot; EMBED: the embedding */
    /* vector slots: norm weights, LayerNorm's bias; QKV: q norm, k norm; ATTENTION: sinks;
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
