/* Internals of the CPU backend: a dispatch table becomes a list of steps, which every thread runs.
 * A barrier separates steps that read each other's rows; steps between two barriers form a stage.
 * Shared by the sources directly in src/engine/cpu, bench/kernels.c and tests/engine/cpu/.
 *
 * The rows of a stage's weights are split into chunks. A thread has the same chunks in every pass.
 * It runs all steps of the stage on them, for GEMM chunk by chunk, so that the residual addition
 * and the activation function need no barrier and their rows are still in cache. Idle threads steal
 * only the last chunks. Activations are the token vectors that a product reads (layout.h): for
 * skinny GEMM each thread quantizes its own copy of them, for GEMM the threads share the work. */
#ifndef AK_ENGINE_CPU_CPU_H
#define AK_ENGINE_CPU_CPU_H

#include "engine/backend/backend.h"
#include "engine/backend/profile.h"
#include "base/thread.h"
#include "engine/cpu/blas.h"
#include "engine/cpu/kernels.h"
#include "engine/cpu/slices.h"
#include "engine/dispatch/table.h"
#include "engine/dist/comm.h"
#include "files/weights/composed.h"

enum {
    AK_HALVES_TOKENS_MIN = 128, /* of a pass that runs in two halves */
    AK_ATTN_ROWS_MAX = 32,      /* query rows of one work item */
    AK_TERMS_MAX = 2,
    AK_TERM_TILES_MAX = 64,        /* tiles for which both terms' products are added at once */
    AK_DEQUANTIZE_ROWS_SKINNY = 4, /* stored rows dequantized at once: skinny GEMM, GEMM */
    AK_DEQUANTIZE_ROWS_GEMM = 16,
    /* tokens: above it, skinny GEMM over F8 would dequantize rows a second time */
    AK_SKINNY_F8_MAX = 3,
    /* bytes of one BF16 panel: about half of a 1 MiB L2 cache (bench/notes) */
    AK_PANEL_BF16_BYTES_MAX = 576 * 1024,
    /* bytes of all cached f32 panels of a model; if they need more, none is cached */
    AK_PANEL_CACHE_BYTES_MAX = 96 << 20,
    /* passes that want only the largest logits: rows, and rows times logits wanted, at most */
    AK_BEST_ROWS_MAX = AK_SKINNY_MAX / AK_TERMS_MAX,
    AK_BEST_MAX = 64,
    /* skinny GEMM: bytes of tile rows that are read again, for more tokens or residual blocks; half
     * an L2 cache of 512 KiB */
    AK_SKINNY_CACHE_BYTES = 256 * 1024,
    AK_CHUNKS_PER_THREAD = 20, /* chunks of a stage per thread */
    AK_CHUNKS_STEALABLE = 2    /* of these, open to stealing */
};

/* Rows of k elements in one BF16 panel. */
static inline size_t ak_cpu_panel_bf16_rows(const struct ak_cpu_kernels *kernels, size_t k)
{
    size_t step = kernels->panel_bf16_step, max = kernels->panel_bf16_max,
           rows = AK_PANEL_BF16_BYTES_MAX / (k * sizeof(uint16_t)) / step * step;
    return rows < step ? step : rows > max ? max : rows;
}

/* Rows of k floats per call of BLAS. */
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
    bool prefers_blas;                     /* use BLAS even if BF16 kernels could run instead */
    bool uses_blas[AK_CPU_ACT_TYPE_COUNT]; /* per activation format: GEMM goes to BLAS */
};

struct ak_cpu_prepared;
struct ak_cpu_step;
struct ak_cpu_times;
typedef void ak_cpu_step_fn(const struct ak_cpu_step *step, struct ak_cpu_prepared *p,
                            unsigned thread);

struct ak_cpu_step {
    ak_cpu_step_fn *run;
    const struct ak_command *command;
    enum ak_op_row_set row_set;
    bool barrier_skinny, barrier_gemm; /* barrier after this step, by the number of tokens */
    bool is_chunked;                   /* runs on a chunk of the weight's rows */
    bool is_stealable;                 /* is_chunked: the stage is large enough to repay stealing */
    uint32_t n_rows;                   /* rows of the weight's largest part; 0: no weight */
    /* PREPARE: the linear commands that read its result; SUM_INPUTS: those whose input it reads */
    const struct ak_command *linears;
    uint32_t n_linears;
    /* ALL_GATHER, and PREPARE after it: the command whose shards may be exchanged as activations */
    const struct ak_command *gather;
    /* PREPARE and its product: nothing reads the slot afterwards, so GEMM over f32 panels
     * interleaves the tokens there */
    bool consumes_input;
};

/* Consecutive tokens of one sequence in a batch. `end` is the position after the sequence's last
 * token in the batch. For cross-attention: of sequences with one cross sequence, and `end` is its
 * number of tokens. */
struct ak_cpu_token_block {
    uint32_t first, n, end;
};

/* An estimate of a row's logit. */
struct ak_cpu_estimate {
    float value;
    uint32_t row;
};

/* What one thread found in pass `pass` (output.c). */
struct ak_cpu_best {
    uint64_t pass;
    uint32_t n[AK_BEST_ROWS_MAX]; /* estimates of each row of logits */
    float reach[AK_BEST_ROWS_MAX];
    struct ak_cpu_estimate list[AK_BEST_MAX]; /* [rows of logits][n_best], largest first */
    uint32_t *cursors;                        /* [threads], into their lists */
};

/* Shared by the threads (output.c). */
struct ak_cpu_output {
    bool has_slices; /* and its logits are not edited */
    uint32_t n_tiles;
    float *tile_bounds;         /* [AK_BEST_ROWS_MAX][n_tiles]: upper bounds */
    float largest[AK_BEST_MAX]; /* [rows of logits][n_best] */
};

struct ak_cpu_residual {
    uint32_t row, block;
};

/* Residual blocks of all rows of activations (residual.c). */
struct ak_cpu_residuals {
    uint8_t *unsorted, *blocks;   /* [rows] activations of one block: by row; in the list's order */
    uint32_t *found;              /* [rows] which block */
    struct ak_cpu_residual *list; /* [rows] sorted by block, within each thread's rows */
};

/* What a rank has of a row whose shards are exchanged as activations (ranks_shards.c). */
struct ak_cpu_shard_part {
    size_t begin, end;       /* elements */
    size_t first, n_blocks;  /* whole blocks */
    size_t n_before, n_left; /* elements of cut blocks, before and after these */
    /* bytes: where they are in the row as it is sent, which has so many; of the ranks before */
    size_t residual_at, cut_at, bytes, at;
};

/* Working memory of one thread. */
struct ak_cpu_scratch {
    uint8_t *activations[AK_CPU_ACT_COUNT]; /* skinny GEMM: AK_SKINNY_MAX tokens, all terms */
    /* the same for residual blocks, per format; counts of each block while they are sorted */
    struct ak_cpu_residuals residuals[AK_CPU_ACT_TYPE_COUNT];
    uint32_t *block_counts;
    uint8_t *panel_i8;
    float *terms;              /* products of all terms, before they are added */
    uint8_t *joined;           /* tile rows of Q8_0, joined from slices, for one panel */
    struct ak_cpu_best *best;  /* with slices only */
    float *row;                /* one row of activations */
    float *ordered_row;        /* the row in the weight's column order */
    float *weight_rows;        /* dequantized weight rows, or an f32 or BF16 panel */
    float *blas;               /* ak_cpu_blas_rows() dequantized weight rows */
    float *q, *out, *page_out; /* AK_ATTN_ROWS_MAX heads each */
    /* queries quantized for quantized keys: AK_TERMS_MAX terms each */
    uint8_t *q_terms;
    /* one page's keys or values as f32, if no kernel reads them as stored */
    float *page_f32;
    /* scores, then softmax weights: [AK_ATTN_ROWS_MAX][tokens of a page] */
    float *weights;
    uint32_t chunk, n_chunks; /* first chunk and number of chunks of the running stage */
    struct ak_backend_counts counts;
};

/* Stealing state of one thread: stage number and chunks already taken, in 64 bits. */
struct ak_cpu_steal_state {
    _Alignas(AK_LINE_BYTES) _Atomic uint64_t stolen;
};

/* Rows of AK_OP_ROWS_EXPERTS in the current pass, ordered by expert, then by token. */
struct ak_cpu_routes {
    uint32_t *row_of;   /* [tokens][experts used]: expert row */
    uint32_t *token_of; /* [rows]: token */
    uint32_t *begin;    /* [experts + 1]: first row of each expert */
    float *gates;       /* [tokens]: gate of the shared expert */
};

/* Panel cache: f32 panels of a weight, kept between passes, part after part. Each part is padded
 * to whole tile rows, and is_unpacked has one flag per tile row. A panel has `unit` rows. Valid for
 * any number of tokens. */
struct ak_panel_cache {
    float *panels; /* NULL: unpacked in each pass */
    bool *is_unpacked;
};

struct ak_cpu_prepared {
    struct ak_cpu *cpu;
    const struct ak_table *table;
    const struct ak_weights *weights;
    const struct ak_spec *spec;
    struct ak_pool *pool;
    unsigned n_threads;
    uint32_t max_rows[AK_OP_ROWS_COUNT]; /* maximum rows per row set */
    /* GEMM: chunks consist of whole units of this many rows, those of an int8 or an f32 panel */
    uint32_t unit;
    uint32_t context;
    struct ak_cpu_step *steps;
    uint32_t n_steps;
    struct ak_cpu_times *times;               /* NULL: off */
    struct ak_backend_input_sums *input_sums; /* [packed weights]; NULL: off */
    struct ak_cpu_pass {
        const struct ak_batch *batch;
        uint64_t number;   /* of passes so far, the current one included */
        uint64_t n_stages; /* of these passes */
        float *cos, *sin;  /* [tables][max tokens][rope_dims/2] */
        struct ak_cpu_routes routes;
        struct ak_cpu_token_block *blocks, *cross_blocks;
        uint32_t n_blocks, n_cross_blocks;
        int32_t *sampled;
        int32_t *candidates; /* ARGMAX: [max logits][threads] */
        float *candidate_values;
        float *partials; /* [heads][pages][partial_stride]; see attention.c */
        size_t partial_stride;
        struct ak_cpu_output output;
        struct ak_cpu_steal_state *steal_states; /* [threads] */
    } pass;
    struct ak_cpu_memory {
        float *arena[AK_OP_ROWS_COUNT];
        uint32_t arena_rows[AK_OP_ROWS_COUNT]; /* max_rows, rounded up for interleaved tokens */
        /* RoPE frequencies, adjusted to this context */
        const float *frequencies[AK_SPEC_ROPE_TABLES_MAX];
        const float *zeros;        /* bias of norms without one */
        float *distances, *slopes; /* ALiBi: |i − (context − 1)|; slope per head */
        /* GEMM: max tokens, shared by all threads */
        uint8_t *activations[AK_CPU_ACT_COUNT];
        struct ak_cpu_residuals residuals[AK_CPU_ACT_TYPE_COUNT];
        struct ak_panel_cache *panel_cache; /* [packed weights]; NULL: nothing is cached */
        struct ak_cpu_scratch *scratch;     /* [threads] */
        /* two allocations that hold all that is prepared: what stays between passes, and the rest
         */
        void *kept;
        size_t kept_bytes;
        struct ak_cpu_workspace *workspace; /* prepare.c */
        size_t bytes;                       /* without a lent workspace */
    } memory;
    struct ak_cpu_kv {
        uint8_t *pages;
        struct ak_kv_shape shape;
        /* per head: one group of keys of a page, all its keys, its keys and values */
        size_t key_group_bytes, keys_bytes, head_bytes;
        size_t value_bytes, query_bytes; /* one token's values, one quantized query */
    } kv;
    struct ak_cpu_ranks {
        struct ak_comm *comm; /* to other ranks; NULL: there are none */
        /* for passes in two halves, which run in turns: the first one's buffers; NULL: there are
         * none */
        struct ak_cpu_prepared *first_half;
        uint32_t *half_logit_rows; /* of the second half */
        enum ak_comm_lane lane; /* of ALL_GATHER in this pass; AK_COMM_NOW: it is not in halves */
        size_t *shard_begins; /* [ranks + 1]: where each rank's shard begins, in bytes (ranks.c) */
        uint8_t *sent_shards; /* ALL_GATHER: shards of activations of all ranks (ranks_shards.c) */
        struct ak_cpu_shard_part *shard_parts; /* [ranks]: of these */
        void *best;                            /* the largest logits of each rank (ranks_best.c) */
        float *sent;                           /* SEND: the rows that the next rank gets */
    } ranks;
};

/* prepare.c */
ak_status ak_cpu_prepare(struct ak_backend *b, const struct ak_table *table,
                         const struct ak_weights *weights, const struct ak_spec *spec,
                         const struct ak_backend_table_options *options, void *kv,
                         struct ak_backend_table **out, struct ak_error *error);
void ak_cpu_release(struct ak_backend_table *p);

/* The blocks of tokens that an ATTENTION command processes in this pass. (attention.c) */
const struct ak_cpu_token_block *ak_cpu_blocks(const struct ak_cpu_prepared *p,
                                               const struct ak_op_attention_params *a, uint32_t *n);

/* ---- Times (breakdown.c) ------------------------------------------------ */
/* Run a step, or wait at the barrier after it, and add the time; times must be on. */
void ak_cpu_time_step(struct ak_cpu_prepared *p, const struct ak_cpu_step *step, unsigned thread);
void ak_cpu_time_barrier(struct ak_cpu_prepared *p, const struct ak_cpu_step *step,
                         unsigned thread);
bool ak_cpu_enable_times(struct ak_backend_table *p, bool on);
bool ak_cpu_get_time(const struct ak_backend_table *p, size_t i, struct ak_backend_time *out);
void ak_cpu_free_times(struct ak_cpu_prepared *p);

/* ---- Input sums (input_sums.c) ------------------------------------------ */
/* Plans the steps anew, with those that add to `sums`, or without them. Not during a pass. */
void ak_cpu_sum_inputs(struct ak_backend_table *p, struct ak_backend_input_sums *sums);

/* plan_steps.c: turns the table's commands into steps, at most AK_CPU_STEPS_PER_COMMAND each. */
enum { AK_CPU_STEPS_PER_COMMAND = 5 };
void ak_cpu_plan_steps(struct ak_cpu_prepared *p);

/* ---- The largest logits alone (output.c) -------------------------------- */
/* Whether this pass of the output's product reads the low slice of few rows only. */
bool ak_cpu_wants_best(const struct ak_cpu_prepared *p, const struct ak_cpu_step *step);
/* The product's first step, on rows [begin, end). */
void ak_cpu_output_estimate(const struct ak_cpu_step *step, struct ak_cpu_prepared *p,
                            unsigned thread, uint32_t begin, uint32_t end);
/* Steps after it; they do nothing if all logits are wanted. */
ak_cpu_step_fn ak_cpu_step_output_largest, ak_cpu_step_output_rest;

/* ---- Logits of other ranks (ranks_best.c) ------------------------------- */
/* COLLECT: bytes of the lists that a rank sends in place of all logits; 0: all are wanted. */
size_t ak_cpu_best_bytes(const struct ak_cpu_prepared *p, const struct ak_cpu_step *step);
/* Its steps in that case: makes this thread's lists; one thread exchanges them. */
void ak_cpu_prepare_best(struct ak_cpu_prepared *p, const struct ak_cpu_step *step,
                         unsigned thread);
void ak_cpu_collect_best(struct ak_cpu_prepared *p, const struct ak_cpu_step *step);

/* ---- Shards of activations (ranks_shards.c) ------------------------------ */
/* Whether the result of an ALL_GATHER command can be exchanged in the format in which the products
 * after it read it. The same on all ranks. */
bool ak_cpu_can_gather_activations(const struct ak_cpu_prepared *p, const struct ak_command *c);
/* Whether it is in this pass: `step` belongs to the command, or is the PREPARE after it. */
bool ak_cpu_gathers_activations(const struct ak_cpu_prepared *p, const struct ak_cpu_step *step);
/* Bytes of all ranks' shards. */
size_t ak_cpu_shard_bytes(const struct ak_cpu_prepared *p, const struct ak_command *c, size_t rows);
/* In that case: what ak_cpu_step_quantize_shard has made to be exchanged, as one row; PREPARE. */
struct ak_comm_rows ak_cpu_sent_shards(const struct ak_cpu_step *step, struct ak_cpu_prepared *p);
void ak_cpu_prepare_shards(const struct ak_cpu_step *step, struct ak_cpu_prepared *p,
                           unsigned thread);

/* run.c */
void ak_cpu_run(struct ak_backend_table *p, const struct ak_batch *batch);

/* Number of rows of a row set in the current pass. */
uint32_t ak_cpu_rows(const struct ak_cpu_prepared *p, enum ak_op_row_set row_set);

static inline bool ak_cpu_is_skinny(uint32_t rows)
{
    return rows <= AK_SKINNY_MAX;
}

/* First row of a slot, whose rows are ak_cpu_stride() elements apart. */
static inline float *ak_cpu_slot(const struct ak_cpu_prepared *p, uint32_t slot)
{
    const struct ak_op_slot *s = &p->table->slots[slot],
                            *whole = s->is_part ? &p->table->slots[s->whole] : s;
    return p->memory.arena[s->row_set] + (size_t)whole->offset * p->memory.arena_rows[s->row_set] +
           (s->is_part ? s->at : 0);
}

static inline size_t ak_cpu_stride(const struct ak_cpu_prepared *p, uint32_t slot)
{
    const struct ak_op_slot *s = &p->table->slots[slot];
    return s->is_part ? p->table->slots[s->whole].width : s->width;
}

/* Whether the rows of a command's input are a part of those of its output. */
static inline bool ak_cpu_is_in_place(const struct ak_cpu_prepared *p, const struct ak_command *c)
{
    return p->table->slots[c->in].is_part && p->table->slots[c->in].whole == c->out;
}

/* Terms per token of quantized activations: 1, or 2 with a residual term. Kernels treat a residual
 * term as one more token. Logits get one: there 8 bits lose the most accuracy, and the second term
 * costs the least. Queries and keys get one if the quantization scheme uses float activations
 * elsewhere, because the softmax magnifies their errors. Only GGML's formats expect rounded
 * activations. */
static inline uint32_t ak_cpu_n_terms(const struct ak_pack_weight *packed)
{
    bool twice =
        packed->linear == AK_OP_LINEAR_OUTPUT ||
        (packed->linear == AK_OP_LINEAR_QKV && ak_composed_is_foreign(packed->parts[0].view));
    return twice && ak_cpu_type_act_format(packed->type) != AK_CPU_ACT_F32 ? AK_TERMS_MAX : 1;
}

/* First row of chunk `chunk` when n rows are split into the chunks of all threads. */
uint32_t ak_cpu_chunk_first_row(const struct ak_cpu_prepared *p, uint32_t n, uint32_t chunk);

/* Rows [*begin, *end) of n in the current chunks of `thread`: whole tile rows, and for GEMM whole
 * panels. */
void ak_cpu_chunk_rows(const struct ak_cpu_prepared *p, uint32_t n, unsigned thread,
                       uint32_t *begin, uint32_t *end);

/* Hadamard transform of n floats in place, in blocks of the largest power of two that divides
 * n, unscaled. Returns the block size, the factor by which products of two transformed vectors
 * grow. */
size_t ak_cpu_hadamard(float *x, size_t n);

/* Keys and values of one head in one page. */
uint8_t *ak_cpu_kv_head(const struct ak_cpu_prepared *p, uint32_t page, uint32_t layer,
                        uint32_t head);

/* First key of a page and head as Hadamard-transformed floats, stored after the key groups. */
static inline float *ak_cpu_first_key(const struct ak_cpu_prepared *p, const uint8_t *keys)
{
    return (float *)(uintptr_t)(keys +
                                AK_KV_PAGE_TOKENS / AK_KV_GROUP_TOKENS * p->kv.key_group_bytes);
}

/* Whether GEMM rounds activations to BF16 for this weight. */
static inline bool ak_cpu_uses_bf16(const struct ak_cpu *cpu, const struct ak_pack_weight *packed)
{
    return cpu->relaxed && cpu->kernels.unpack_panel_bf16[packed->type] &&
           packed->cols % AK_LANES == 0;
}

/* Whether BLAS computes the n-token product with this weight. */
static inline bool ak_cpu_uses_blas(const struct ak_cpu *cpu, const struct ak_pack_weight *packed,
                                    size_t n)
{
    return n >= AK_CPU_BLAS_TOKENS_MIN && packed->n_experts == 0 &&
           cpu->uses_blas[ak_cpu_type_act_format(packed->type)] &&
           !(ak_cpu_uses_bf16(cpu, packed) && !cpu->prefers_blas);
}

/* Whether an n-token product uses the skinny GEMM kernels: up to the chip profile's limit, for
 * tiles up to the kernels' limit if the profile's is AK_SKINNY_MAX. Above AK_SKINNY_F8_MAX tokens
 * F8 rows are unpacked into panels, because skinny GEMM would dequantize them again for further
 * tokens. */
static inline bool ak_cpu_uses_skinny(const struct ak_cpu *cpu, const struct ak_pack_weight *packed,
                                      size_t n)
{
    if (packed->type == AK_QUANT_F8 && n > AK_SKINNY_F8_MAX)
        return false;
    enum ak_cpu_act_format format = ak_cpu_type_act_format(packed->type);
    size_t max = ak_backend_profile_skinny_max(&cpu->profile, format);
    if (max == AK_SKINNY_MAX && format != AK_CPU_ACT_F32)
        max = cpu->kernels.dot_tiles_tokens_max;
    return n <= max;
}

/* Quantizes n floats to `terms` terms, each the rounding error left by the terms before it.
 * Overwrites x if terms > 1. (activations.c) */
void ak_cpu_quantize_terms(const struct ak_cpu_kernels *kernels, enum ak_cpu_act_format format,
                           float *x, size_t n, uint32_t terms, uint8_t *out);

/* Replaces x by its rounding error after quantizing. (activations.c) */
void ak_cpu_subtract_quantized(enum ak_cpu_act_format format, float *x, size_t n,
                               const uint8_t *activations);

/* Bytes of a block of quantized activations. */
static inline size_t ak_cpu_act_block_bytes(enum ak_cpu_act_format format)
{
    return format == AK_CPU_ACT_Q8_32 ? sizeof(struct ak_cpu_act32) : sizeof(struct ak_cpu_act256);
}

/* ---- Residual blocks (residual.c) --------------------------------------- */
/* Whether products with this weight have them. */
bool ak_cpu_wants_residual(const struct ak_pack_weight *packed);

static const uint32_t AK_CPU_NO_BLOCK = UINT32_MAX;

/* The block of a row of n elements whose squared scale is more than 0.4 of the sum of all; the
 * largest of blocks [begin, end), which is the former if that is among them. AK_CPU_NO_BLOCK:
 * there is none, or all are zero. */
uint32_t ak_cpu_dominant_block(enum ak_cpu_act_format format, const uint8_t *activations, size_t n);
uint32_t ak_cpu_largest_block(enum ak_cpu_act_format format, const uint8_t *activations,
                              size_t begin, size_t end);

/* Quantizes the rounding error of a block; x are its floats, `quantized` what they became. */
void ak_cpu_quantize_error(const struct ak_cpu_kernels *kernels, enum ak_cpu_act_format format,
                           const float *x, const uint8_t *quantized, uint8_t *out);

/* Quantizes the rounding error of a row's dominant block, if there is one; x are the row's n
 * floats, `activations` what they became. */
void ak_cpu_find_residual(const struct ak_cpu_kernels *kernels, enum ak_cpu_act_format format,
                          const float *x, size_t n, const uint8_t *activations, size_t row,
                          const struct ak_cpu_residuals *r);

/* Sorts the residual blocks of rows [begin, end) of n elements. `counts` has n/32 + 1 elements. */
void ak_cpu_sort_residuals(enum ak_cpu_act_format format, size_t n, size_t begin, size_t end,
                           const struct ak_cpu_residuals *r, uint32_t *counts);

/* Adds the products of n rows' residual blocks with n_tiles tile rows to y. */
void ak_cpu_add_residuals(const struct ak_cpu_kernels *kernels, const struct ak_pack_weight *packed,
                          const uint8_t *tiles, size_t n_tiles, const struct ak_cpu_residuals *r,
                          size_t n, struct ak_cpu_scratch *scratch, float *y, size_t y_stride);

/* y[t] = terms[2t] + terms[2t + 1] for n rows of `width` floats: adds the products of a token's two
 * terms. (linear.c) */
void ak_cpu_add_terms(const float *terms, size_t n, size_t width, float *y, size_t y_stride);

/* Activation format of an n-token product with this weight. (activations.c) */
enum ak_cpu_act_format ak_cpu_select_act_format(const struct ak_cpu *cpu,
                                                const struct ak_pack_weight *packed, size_t n);
/* The same in a prepared table: one with a panel cache has panels of floats alone. */
enum ak_cpu_act_format ak_cpu_get_act_format(const struct ak_cpu_prepared *p,
                                             const struct ak_pack_weight *packed, size_t n);
/* Whether PREPARE, and the product after it, have interleaved floats in place of the slot's rows.
 */
bool ak_cpu_interleaves_in_place(const struct ak_cpu_step *step, enum ak_cpu_act_format format,
                                 size_t rows);

/* Panel-cache rows before part i, each part rounded up to whole tile rows; all rows for i =
 * n_parts. */
static inline size_t ak_cpu_panel_cache_rows(const struct ak_pack_weight *packed, uint32_t i)
{
    size_t rows = 0;
    for (uint32_t j = 0; j < i; j++)
        rows += (packed->parts[j].rows + AK_TILE_ROWS - 1) / AK_TILE_ROWS * AK_TILE_ROWS;
    return rows;
}

/* Row of batch token t in `values`, the cosines or sines of rotation table `table`. */
static inline float *ak_cpu_angles(const struct ak_cpu_prepared *p, float *values, uint32_t table,
                                   size_t t)
{
    return values +
           ((size_t)table * p->max_rows[AK_OP_ROWS_TOKENS] + t) * (p->spec->config.rope_dims / 2);
}

/* Recurrent state of token t's sequence, from float `at` on. */
static inline float *ak_cpu_state(const struct ak_cpu_prepared *p, size_t t, uint64_t at)
{
    return (float *)(void *)(p->kv.pages +
                             ak_kv_state_offset(&p->kv.shape, p->pass.batch->sequences[t])) +
           at;
}

/* Runs a NORM command on one row: reads elements [at, at + n) of x, writes out. */
void ak_cpu_norm(const struct ak_cpu_prepared *p, const struct ak_command *c,
                 const float *restrict x, float *restrict out);

/* ---- Ops ---------------------------------------------------------------- */
/* How the CPU runs the commands of an op: ak_cpu_op_<name>, beside its step functions. */
struct ak_cpu_op {
    ak_cpu_step_fn *steps[AK_CPU_STEPS_PER_COMMAND]; /* one after another; NULL: none */
    bool is_chunked;        /* the last step runs on a chunk of the rows of the stage's weight */
    bool has_rows_of_input; /* runs per row of `in`, not of `out` */
};

#define AK_OP(symbol, name, ...) extern const struct ak_cpu_op ak_cpu_op_##name;
#include "engine/op/op.def"
#undef AK_OP

/* Steps that plan_steps.c merges or tells apart. */
ak_cpu_step_fn ak_cpu_step_norm, ak_cpu_step_sum_inputs, ak_cpu_step_prepare, ak_cpu_step_linear,
    ak_cpu_step_experts, ak_cpu_step_copy_shard, ak_cpu_step_quantize_shard, ak_cpu_step_send_shard,
    ak_cpu_step_await_shards;
/* A part of EMBED, and the first step of RECEIVE. */
ak_cpu_step_fn ak_cpu_step_angles;

#endif
