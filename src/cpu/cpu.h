/* The CPU backend: a dispatch table becomes a list of steps, and every thread
 * walks the list. Between steps that depend on each other's rows lies a barrier;
 * steps without one between them form a stage.
 *
 * The rows of a stage's weights are cut into chunks, and a thread runs all of the
 * stage's steps on a chunk before it takes the next one: what follows on those rows
 * (residual, activation) needs no barrier and finds them in the cache. Each thread
 * has the same chunks in every pass; only its last ones go to whoever is free first.
 * With few tokens every thread makes the quantized activations for itself; with many
 * they are split and shared.
 */
#ifndef AK_CPU_CPU_H
#define AK_CPU_CPU_H

#include "base/thread.h"
#include "cpu/blas.h"
#include "cpu/kernels.h"
#include "cpu/profile.h"
#include "dispatch/table.h"

enum {
    AK_ATTN_ROWS_MAX = 32, /* query rows of one work item */
    AK_TERMS_MAX = 2,
    AK_TERM_TILES_MAX = 64,        /* tiles whose two terms are added up at once */
    AK_DEQUANTIZE_ROWS_SKINNY = 4, /* stored rows dequantized at once: skinny GEMM, GEMM */
    AK_DEQUANTIZE_ROWS_GEMM = 16,
    AK_SKINNY_F8_MAX = 3,                /* tokens for which rows of F8 are dequantized once */
    AK_PANEL_BF16_BYTES_MAX = 589824,    /* of a panel of BF16: half of a second-level cache */
    AK_PANEL_CACHE_BYTES_MAX = 96 << 20, /* of panels that stay opened, all of a model's or none */
    AK_CHUNKS_PER_THREAD = 20,           /* of a stage's rows, a thread */
    AK_CHUNKS_STEALABLE = 2              /* of these, by whoever is free */
};

/* Rows of BF16 for a panel, of k elements. */
static inline size_t ak_cpu_panel_bf16_rows(const struct ak_cpu_kernels *kernels, size_t k)
{
    size_t step = kernels->panel_bf16_step, max = kernels->panel_bf16_max,
           rows = AK_PANEL_BF16_BYTES_MAX / (k * sizeof(uint16_t)) / step * step;
    return rows < step ? step : rows > max ? max : rows;
}

/* Rows of k floats that BLAS takes at once. */
static inline size_t ak_cpu_blas_rows(size_t k)
{
    size_t rows = ((size_t)1 << 20) / k / AK_TILE_ROWS * AK_TILE_ROWS;
    return rows < AK_TILE_ROWS ? AK_TILE_ROWS : rows > 256 ? 256 : rows;
}

struct ak_cpu {
    struct ak_backend base;
    enum ak_cpu_isa isa;
    struct ak_cpu_kernels kernels;
    struct ak_backend_profile profile;
    bool relaxed;
    struct ak_cpu_blas blas;
    bool prefers_blas;                     /* over whatever kernels there are */
    bool uses_blas[AK_CPU_ACT_TYPE_COUNT]; /* for weights of a format, where tokens are many */
};

struct ak_cpu_prepared;
struct ak_cpu_step;
typedef void ak_cpu_step_fn(const struct ak_cpu_step *step, struct ak_cpu_prepared *p,
                            unsigned thread);

struct ak_cpu_step {
    ak_cpu_step_fn *run;
    const struct ak_command *command;
    enum ak_op_row_set row_set;
    bool barrier_skinny, barrier_gemm; /* after this step, by the number of rows */
    bool is_chunked;                   /* works on a chunk of rows of weights */
    bool is_stealable;                 /* is_chunked: its stage is worth it */
    uint32_t n_rows;                   /* of the largest part of its weight; 0: it has none */
    const struct ak_command *linears;  /* PREPARE: the commands that take what it makes */
    uint32_t n_linears;
};

/* Tokens of one sequence that stand together in a batch; `end` is the position after
 * the last one that the batch has of it. */
struct ak_cpu_token_block {
    uint32_t first, n, end;
};

/* What one thread needs for itself. */
struct ak_cpu_scratch {
    uint8_t *activations[AK_CPU_ACT_COUNT]; /* AK_SKINNY_MAX tokens, all terms */
    uint8_t *panel_i8;
    float *terms;              /* products of both terms before they are added */
    float *row;                /* one row of activations */
    float *ordered_row;        /* the same in the order that a weight takes it in */
    float *weight_rows;        /* rows of weights or a panel of them */
    float *blas;               /* ak_cpu_blas_rows() rows of weights for BLAS */
    float *q, *out, *page_out; /* AK_ATTN_ROWS_MAX heads each */
    /* the same queries quantized, where the keys are: AK_TERMS_MAX records each */
    uint8_t *q_terms;
    /* keys or values of a page that no kernel takes as they lie */
    float *page_f32;
    float *weights;           /* AK_ATTN_ROWS_MAX × a page's tokens */
    uint32_t chunk, n_chunks; /* of the stage that runs: what ak_cpu_chunk_rows gives */
    struct ak_backend_counts counts;
};

/* The chunks of one thread that others may take: 64 bits of one stage's number and
 * how many of them are gone. */
struct ak_cpu_steal_state {
    _Alignas(AK_LINE_BYTES) _Atomic uint64_t stolen;
};

/* The rows of AK_OP_ROWS_EXPERTS in the pass that runs: expert by expert, in each in the
 * order of tokens. */
struct ak_cpu_routes {
    uint32_t *row_of;   /* [tokens][experts used] */
    uint32_t *token_of; /* [rows] */
    uint32_t *begin;    /* [experts + 1]: first row of each */
    float *gates;       /* [tokens]: of the expert that all share */
};

/* Panels of a weight that stay opened, part after part, each from a row of whole tiles
 * on, and which of them are open, by that tile. A panel has the rows of a unit. They take
 * any number of tokens. */
struct ak_panel_cache {
    float *panels; /* NULL: they are opened in each pass */
    bool *is_unpacked;
};

struct ak_cpu_prepared {
    struct ak_cpu *cpu;
    const struct ak_table *table;
    const struct ak_weights *weights;
    const struct ak_spec *spec;
    struct ak_pool *pool;
    unsigned n_threads;
    uint32_t max_rows[AK_OP_ROWS_COUNT]; /* of each row set */
    /* rows that chunks have whole where tokens are many: those of an int8 or an f32 panel */
    uint32_t unit;
    uint32_t context;
    float *arena[AK_OP_ROWS_COUNT];
    const float *frequencies[AK_SPEC_ROPE_TABLES_MAX]; /* the model's, as they suit this context */
    const float *zeros;                                /* the bias of norms that have none */
    float *distances, *slopes;              /* ALiBi: |i − (context − 1)|; of each head */
    float *cos, *sin;                       /* [tables][max tokens][rope_dims/2] of the pass */
    uint8_t *activations[AK_CPU_ACT_COUNT]; /* max tokens, shared */
    struct ak_cpu_routes routes;
    struct ak_panel_cache *panel_cache; /* [packed weights]; NULL: of none */
    struct ak_cpu_token_block *blocks;
    uint32_t n_blocks;
    int32_t *sampled;
    int32_t *candidates; /* ARGMAX: [max logits][threads] */
    float *candidate_values;
    struct ak_cpu_scratch *scratch;
    struct ak_cpu_steal_state *steal_states; /* [threads] */
    uint64_t n_stages;                       /* of all passes before */
    struct ak_cpu_step *steps;
    uint32_t n_steps;
    uint8_t *kv;
    struct ak_kv_shape kv_shape;
    /* of one head: a page's group of keys, its keys, keys and values */
    size_t key_group_bytes, keys_bytes, kv_head_bytes;
    size_t value_bytes, query_bytes; /* a token's values; a quantized query */
    float *partials;                 /* [heads][pages][partial_stride]: attention.c */
    size_t partial_stride;
    void *memory; /* one block behind all of the above */
    size_t memory_bytes;
    const struct ak_batch *batch; /* of the pass that runs */
};

/* prepare.c */
ak_status ak_cpu_prepare(struct ak_backend *b, const struct ak_table *table,
                         const struct ak_weights *weights, const struct ak_spec *spec,
                         const struct ak_backend_table_options *options, void *kv,
                         struct ak_backend_table **out, struct ak_error *error);
void ak_cpu_release(struct ak_backend_table *p);

/* plan_steps.c: the table's commands as steps; at most AK_CPU_STEPS_PER_COMMAND each. */
enum { AK_CPU_STEPS_PER_COMMAND = 2 };
void ak_cpu_plan_steps(struct ak_cpu_prepared *p);

/* run.c */
void ak_cpu_run(struct ak_backend_table *p, const struct ak_batch *batch);

/* Rows of a row set in the pass that runs. */
uint32_t ak_cpu_rows(const struct ak_cpu_prepared *p, enum ak_op_row_set row_set);

static inline bool ak_cpu_is_skinny(uint32_t rows)
{
    return rows <= AK_SKINNY_MAX;
}

/* First row of a slot; rows lie slots[slot].width elements apart. */
static inline float *ak_cpu_slot(const struct ak_cpu_prepared *p, uint32_t slot)
{
    const struct ak_table_slot *s = &p->table->slots[slot];
    return p->arena[s->row_set] + (size_t)s->offset * p->max_rows[s->row_set];
}

static inline size_t ak_cpu_stride(const struct ak_cpu_prepared *p, uint32_t slot)
{
    return p->table->slots[slot].width;
}

/* Records of quantized activations a token that a weight is multiplied with. The
 * logits are worth a second one, which holds what the first rounded away: there
 * 8 bits cost most accuracy for least work. It is a token more to every kernel.
 * So are queries and keys, whose errors the softmax magnifies, where a scheme is one
 * that others multiply with floats; rounding activations is GGML's custom alone. */
static inline uint32_t ak_cpu_n_terms(const struct ak_pack_weight *packed)
{
    bool twice = packed->linear == AK_OP_LINEAR_OUTPUT ||
                 (packed->linear == AK_OP_LINEAR_QKV && packed->parts[0].view->composed_tensor);
    return twice && ak_cpu_type_act_format(packed->type) != AK_CPU_ACT_F32 ? AK_TERMS_MAX : 1;
}

/* The first row of n in chunk `chunk` of all threads' together. */
uint32_t ak_cpu_chunk_first_row(const struct ak_cpu_prepared *p, uint32_t n, uint32_t chunk);

/* The rows [*begin, *end) of n in the chunks that `thread` works on: whole tiles,
 * and whole panels where there are many tokens. */
void ak_cpu_chunk_rows(const struct ak_cpu_prepared *p, uint32_t n, unsigned thread,
                       uint32_t *begin, uint32_t *end);

/* The Hadamard transform of n floats in place, in blocks of the largest power of two
 * that divides n, not scaled: products of two such vectors are those of the originals
 * times the size of a block, which is what it gives. */
size_t ak_cpu_hadamard(float *x, size_t n);

/* K and V of one head in one page. */
uint8_t *ak_cpu_kv_head(const struct ak_cpu_prepared *p, uint32_t page, uint32_t layer,
                        uint32_t head);

/* The first of quantized keys of a page and head, as floats, spread: behind its groups. */
static inline float *ak_cpu_first_key(const struct ak_cpu_prepared *p, const uint8_t *keys)
{
    return (float *)(uintptr_t)(keys + AK_KV_PAGE_TOKENS / AK_KV_GROUP_TOKENS * p->key_group_bytes);
}

/* Whether many tokens are rounded to BF16 to meet a weight. */
static inline bool ak_cpu_uses_bf16(const struct ak_cpu *cpu, const struct ak_pack_weight *packed)
{
    return cpu->relaxed && cpu->kernels.unpack_panel_bf16[packed->type] &&
           packed->cols % AK_LANES == 0;
}

/* Whether the product of a weight with n tokens is BLAS's. */
static inline bool ak_cpu_uses_blas(const struct ak_cpu *cpu, const struct ak_pack_weight *packed,
                                    size_t n)
{
    return n >= AK_CPU_BLAS_TOKENS_MIN && packed->n_experts == 0 &&
           cpu->uses_blas[ak_cpu_type_act_format(packed->type)] &&
           !(ak_cpu_uses_bf16(cpu, packed) && !cpu->prefers_blas);
}

/* Whether n tokens meet a weight in the kernels of few: the chip profile's choice. Rows
 * of F8 are opened rather than widened once more for the next tokens. */
static inline bool ak_cpu_uses_skinny(const struct ak_cpu *cpu, const struct ak_pack_weight *packed,
                                      size_t n)
{
    if (packed->type == AK_QUANT_F8 && n > AK_SKINNY_F8_MAX)
        return false;
    return n <= ak_backend_profile_skinny_max(&cpu->profile, ak_cpu_type_act_format(packed->type));
}

/* n floats as `terms` records, each of what the ones before it rounded away (linear.c);
 * x is used up where there is more than one. */
void ak_cpu_quantize_terms(const struct ak_cpu_kernels *k, enum ak_cpu_act_format format, float *x,
                           size_t n, uint32_t terms, uint8_t *out);

/* y[t] = terms[2t] + terms[2t + 1] for n rows of `width` floats: products with the
 * two records of a token (linear.c). */
void ak_cpu_add_terms(const float *terms, size_t n, size_t width, float *y, size_t y_stride);

/* The format in which n tokens meet a weight (linear.c). */
enum ak_cpu_act_format ak_cpu_select_act_format(const struct ak_cpu *cpu,
                                                const struct ak_pack_weight *packed, size_t n);

/* Rows of a weight's parts before part i, each in whole tiles; all of them for n_parts. */
static inline size_t ak_cpu_panel_cache_rows(const struct ak_pack_weight *packed, uint32_t i)
{
    size_t rows = 0;
    for (uint32_t j = 0; j < i; j++)
        rows += (packed->parts[j].rows + AK_TILE_ROWS - 1) / AK_TILE_ROWS * AK_TILE_ROWS;
    return rows;
}

/* Cosines or sines of batch token t in one of the model's rotation tables. */
static inline float *ak_cpu_angles(const struct ak_cpu_prepared *p, float *values, uint32_t table,
                                   size_t t)
{
    return values +
           ((size_t)table * p->max_rows[AK_OP_ROWS_TOKENS] + t) * (p->spec->config.rope_dims / 2);
}

/* The floats of token t's sequence's state from `at` on. */
static inline float *ak_cpu_state(const struct ak_cpu_prepared *p, size_t t, uint64_t at)
{
    return (float *)(void *)(p->kv + ak_kv_state_offset(&p->kv_shape, p->batch->sequences[t])) + at;
}

/* A NORM command's work on one row: elements [at, at + n) of x to out. */
void ak_cpu_norm(const struct ak_cpu_prepared *p, const struct ak_command *c,
                 const float *restrict x, float *restrict out);

/* Steps. */
ak_cpu_step_fn ak_cpu_step_route, ak_cpu_step_route_end, ak_cpu_step_experts, ak_cpu_step_combine,
    ak_cpu_step_gate, ak_cpu_step_add_gated;
ak_cpu_step_fn ak_cpu_step_embed, ak_cpu_step_prepare, ak_cpu_step_norm, ak_cpu_step_linear,
    ak_cpu_step_qkv, ak_cpu_step_attention, ak_cpu_step_gated, ak_cpu_step_short_conv,
    ak_cpu_step_conv, ak_cpu_step_delta_gates, ak_cpu_step_delta, ak_cpu_step_norm_gated,
    ak_cpu_step_activate, ak_cpu_step_add, ak_cpu_step_divide, ak_cpu_step_cap, ak_cpu_step_select,
    ak_cpu_step_gumbel, ak_cpu_step_argmax, ak_cpu_step_argmax_end;

#endif
