/* Binds, fuses and packs the weights of a model, so that later stages look up no names.
 * engine/session/ runs it at load. The result is struct ak_weights: engine/dispatch/ builds
 * commands over its slots, engine/cpu/ and opencl/ read the packed bytes, engine/backends/ divides
 * the weights between two backends, api/ sums their sizes, and bench/ packs weights of its own.
 * conversion/convert/ and conversion/compress/ read bound weights without packing them. */
#ifndef AK_ENGINE_PACK_PACK_H
#define AK_ENGINE_PACK_PACK_H

#include <stdatomic.h>

#include "engine/backend/backend.h"
#include "base/thread.h"
#include "files/weights/adapter.h"

/* ---- Bind: every declared weight by exact name and shape ---------------- */
struct ak_binding {
    const struct ak_spec *spec;
    /* [n_weights of the architecture][layers of the role]; plane 0 NULL: absent */
    struct ak_view *views;
    uint32_t n_views;
    uint32_t *first_view;      /* [n_weights of the architecture]: index into views */
    bool tied;                 /* the embedding serves as OUTPUT */
    bool lacks_output;         /* for embeddings alone: no tensor is meant to be OUTPUT */
    bool shapes_only;          /* bound with AK_BIND_SHAPES */
    const struct ak_spec *own; /* what this rank computes; NULL: all */
    /* [n_views + 1], the last one a tied output: the rows of one rank; NULL: all rows */
    struct ak_bind_shard *shards;
    struct ak_bind_buffer *owned; /* memory that views point into (bind.h) */
    uint32_t n_owned, owned_capacity;
};

/* AK_BIND_STRICT: a tensor that nothing uses is an error; without it, such a tensor is logged.
 * AK_BIND_SHAPES: only shapes and types are needed, so nothing is copied, and the planes of views
 * that would need a copy are the file's. */
enum { AK_BIND_STRICT = 1, AK_BIND_SHAPES = 2 };
/* Binds all weights. `flags` are those above. */
ak_status ak_bind(const struct ak_provider *p, const struct ak_spec *spec, unsigned flags,
                  const struct ak_log *log, struct ak_binding *out, struct ak_error *error);
/* Binds one weight. `b` has its `spec` set and is otherwise zero before the first call; it owns
 * what has to be copied. plane[0].data of *view is NULL if the weight is optional and absent. */
ak_status ak_bind_weight(const struct ak_provider *p, const struct ak_arch_rule *rule, int layer,
                         struct ak_binding *b, struct ak_view *view, struct ak_error *error);
void ak_binding_clear(struct ak_binding *b);
/* Narrows the weights of linear operators, their biases and the vectors of heads to the rows of the
 * spec's rank. ak_bind_find still finds all rows. */
ak_status ak_bind_take_shard(struct ak_binding *b, const struct ak_spec *spec,
                             struct ak_error *error);
/* NULL: the model has no such weight. */
const struct ak_view *ak_bind_find(const struct ak_binding *b, enum ak_role role, int layer);

/* The rows of a weight, or the elements of a vector, that this rank has. */
struct ak_bind_rows {
    const struct ak_view *view;
    uint32_t first, all; /* the first one among all of the matrix or vector */
};
/* False: the model has no such weight. */
bool ak_bind_find_rows(const struct ak_binding *b, enum ak_role role, int layer,
                       struct ak_bind_rows *out);

/* ---- Fuse and pack ------------------------------------------------------ */
/* Part of a packed weight: one role's rows of the fused operator's output. */
struct ak_pack_part {
    enum ak_role role;
    const struct ak_view *view;
    uint32_t rows;                /* of all experts together */
    uint32_t first_row, all_rows; /* of one matrix: the rank's first row, and those of all ranks */
    uint32_t output_offset;       /* element of the operator's output where it starts */
    uint64_t offset;              /* bytes, in the packed block */
    const uint8_t *data;          /* its rows, packed or as stored */
    atomic_ullong n_packed_bytes; /* progress of a packing job */
};

/* A weight in its backend's form. */
struct ak_pack_weight {
    /* owner: the model's backend or a part of a composite one */
    struct ak_backend *backend;
    enum ak_op_linear linear;
    int layer;
    enum ak_quant_type type;
    uint32_t cols, layout;
    /* expert stack: matrices in each part, all of one size, one after another; 0: not experts' */
    uint32_t n_experts;
    uint32_t n_parts;
    struct ak_pack_part parts[AK_OP_LINEAR_PARTS_MAX];
    uint32_t bias;  /* vector slot, as wide as the operator's output; AK_OP_NONE: none */
    uint64_t bytes; /* packed; 0: zero-copy, used in place */
    /* [cols]: input element that each column is multiplied with; NULL: its own */
    const uint32_t *order;
};

/* A float32 vector: a norm's weight, or biases in the order of an operator's output. */
struct ak_pack_vector {
    enum ak_role role; /* of the first part */
    int layer;
    uint32_t n;
    float *data;
};

/* LoRA: what an adapter adds to a part of a packed weight, scale · b · a · x. */
struct ak_pack_adapter {
    uint32_t packed, part; /* the part's rows are those of b */
    uint32_t a, b;         /* packed weights of AK_OP_LINEAR_ADAPTER */
    float scale;
};

struct ak_weights {
    struct ak_pack_weight *packed; /* the model's, then adapters' */
    uint32_t n_packed;
    struct ak_pack_vector *vectors;
    uint32_t n_vectors;
    uint32_t *first_packed; /* [AK_OP_LINEAR_COUNT][layers]: first packed weight of each operator */
    uint32_t *widths;       /* same indices: output elements, parts padded to 16 */
    uint32_t n_layers;
    struct ak_pack_adapter *adapters; /* in the order in which they are added */
    uint32_t n_adapters;
    struct ak_pack_adapter_block *adapter_blocks; /* values of the adapters (adapter.c) */
    uint64_t adapter_bytes;
    const struct ak_view *embedding;
    /* [context, width]; NULL: no learned positions */
    const struct ak_view *positions;
    const struct ak_view *encoder_positions; /* the same of an encoder beside the decoder */
    const struct ak_view *types;             /* [types, width]; NULL: no token types */
    /* file of zero-copy weights; NULL: its pages are never dropped */
    const struct ak_provider *source;
    uint8_t *block; /* the packed weights */
    uint64_t block_bytes;
    bool block_mapped; /* the block is a map of the packed cache, which nobody writes */
    float *vector_block;
    uint64_t vector_bytes, vector_capacity;
};

/* Decides which parts fuse (same type and row length) and where each weight goes, and reads the
 * vectors as float32. Reads no weights. */
ak_status ak_pack_plan(const struct ak_binding *binding, struct ak_backend *backend,
                       struct ak_weights *out, struct ak_error *error);

/* Adds an adapter, with float32 copies of its matrices, to planned weights that are not packed yet.
 * With the scale 0 it is only checked. Messages name the adapter's tensor. AKUNU_ERROR_FORMAT:
 * another shape than the model's; AKUNU_ERROR_UNSUPPORTED: another architecture, or a weight that
 * cannot have an adapter. */
ak_status ak_pack_add_adapter(struct ak_weights *w, const struct ak_spec *spec,
                              const struct ak_adapter *adapter, float scale,
                              struct ak_error *error);
void ak_pack_clear_adapters(struct ak_weights *w);

/* Row `row` of a view of vectors (one, or one per expert) as floats; composed if quantized. */
void ak_pack_read_vector(const struct ak_view *view, size_t row, float *out);

/* True if two weights of the same number of columns read their input in the same order. */
bool ak_pack_has_same_order(const struct ak_pack_weight *a, const struct ak_pack_weight *b);

/* Address of matrix `e` of a part, each of `bytes`: in the packed block, or in the file. Without
 * experts only matrix 0 exists. */
const uint8_t *ak_pack_matrix(const struct ak_pack_weight *packed, const struct ak_pack_part *part,
                              uint32_t e, uint64_t bytes);

/* Bytes of the weight that a pass reads. */
uint64_t ak_pack_read_bytes(const struct ak_pack_weight *packed);
/* Those that a pass of one token reads: of experts the n_experts_used that it uses. */
uint64_t ak_pack_token_bytes(const struct ak_pack_weight *packed, uint32_t n_experts_used);

/* Bytes of `rows` of a view in the packed block, a whole number of 16-row groups; 0: zero-copy,
 * used in place. */
uint64_t ak_pack_bytes(const struct ak_backend *backend, uint32_t layout,
                       const struct ak_view *view, uint32_t rows);

/* 0 … 1, from the calling thread; returns false to cancel. */
typedef bool ak_pack_progress_fn(double fraction, void *user);

/* What packing needs. */
struct ak_pack_job {
    struct ak_weights *weights;
    struct ak_backend *backend;
    const struct ak_provider *source; /* packed pages of it are dropped; NULL: none are */
    /* drop them from the page cache too: the source will not be read again */
    bool evict_source;
    struct ak_pool *pool;
    ak_pack_progress_fn *progress; /* NULL: silent */
    void *user;
};

/* Packs all weights on the pool's threads into this process's memory. */
ak_status ak_pack_weights(const struct ak_pack_job *job, struct ak_error *error);
void ak_pack_clear(struct ak_weights *w);

/* Packs the range [begin, end) of the block; `out` is block byte `origin`. A group of 16 rows that
 * the range cuts is packed whole: at the range's end always, at its beginning only if `both_ends`.
 * Several threads may call it. */
struct ak_pack_range {
    uint64_t begin, end, origin;
    bool both_ends;
};
void ak_pack_range(const struct ak_pack_job *job, const struct ak_pack_range *range, uint8_t *out);

/* Asks the system to read ahead the source of [begin, end). */
enum { AK_PACK_READ_AHEAD_BYTES = 16 << 20 };
void ak_pack_read_ahead(const struct ak_pack_job *job, uint64_t begin, uint64_t end);

/* Hands each window of the block to one thread, in order. numa_local: a thread first gets the
 * windows it reads in a pass, so that their pages are on its node. */
struct ak_pack_windows {
    const struct ak_pack_job *job;
    uint64_t bytes; /* of a window */
    size_t n;
    bool numa_local;
    atomic_uchar *taken; /* [n]: nonzero once handed out */
};
/* Sets numa_local if the machine has several nodes. Begins to read the source. */
ak_status ak_pack_windows_create(const struct ak_pack_job *job, uint64_t bytes,
                                 struct ak_pack_windows *out, struct ak_error *error);
void ak_pack_windows_clear(struct ak_pack_windows *w);
/* *next is the thread's own position, initially 0. False: all windows are taken. */
bool ak_pack_windows_take(const struct ak_pack_windows *w, unsigned thread, size_t *next,
                          uint64_t *begin);

/* Pack slack: bytes ak_pack_range may write past its range (the largest 16 packed rows). */
uint64_t ak_pack_slack(const struct ak_pack_job *job);

/* Points the parts into the block. */
void ak_pack_set_block(struct ak_weights *w);

/* The packed weights of an operator: n of them from `first` on. */
void ak_pack_find_linear(const struct ak_weights *w, enum ak_op_linear linear, int layer,
                         uint32_t *first, uint32_t *n);
uint32_t ak_pack_linear_width(const struct ak_weights *w, enum ak_op_linear linear, int layer);
/* Vector slot of (role, layer); AK_OP_NONE: the model has none. */
uint32_t ak_pack_find_vector(const struct ak_weights *w, enum ak_role role, int layer);

/* ---- Tiles (tiles.c) ---------------------------------------------------- */
/* Shared by backends with tiles of 16 rows: packs a view's rows, from the file or composed. Types
 * without tiles are packed only if composed, row by row. */
enum { AK_PACK_ROWS = 16, AK_PACK_K = 256 };

/* A backend's tiles. Tiles of the same rows follow each other, so AK_PACK_K columns can be packed
 * after those before them. */
struct ak_pack_tile_format {
    /* NULL rows are packed as zeros; k is a multiple of the type's block. */
    void (*pack)(enum ak_quant_type type, const void *const rows[AK_PACK_ROWS], size_t k,
                 uint8_t *to);
    size_t (*bytes)(enum ak_quant_type type, size_t k); /* of 16 rows */
    bool (*is_tiled)(enum ak_quant_type type);
};

/* For the backend's vtable: `packed_bytes` and `pack`. */
uint64_t ak_pack_tile_bytes(const struct ak_pack_tile_format *tiles, enum ak_quant_type type,
                            uint32_t rows, uint32_t cols);
void ak_pack_tile_rows(const struct ak_pack_tile_format *tiles, const struct ak_view *view,
                       uint32_t first, uint32_t n, void *packed);

#endif
