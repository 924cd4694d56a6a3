/* Layout of the pass buffer and of the kernels' parameters. The host compiles it as C, the device
 * as OpenCL C, so both agree. */
#ifdef __OPENCL_VERSION__
#define uint32_t uint
#define uint64_t ulong
#else
#include <stdint.h>
#endif

/* Words of the pass buffer: the number of rows of each row set, in the order of enum ak_op_row_set,
 * then where each list begins. */
enum {
    AK_OCL_PASS_TOKENS,
    AK_OCL_PASS_LOGITS,
    AK_OCL_PASS_EXPERTS,
    AK_OCL_PASS_POSITIONS, /* [tokens] */
    AK_OCL_PASS_TABLES,    /* [tokens]: word where the sequence's page table begins */
    /* [tokens]: last position of the sequence in the pass, plus one */
    AK_OCL_PASS_ENDS,
    AK_OCL_PASS_STATES,     /* [tokens]: sequence */
    AK_OCL_PASS_LOGIT_ROWS, /* [logits] */
    AK_OCL_PASS_BLOCKS,     /* [blocks][2]: first token, number of tokens, all of one sequence */
    /* as TABLES, ENDS and BLOCKS, of the cross sequences: tokens that read the same one may share a
     * block */
    AK_OCL_PASS_CROSS_TABLES,
    AK_OCL_PASS_CROSS_ENDS,
    AK_OCL_PASS_CROSS_BLOCKS,
    AK_OCL_PASS_RUNS, /* [tokens]: sequences of the pass before the token's own */
    AK_OCL_PASS_EXPERT_OF,
    AK_OCL_PASS_TOKEN_OF,      /* [expert rows]: token; EXPERT_OF: expert */
    AK_OCL_PASS_ROW_OF,        /* [tokens][experts used]: expert row */
    AK_OCL_PASS_EXPERT_BEGIN,  /* [experts + 1] */
    AK_OCL_PASS_EXPERT_GROUPS, /* count, then [groups][2]: expert, first row */
    AK_OCL_PASS_SEED_LOW,
    AK_OCL_PASS_SEED_HIGH,
    AK_OCL_PASS_TEMPERATURE, /* float bits */
    AK_OCL_PASS_HEADER
};

/* A product: y = weights · x (+ bias), with `rows` rows of k elements. */
struct ak_ocl_linear_args {
    uint64_t expert_bytes;
    uint64_t x_at, y_at;  /* elements of the arenas */
    uint64_t group_bytes; /* bytes of 16 rows in tiles */
    uint32_t tile_bytes;  /* bytes of a full tile */
    uint32_t row_elems;   /* elements of a stored row of floats */
    uint32_t rows, k;
    uint32_t x_stride, y_stride;
    uint32_t bias_at, has_bias, expert_width;
    uint32_t row_set;
};

/* Flags of steps over rows. */
enum {
    /* mask; values as enum ak_op_activation */
    AK_OCL_ROWS_ACTIVATION = 7,
    AK_OCL_ROWS_SILU = 0,
    AK_OCL_ROWS_GELU_TANH = 1,
    AK_OCL_ROWS_GELU_ERF = 2,
    AK_OCL_ROWS_SWIGLU_CLAMPED = 3,
    AK_OCL_ROWS_RELU = 4,
    AK_OCL_ROWS_LAYER_NORM = 8,
    AK_OCL_ROWS_BIAS = 16,
    AK_OCL_ROWS_NORMALIZED = 32
};
struct ak_ocl_rows_args {
    uint64_t in_at, out_at, other_at; /* elements */
    uint32_t in_stride, out_stride, other_stride;
    uint32_t n, flags;
    uint32_t vector, vector2; /* elements of the vectors */
    uint32_t gate_at, up_at;
    uint32_t used; /* experts per token */
    uint32_t step; /* FRAMES: elements from one position to the next */
    float value;   /* epsilon, scale, divisor or cap */
};

enum {
    AK_OCL_ATTENTION_Q_NORM = 1,
    AK_OCL_ATTENTION_K_NORM = 2,
    AK_OCL_ATTENTION_INTERLEAVED = 4,
    AK_OCL_ATTENTION_BIDIRECTIONAL = 8,
    AK_OCL_ATTENTION_ALIBI = 16,
    AK_OCL_ATTENTION_SINKS = 32,
    AK_OCL_ATTENTION_GATED = 64
};
struct ak_ocl_attention_args {
    uint64_t in_at, out_at;
    uint32_t in_stride, out_stride;
    uint32_t q_at, q_step, k_at, v_at;
    uint32_t n_heads, n_kv_heads, head_dim;
    uint32_t n_layers, kv_layer;
    uint32_t head_bytes, keys_bytes; /* bytes of a KV head in a page: all, and its keys */
    uint32_t window, flags;
    uint32_t rope_dims, rope_table;
    uint32_t q_norm, k_norm, sinks; /* elements of the vectors */
    uint32_t tables, ends, blocks;  /* words of the pass buffer: AK_OCL_PASS_... of these lists */
    float norm_eps, scale, cap;
};

/* CONV, with the members of struct ak_op_conv_params. If `gated`: SHORT_CONV, with rows of b, c and
 * x, n elements each. */
struct ak_ocl_conv_args {
    uint64_t in_at, out_at, state_at; /* elements */
    uint32_t in_stride, out_stride, state_elems;
    uint32_t n, taps, gated, n_groups;
    uint32_t part_at[3], part_step[3], part_n[3];
    uint32_t vector;
};

/* DELTA, with the members of struct ak_op_delta_params. */
struct ak_ocl_delta_args {
    uint64_t in_at, out_at, gates_at, state_at; /* elements */
    uint32_t in_stride, out_stride, gates_stride, state_elems;
    uint32_t n_k_heads, n_v_heads, k_dim, v_dim;
    uint32_t beta_at, alpha_at, gate_step, tiled;
    uint32_t decay, alpha_bias; /* elements of the vectors */
};

/* NORM_GATED, with the members of struct ak_op_norm_gated_params. */
struct ak_ocl_norm_gated_args {
    uint64_t in_at, out_at, gate_at; /* elements */
    uint32_t in_stride, out_stride, gate_stride;
    uint32_t n, gate_step, per_group;
    uint32_t vector;
    float eps;
};
