/* Backend interface: the vtable that executes dispatch tables, the geometry of a KV pool, and the
 * batch of a pass. It hides whether the CPU, a device or both run a model. Implemented by
 * engine/cpu/, opencl/ and engine/backends/split.c. engine/pack/ packs through it, engine/session/
 * runs passes, engine/persist/ saves and restores KV pages, api/ asks for devices and measurements,
 * bench/ times backends. engine/generate/ uses only struct ak_gumbel_params. */
#ifndef AK_ENGINE_BACKEND_BACKEND_H
#define AK_ENGINE_BACKEND_BACKEND_H

#include "engine/backend/shapes.h"
#include "base/error.h"
#include "base/thread.h"
#include "engine/spec/model.h"

struct ak_backend;
struct ak_backend_table;
struct ak_table;           /* engine/dispatch/table.h */
struct ak_weights;         /* engine/pack/pack.h */
struct ak_backend_profile; /* engine/backend/profile.h */
struct ak_comm;            /* engine/dist/comm.h */

/* Backend options: what is chosen when a backend is opened. */
struct ak_backend_options {
    const char *cpu;                              /* ISA; NULL: the best */
    const struct ak_backend_profile *cpu_profile; /* copied; NULL: defaults */
    /* device number or part of its name; NULL: the first */
    const char *device;
    const char *cache_dir; /* folder for compiled programs; NULL: the default one */
    bool no_cache;         /* nothing is kept on disk */
    bool relaxed;          /* kernels may round differently */
    enum akunu_prefill prefill;
    const struct ak_log *log; /* may be NULL */
};

enum { AK_KV_TYPE_COUNT = AKUNU_KV_Q5_1 + 1 };

/* Geometry of a KV pool. A page holds AK_KV_PAGE_TOKENS tokens of all layers with attention: per
 * head the keys, in groups of tokens, then the values. After the pages comes a recurrent state per
 * sequence, for conv and delta layers. At position 0 a state counts as zeros, whatever the memory
 * holds. */
#define AK_KV_NO_PAGE UINT32_MAX /* in a page table: dropped, and skipped by attention */
struct ak_kv_shape {
    uint32_t n_layers, n_kv_heads, head_dim;
    enum akunu_kv_type k_type, v_type;
    uint32_t n_pages;
    uint64_t state_elems; /* floats of a sequence's recurrent state; 0: none */
    uint32_t n_states;    /* sequences with a state */
};
enum ak_quant_type ak_kv_stored_type(enum akunu_kv_type type);
/* Bytes of one head in one page: one key group, all keys, all values. Quantized types need head_dim
 * % 32 == 0 and one more key as floats. */
uint64_t ak_kv_group_bytes(const struct ak_kv_shape *shape);
uint64_t ak_kv_k_bytes(const struct ak_kv_shape *shape);
uint64_t ak_kv_v_bytes(const struct ak_kv_shape *shape);
uint64_t ak_kv_page_bytes(const struct ak_kv_shape *shape); /* 0: overflow */
uint64_t ak_kv_pool_bytes(const struct ak_kv_shape *shape); /* 0: overflow */
/* Byte of the pool where a sequence's state begins. */
uint64_t ak_kv_state_offset(const struct ak_kv_shape *shape, uint32_t sequence);

/* What a session asks of a prepared table. */
struct ak_backend_table_options {
    unsigned n_threads;
    const struct ak_cpus *cpus; /* CPUs to pin threads to; NULL: the system places them */
    /* shared pool of n_threads, pinned already; NULL: the table gets a pool of its own */
    struct ak_pool *pool;
    uint32_t context;    /* tokens of a sequence, at most */
    uint32_t max_tokens; /* tokens of a pass, at most */
    uint32_t max_logits; /* rows of logits of a pass, at most */
    struct ak_kv_shape kv;
    /* A table of the same backend whose activations this one may overwrite, and whose passes may
     * overwrite this one's: results are read before the next pass of either. A backend may ignore
     * it. NULL: none */
    const struct ak_backend_table *lender;
    struct ak_comm *comm; /* to the other ranks that share the model; NULL: there are none */
};

/* The tables of a session, of which check_memory computes the sizes. */
struct ak_backend_tables {
    const struct ak_table *table;
    const struct ak_table *encoder; /* of a speech model; NULL: none */
    uint32_t encoder_tokens;        /* of a pass of the encoder, at most */
};

/* Gumbel sampling parameters; temperature 0: greedy. */
struct ak_gumbel_params {
    float temperature;
    uint64_t seed;
};

/* Where scores of cross-attention go, before the softmax: that of token t of the batch with
 * position p of its cross sequence to data[matrix · matrix_stride + t · stride + p]. */
struct ak_batch_scores {
    float *data;
    const int32_t *matrices; /* [layers · n_heads]: the head's matrix; negative: it is not wanted */
    uint32_t n_heads;        /* of the model, of which a rank has the first ones */
    size_t matrix_stride, stride;
};

/* Adds up the attention weights that the batch's queries give to each token of their sequence:
 * sums[(layer · n_kv_heads + head) · stride + position], over the tokens of the batch and the query
 * heads of a KV head. Layers are those of the KV cache; cross-attention is left out. A weight
 * counts in units of 1 / AK_IMPORTANCE_ONE, and one that is no number as 0: sums of integers are
 * the same bits whatever the threads, the ISA, the ranks, and how the queries are split into
 * batches. */
#define AK_IMPORTANCE_ONE 0x1p32f
struct ak_batch_importance {
    uint64_t *sums;
    size_t stride;
    uint32_t n_kv_heads; /* of the model, of which a rank has the first ones */
};

/* One pass. Arrays have n entries; pages[s] is the page table of sequence s, in which AK_KV_NO_PAGE
 * stands for tokens that were dropped. A sequence's tokens are contiguous, in ascending
 * positions. A device may read frames and write scores until sync. */
struct ak_batch {
    uint32_t n;
    const int32_t *tokens;
    const uint32_t *positions;
    const uint32_t *sequences; /* index into pages */
    /* by sequence: the position from which on tokens are of type 1; NULL: all are of type 0 */
    const uint32_t *type_starts;
    const uint32_t *const *pages;
    uint32_t n_logits;
    const uint32_t *logit_rows; /* ascending indices of tokens */
    /* Only the n_best largest logits of each row are wanted, and those that equal the last of them;
     * the others may be minus infinity. 0: all are wanted. */
    uint32_t n_best;
    struct ak_gumbel_params gumbel;
    /* Replaces the tokens' embeddings in EMBED: row t is at hidden + t · hidden_stride floats.
     * NULL: the embeddings. */
    const float *hidden;
    size_t hidden_stride;
    /* FRAMES, by sequence: its frames, one after another, in elements of the op's step */
    const float *const *frames;
    /* cross-attention, by sequence: the cross sequence, whose K and V it reads, and its tokens
     */
    const uint32_t *cross_sequences, *cross_lengths;
    const struct ak_batch_scores *scores; /* of cross-attention; NULL: they are not wanted */
    /* The tokens are in the cache already, and are of one sequence: their keys and values are read,
     * not written. NULL: a pass like others */
    const struct ak_batch_importance *importance;
    /* The input of every product is wanted as floats, in its slot, for sum_inputs. */
    bool wants_inputs;
};

/* Type of the batch's token t. */
static inline uint32_t ak_batch_token_type(const struct ak_batch *b, uint32_t t)
{
    return b->type_starts && b->positions[t] >= b->type_starts[b->sequences[t]];
}

struct ak_backend_counts {
    uint64_t gemv, skinny, gemm;
};

/* Time of one kind of operation, over the passes since times were switched on. */
struct ak_backend_time {
    const char *name;             /* "attention", "linear qkv" */
    uint64_t calls;               /* commands */
    double seconds, wait_seconds; /* mean of the threads: at work, and then at the barrier */
    double bytes, ops; /* weights or keys and values read; products and sums. 0: not counted */
};

/* How products with weights of a type run. */
struct ak_backend_type_info {
    bool integers; /* activations are quantized, products are integers */
    bool packed;   /* weights have a packed layout; else stored rows are read */
};

/* Input sums of a packed weight, which has one matrix or one per expert: by element of the input
 * the sum of its squares over all rows of activations. */
struct ak_backend_input_sums {
    double *squares;  /* [matrices][cols]; NULL: not wanted */
    uint64_t *counts; /* [matrices]: rows */
};

/* Gets 0 … 1; returns false to cancel. */
typedef bool ak_backend_progress_fn(double fraction, void *user);

struct ak_backend_ops {
    const char *name;
    /* True if this machine can run it. */
    bool (*is_available)(void);

    /* About the machine, without an open backend. The CPU's alone; elsewhere NULL. */
    /* Name of usable ISA i; the last one is the best. NULL: past the last. */
    const char *(*isa_name)(size_t i);
    /* Why the ISA `name` is not usable, as a clause without a period; NULL: it is. */
    const char *(*isa_problem)(const char *name);
    void (*type_info)(enum ak_quant_type type, struct ak_backend_type_info *out);
    /* Measures what the bits of `what` (AKUNU_MEASURE_...) ask for; the rest of *out is 0. isa
     * NULL: the best; AKUNU_ERROR_ARGUMENT: not usable. */
    ak_status (*measure)(const char *isa, unsigned n_threads, unsigned what,
                         struct akunu_roofline *out, struct ak_error *error);
    /* Measures bytes per second at which a product of one token reads the weights of each type, on
     * all threads; 0: no kernel reads the type, or the machine cannot run it. *step: seconds of a
     * barrier. Takes about a second. */
    ak_status (*measure_types)(const char *isa, unsigned n_threads, double rates[AK_QUANT_COUNT],
                               double *step, struct ak_error *error);
    /* Sets skinny_max and blas of a chip profile where a value is clearly faster than the default.
     * The fastest of n_runs runs counts. progress may be NULL. */
    ak_status (*tune)(const char *isa, unsigned n_threads, unsigned n_runs,
                      ak_backend_progress_fn *progress, void *user, struct ak_backend_profile *out,
                      struct ak_error *error);

    /* Measures on the packed weights what *measured lacks, in at most 0.2 s, then uses *measured
     * with the values that `user` sets above it. NULL: the backend has no profile. */
    ak_status (*calibrate)(struct ak_backend *b, const struct ak_weights *weights,
                           struct ak_pool *pool, const struct ak_backend_profile *user,
                           struct ak_backend_profile *measured, struct ak_error *error);

    /* Describes device i; `size` is the caller's. NULL: the backend has no devices to choose
     * from. */
    ak_status (*device_info)(size_t i, struct akunu_device_info *out, struct ak_error *error);
    ak_status (*open)(const struct ak_backend_options *options, struct ak_backend **out,
                      struct ak_error *error);
    void (*close)(struct ak_backend *b);
    const char *(*describe)(const struct ak_backend *b); /* "avx512" */
    bool (*supports)(const struct ak_backend *b, enum ak_op op, enum ak_quant_type type);
    /* True if a token's logits are the same bits in every GEMV and skinny-GEMM pass. NULL:
     * false. */
    bool (*is_batch_invariant)(const struct ak_backend *b);

    /* Composite backends: returns the backend that owns `layer` (AK_ROLE_NO_LAYER: weights outside
     * layers). NULL: not composite. */
    struct ak_backend *(*layer_backend)(struct ak_backend *b, int layer);

    /* The layout, with its version, that a weight of an operator is packed in, and the packed size
     * of rows × cols in it; 0 bytes: zero-copy, used in place. */
    uint32_t (*layout)(const struct ak_backend *b, enum ak_op_linear linear,
                       const struct ak_view *view);
    uint64_t (*packed_bytes)(const struct ak_backend *b, uint32_t layout, enum ak_quant_type type,
                             uint32_t rows, uint32_t cols);
    /* Rows of a group. Groups follow each other, each of the packed size of that many rows. */
    uint32_t (*group_rows)(const struct ak_backend *b, uint32_t layout);
    /* Packs rows [first, first + n) of a stored matrix to `to`: whole groups, except at the
     * matrix's end. Called by several threads. */
    void (*pack)(const struct ak_backend *b, uint32_t layout, const struct ak_view *view,
                 uint32_t first, uint32_t n, void *to);

    /* Devices with their own memory, else NULL. kv_bytes_max: most bytes a KV cache of all layers
     * may take beside the weights. check_memory: fails if a session does not fit and says how many
     * layers would. Neither allocates. */
    uint64_t (*kv_bytes_max)(const struct ak_backend *b, const struct ak_weights *weights);
    ak_status (*check_memory)(const struct ak_backend *b, const struct ak_backend_tables *tables,
                              const struct ak_weights *weights, const struct ak_spec *spec,
                              const struct ak_backend_table_options *options,
                              struct ak_error *error);

    /* Allocates a KV pool, which is opaque to the caller. The caller passes the same shape to each
     * function. */
    ak_status (*alloc_kv)(struct ak_backend *b, const struct ak_kv_shape *shape, void **kv,
                          struct ak_error *error);
    void (*free_kv)(struct ak_backend *b, void *kv, const struct ak_kv_shape *shape);
    /* Copies page `from` to page `to`, or a sequence's state to another's. The next pass reports a
     * device's failure. */
    void (*copy_page)(struct ak_backend *b, void *kv, const struct ak_kv_shape *shape, uint32_t to,
                      uint32_t from);
    void (*copy_state)(struct ak_backend *b, void *kv, const struct ak_kv_shape *shape, uint32_t to,
                       uint32_t from);
    /* Address of the pages in host memory, one after another; the same bytes for the same tokens on
     * every machine. NULL: the host cannot read them. */
    uint8_t *(*host_pages)(struct ak_backend *b, void *kv);
    /* Attention skips dropped pages and adds up importance. */
    bool skips_pages;

    /* Prepares a table for one session; kv is the pool. */
    ak_status (*prepare)(struct ak_backend *b, const struct ak_table *table,
                         const struct ak_weights *weights, const struct ak_spec *spec,
                         const struct ak_backend_table_options *options, void *kv,
                         struct ak_backend_table **out, struct ak_error *error);
    void (*release)(struct ak_backend_table *p);
    /* Runs one pass; never allocates. Results are valid after sync, which reports a device's
     * failure. */
    void (*run)(struct ak_backend_table *p, const struct ak_batch *batch);
    ak_status (*sync)(struct ak_backend_table *p, struct ak_error *error);
    /* Row i of the last pass's logits; of the sampled table, the sampled tokens, -1 if no logit is
     * a number. */
    const float *(*logits)(const struct ak_backend_table *p, uint32_t i);
    const int32_t *(*sampled)(const struct ak_backend_table *p);
    uint64_t (*memory_bytes)(const struct ak_backend_table *p); /* scratch */
    void (*counts)(const struct ak_backend_table *p, struct ak_backend_counts *out);
    /* Switches times on, from 0, or off; false: out of memory. get_time: of kind i, false past the
     * last one or if times are off. NULL: the backend has no times. */
    bool (*enable_times)(struct ak_backend_table *p, bool on);
    bool (*get_time)(const struct ak_backend_table *p, size_t i, struct ak_backend_time *out);
    /* Adds the inputs of all products in the passes to come to sums[packed weights]; NULL: no more.
     * Results stay the same bits, and the sums are the same whatever the threads. NULL: the backend
     * has no input sums. */
    void (*sum_inputs)(struct ak_backend_table *p, struct ak_backend_input_sums *sums);
    /* Bytes per second at which a pass can read the weights, measured now in about a tenth of a
     * second; n_threads: the CPU's. */
    ak_status (*measure_bandwidth)(struct ak_backend *b, const struct ak_weights *weights,
                                   unsigned n_threads, double *out, struct ak_error *error);
};

/* First member of every backend. */
struct ak_backend {
    const struct ak_backend_ops *ops;
};

/* The backend that owns a layer: `b`, or a part of a composite backend. */
struct ak_backend *ak_backend_for_layer(struct ak_backend *b, int layer);

#endif
