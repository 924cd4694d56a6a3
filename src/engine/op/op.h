/* Commands: ops with operands and parameters. A dispatch table is a flat list of them; operands are
 * activation slots, weight slots and the KV cache. engine/spec/ emits the commands,
 * engine/dispatch/ plans their slots, engine/cpu/ and opencl/ run them, and bench/ times some.
 * engine/pack/ finds in it which weights one command reads. Nothing writes them while they run. */
#ifndef AK_ENGINE_OP_OP_H
#define AK_ENGINE_OP_OP_H

#include <stdbool.h>
#include <stdint.h>

#include "files/weights/role.h"
#include "engine/op/shard.h"

enum ak_op {
#define AK_OP(symbol, name, ...) AK_OP_##symbol,
#include "engine/op/op.def"
#undef AK_OP
    AK_OP_COUNT
};

/* Whether a row of the result depends on other rows of the pass. */
bool ak_op_mixes_rows(enum ak_op op);

const char *ak_op_name(enum ak_op op);

enum ak_op_linear {
#define AK_LINEAR(symbol, name, shards, n_parts, ...) AK_OP_LINEAR_##symbol,
#include "engine/op/linear.def"
#undef AK_LINEAR
    AK_OP_LINEAR_COUNT
};

enum { AK_OP_LINEAR_PARTS_MAX = 3 };

struct ak_op_linear_part {
    enum ak_role weight;
    enum ak_role bias; /* AK_ROLE_COUNT: none */
};

/* What ranks do with the rows of an operator, and so with its output. */
enum ak_op_shards {
    AK_OP_SHARDS_NONE,     /* every rank has all rows */
    AK_OP_SHARDS_KEPT,     /* each has its heads, or its elements, and goes on with them alone */
    AK_OP_SHARDS_GATHERED, /* each computes its rows, and gets those of the others */
    AK_OP_SHARDS_COLLECTED /* the same, but only rank 0 gets the others' */
};

struct ak_op_linear_info {
    const char *name;
    enum ak_op_shards shards;
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
    AK_OP_ACTIVATION_SWIGLU_CLAMPED, /* gpt-oss; only in GATED, of a gate and an up part */
    AK_OP_ACTIVATION_RELU
};

/* A part of the channels of CONV: its groups start at offset + g · step. */
struct ak_op_conv_part {
    uint32_t offset, step, n;
};
enum { AK_OP_CONV_PARTS = 3 };

/* Parameters of each op. */
#define AK_OP(symbol, name, rows, keeps, ...)                                                      \
    struct ak_op_##name##_params {                                                                 \
        __VA_ARGS__                                                                                \
    };
#include "engine/op/op.def"
#undef AK_OP

/* An activation slot. Rows lie `width` elements apart. Each row set has an arena of its own;
 * slots with lives that do not overlap share its elements. A part of another slot has its rows
 * within the rows of that slot, and as far apart. */
struct ak_op_slot {
    uint32_t width; /* float elements of a row, a multiple of 16 */
    enum ak_op_row_set row_set;
    uint32_t offset;              /* elements into a row of the arena (engine/dispatch/table.c) */
    uint32_t first_use, last_use; /* commands */
    bool is_part;
    uint32_t whole,
        at; /* if is_part: the other slot, and the element of it where the part begins */
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
#define AK_OP(symbol, name, ...) struct ak_op_##name##_params name;
#include "engine/op/op.def"
#undef AK_OP
    } params;
};

_Static_assert(sizeof(((struct ak_command *)0)->params) <= 64,
               "parameters of a command are at most 64 bytes");

#endif
