/* What executes a dispatch table: one vtable a backend. */
#ifndef AK_BACKEND_BACKEND_H
#define AK_BACKEND_BACKEND_H

#include "base/error.h"
#include "base/thread.h"
#include "model/model.h"

struct ak_backend;
struct ak_backend_table;
struct ak_table;           /* dispatch/table.h */
struct ak_weights;         /* pack/pack.h */
struct ak_backend_profile; /* backend/profile.h */

struct ak_backend_options {
    const char *cpu;                              /* ISA bundle; NULL: the best */
    const struct ak_backend_profile *cpu_profile; /* copied; NULL: all as detected */
    /* which of the backend's devices, by number or part of a name; NULL: the first */
    const char *device;
    const char *cache_dir; /* where what is built for it is kept; NULL: the default one */
    bool no_cache;         /* nothing is kept */
    bool relaxed;          /* kernels may round otherwise */
    enum akunu_prefill prefill;
    const struct ak_log *log; /* may be NULL */
};

enum { AK_KV_TYPE_COUNT = AKUNU_KV_Q4_0 + 1 };

/* Geometry of a KV pool. A page holds AK_KV_PAGE_TOKENS tokens of all layers that have attention;
 * in it, the values of a head follow its keys, which lie in groups of tokens. Behind the pages lie
 * the states of sequences: what other layers remember of all tokens that went before. At position 0
 * a state is zeros, whatever lies there. */
enum { AK_KV_PAGE_TOKENS = 64, AK_KV_GROUP_TOKENS = 16 };
struct ak_kv_shape {
    uint32_t n_layers, n_kv_heads, head_dim;
    enum akunu_kv_type k_type, v_type;
    uint32_t n_pages;
    uint64_t state_elems; /* floats of a sequence's state; 0: none */
    uint32_t n_states;    /* sequences */
};
enum ak_quant_type ak_kv_stored_type(enum akunu_kv_type type);
/* Of one head in one page: a group's keys, the keys, the values. The quantized types take a
 * head_dim that is a multiple of 32, and room for one key of floats beside. */
uint64_t ak_kv_group_bytes(const struct ak_kv_shape *shape);
uint64_t ak_kv_k_bytes(const struct ak_kv_shape *shape);
uint64_t ak_kv_v_bytes(const struct ak_kv_shape *shape);
uint64_t ak_kv_page_bytes(const struct ak_kv_shape *shape); /* 0: overflow */
uint64_t ak_kv_pool_bytes(const struct ak_kv_shape *shape); /* 0: overflow */
/* Where sequence `sequence`'s state begins, in bytes of the pool. */
uint64_t ak_kv_state_offset(const struct ak_kv_shape *shape, uint32_t sequence);

/* What a session asks of a prepared table. */
struct ak_backend_table_options {
    unsigned n_threads;
    const struct ak_cpus *cpus; /* to pin threads to; NULL: the system places them */
    uint32_t context;           /* tokens of a sequence */
    uint32_t max_tokens;        /* of one pass */
    uint32_t max_logits;        /* rows of logits of one pass */
    struct ak_kv_shape kv;
};

/* Sampling parameters of the table that ends in a Gumbel step; temperature 0: the likeliest. */
struct ak_gumbel_params {
    float temperature;
    uint64_t seed;
};

/* One pass. Arrays have n entries; pages[s] is sequence s's page table. Tokens of one sequence
 * stand together, in ascending positions. */
struct ak_batch {
    uint32_t n;
    const int32_t *tokens;
    const uint32_t *positions;
    const uint32_t *sequences; /* index into pages */
    const uint32_t *const *pages;
    uint32_t n_logits;
    const uint32_t *logit_rows; /* ascending indices of tokens */
    struct ak_gumbel_params gumbel;
    /* What EMBED gives in place of the tokens' embeddings: row t is `hidden_stride` floats after
     * the one before. NULL: the embeddings. */
    const float *hidden;
    size_t hidden_stride;
};

struct ak_backend_counts {
    uint64_t gemv, skinny, gemm;
};

/* How products with weights of a type run. */
struct ak_backend_type_info {
    bool integers; /* on integers: activations are quantized */
    bool packed;   /* from a packed layout of the type's own, not from stored rows */
};

/* 0 … 1; returns false to cancel. */
typedef bool ak_backend_progress_fn(double fraction, void *user);

struct ak_backend_ops {
    const char *name;
    /* Whether this machine has it. */
    bool (*is_available)(void);

    /* Of the machine, without an open backend; NULL unless the backend has kernel variants (the
     * CPU's ISA names). */
    /* Name of usable variant i, the best one last; NULL past it. */
    const char *(*variant)(size_t i);
    void (*type_info)(enum ak_quant_type type, struct ak_backend_type_info *out);
    /* Measures what the bits `what` (AKUNU_MEASURE_...) ask for; the rest of *out is 0. variant
     * NULL: the best; AKUNU_ERROR_ARGUMENT: not a usable one. */
    ak_status (*measure)(const char *variant, unsigned n_threads, unsigned what,
                         struct akunu_roofline *out, struct ak_error *error);
    /* Fills in skinny_max and blas of a chip profile, where another value than the default is
     * clearly faster. The fastest of n_runs runs counts. progress may be NULL. */
    ak_status (*tune)(const char *variant, unsigned n_threads, unsigned n_runs,
                      ak_backend_progress_fn *progress, void *user, struct ak_backend_profile *out,
                      struct ak_error *error);

    /* Its device number i, but for `size`; NULL: it has none to choose from. */
    ak_status (*device_info)(size_t i, struct akunu_device_info *out, struct ak_error *error);
    ak_status (*open)(const struct ak_backend_options *options, struct ak_backend **out,
                      struct ak_error *error);
    void (*close)(struct ak_backend *b);
    const char *(*describe)(const struct ak_backend *b); /* "avx512" */
    bool (*supports)(const struct ak_backend *b, enum ak_op op, enum ak_quant_type type);
    /* Whether a token's logits are the same bits in every pass of few tokens. NULL: they are
     * not. */
    bool (*is_batch_invariant)(const struct ak_backend *b);

    /* Of a backend that is put together of others: whose the weights of a layer are
     * (AK_ROLE_NO_LAYER: those outside of layers). NULL: it has them all itself. */
    struct ak_backend *(*layer_backend)(struct ak_backend *b, int layer);

    /* The versioned layout that a weight of this type is packed in, and its size for rows × cols; 0
     * bytes: it is used where it lies. */
    uint32_t (*layout)(const struct ak_backend *b, enum ak_quant_type type);
    uint64_t (*packed_bytes)(const struct ak_backend *b, enum ak_quant_type type, uint32_t rows,
                             uint32_t cols);
    /* Packs rows [first, first + n) of a stored matrix (multiples of 16, but the last) to `to`;
     * called by several threads. 16 rows take packed_bytes of 16 rows wherever they stand, and
     * follow each other. */
    void (*pack)(const struct ak_backend *b, const struct ak_view *view, uint32_t first, uint32_t n,
                 void *to);

    /* Of devices with memory of their own, NULL elsewhere: the bytes that a KV cache of all layers
     * may take beside the weights, and whether there is room for a session and them. Nothing is
     * allocated; what does not fit is told with the layers that would. */
    uint64_t (*kv_bytes_max)(const struct ak_backend *b, const struct ak_weights *weights);
    ak_status (*check_memory)(const struct ak_backend *b, const struct ak_table *table,
                              const struct ak_weights *weights, const struct ak_spec *spec,
                              const struct ak_backend_table_options *options,
                              struct ak_error *error);

    /* A KV pool of that shape, whose bytes can be counted. What it is, and where its pages lie,
     * only the backend knows; whoever has it gives the same shape each time. */
    ak_status (*alloc_kv)(struct ak_backend *b, const struct ak_kv_shape *shape, void **kv,
                          struct ak_error *error);
    void (*free_kv)(struct ak_backend *b, void *kv, const struct ak_kv_shape *shape);
    /* Page `from` over page `to`, or a sequence's state over another's. Where a device fails at
     * that, the next pass says so. */
    void (*copy_page)(struct ak_backend *b, void *kv, const struct ak_kv_shape *shape, uint32_t to,
                      uint32_t from);
    void (*copy_state)(struct ak_backend *b, void *kv, const struct ak_kv_shape *shape, uint32_t to,
                       uint32_t from);
    /* Where the host reads and writes the pages, one after another; they are the same bytes for the
     * same tokens on every machine. NULL: it does not. */
    uint8_t *(*host_pages)(struct ak_backend *b, void *kv);

    /* Turns a table into the backend's own form for one session; kv is the pool. */
    ak_status (*prepare)(struct ak_backend *b, const struct ak_table *table,
                         const struct ak_weights *weights, const struct ak_spec *spec,
                         const struct ak_backend_table_options *options, void *kv,
                         struct ak_backend_table **out, struct ak_error *error);
    void (*release)(struct ak_backend_table *p);
    /* Runs one pass; never allocates. Results are there after sync, which tells whether the device
     * did it. */
    void (*run)(struct ak_backend_table *p, const struct ak_batch *batch);
    ak_status (*sync)(struct ak_backend_table *p, struct ak_error *error);
    /* Row i of the last pass' logits; of the sampled table, the chosen tokens, -1 where no logit is
     * a number. */
    const float *(*logits)(const struct ak_backend_table *p, uint32_t i);
    const int32_t *(*sampled)(const struct ak_backend_table *p);
    uint64_t (*memory_bytes)(const struct ak_backend_table *p); /* scratch held */
    void (*counts)(const struct ak_backend_table *p, struct ak_backend_counts *out);
    /* Bytes a second at which a pass can read the weights, measured now, in a tenth of a second or
     * so; with n_threads where that is the CPU's. */
    ak_status (*measure_bandwidth)(struct ak_backend *b, const struct ak_weights *weights,
                                   unsigned n_threads, double *out, struct ak_error *error);
};

/* A backend embeds this first. */
struct ak_backend {
    const struct ak_backend_ops *ops;
};

/* The backend that has the weights of a layer: `b`, or one that it is put together of. */
struct ak_backend *ak_backend_for_layer(struct ak_backend *b, int layer);

#endif
