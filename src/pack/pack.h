/* Weights resolved, fused and packed: after this nobody looks anything up by
 * name. */
#ifndef AK_PACK_PACK_H
#define AK_PACK_PACK_H

#include <stdatomic.h>

#include "backend/backend.h"
#include "base/thread.h"

/* ---- Bind: every declared weight by exact name and shape ---------------- */
struct ak_binding {
    const struct ak_spec *spec;
    struct ak_view *views; /* [n_weights of the family][n_layers or 1]; plane 0 NULL: absent */
    uint32_t n_views;
    uint32_t *first_view;         /* of each rule */
    bool tied;                    /* OUTPUT is the embedding */
    bool shapes_only;             /* ak_bind_shapes */
    struct ak_bind_buffer *owned; /* memory that views point into: bind.h */
    uint32_t n_owned, owned_capacity;
};

/* strict: a tensor that nothing claims is an error, else it is logged. */
ak_status ak_bind(const struct ak_provider *p, const struct ak_spec *spec, bool strict,
                  const struct ak_log *log, struct ak_binding *out, struct ak_error *error);
/* The same for those who want shapes and types alone, of nothing that would have to be
 * copied: the planes of such views are what the file has. */
ak_status ak_bind_shapes(const struct ak_provider *p, const struct ak_spec *spec,
                         const struct ak_log *log, struct ak_binding *out, struct ak_error *error);
/* One of them: into `b`, whose `spec` is set, goes what has to be copied of it; the
 * other fields are zero before the first call. plane[0].data of *view is NULL where the
 * file has no such weight and need not have it. */
ak_status ak_bind_weight(const struct ak_provider *p, const struct ak_family_rule *rule, int layer,
                         struct ak_binding *b, struct ak_view *view, struct ak_error *error);
void ak_binding_clear(struct ak_binding *b);
/* NULL where the model does not have it. */
const struct ak_view *ak_bind_find(const struct ak_binding *b, enum ak_role role, int layer);

/* ---- Fuse and pack ------------------------------------------------------ */
/* A part of a packed weight: rows of the fused operator's output. */
struct ak_pack_part {
    enum ak_role role;
    const struct ak_view *view;
    uint32_t rows;                /* of all experts */
    uint32_t output_offset;       /* element of the operator's output where it starts */
    uint64_t offset;              /* in the packed block */
    const uint8_t *data;          /* its rows, packed or as stored */
    atomic_ullong n_packed_bytes; /* bytes that are packed, while a job packs */
};

/* One weight as the backend has it. */
struct ak_pack_weight {
    /* whose it is: that of a model, or one of those that it is put together of */
    struct ak_backend *backend;
    enum ak_op_linear linear;
    int layer;
    enum ak_quant_type type;
    uint32_t cols, layout;
    /* matrices in each part, of the same size, one after another; 0: no experts' */
    uint32_t n_experts;
    uint32_t n_parts;
    struct ak_pack_part parts[AK_OP_LINEAR_PARTS_MAX];
    uint32_t bias;  /* vector slot of the operator's output width, AK_OP_NONE */
    uint64_t bytes; /* packed; 0: used where it lies */
    /* [cols]: the input's element that each column is multiplied with; NULL: its own */
    const uint32_t *order;
};

/* A float32 vector: a norm's weight, or biases in the order of an operator's
 * output. */
struct ak_pack_vector {
    enum ak_role role; /* of the first part */
    int layer;
    uint32_t n;
    float *data;
};

struct ak_weights {
    struct ak_pack_weight *packed;
    uint32_t n_packed;
    struct ak_pack_vector *vectors;
    uint32_t n_vectors;
    uint32_t *first_packed; /* [AK_OP_LINEAR_COUNT][layers]: first weight of each operator */
    uint32_t *widths;       /* the same: output elements, parts padded to 16 */
    uint32_t n_layers;
    const struct ak_view *embedding;
    /* [context, width]; NULL: learned positions are none of this model's */
    const struct ak_view *positions;
    const struct ak_view *types; /* [types, width]; NULL: nor types of tokens */
    /* of what is used where the file has it; NULL: its pages are not dropped */
    const struct ak_provider *source;
    uint8_t *block; /* packed weights, one block */
    uint64_t block_bytes;
    bool block_mapped; /* it is the packed cache, which nobody writes */
    float *vector_block;
    uint64_t vector_bytes, vector_capacity;
};

/* Decides what fuses (same type and row length) and where everything goes, and
 * reads the vectors as float32. No weight is read. */
ak_status ak_pack_plan(const struct ak_binding *binding, struct ak_backend *backend,
                       struct ak_weights *out, struct ak_error *error);

/* Row `row` of a view of vectors, one or one an expert, as floats; put together where it
 * is quantized. */
void ak_pack_read_vector(const struct ak_view *view, size_t row, float *out);

/* Whether two weights of as many columns take their input in the same order. */
bool ak_pack_has_same_order(const struct ak_pack_weight *a, const struct ak_pack_weight *b);

/* Where matrix `e` of a part begins, each of `bytes`: in the packed block, or where the file
 * has it. A weight of no experts has matrix 0 alone. */
const uint8_t *ak_pack_matrix(const struct ak_pack_weight *packed, const struct ak_pack_part *part,
                              uint32_t e, uint64_t bytes);

/* What a pass reads of it. */
uint64_t ak_pack_read_bytes(const struct ak_pack_weight *packed);

/* What `rows` of a view take in the packed block, 16 rows wherever they stand; 0: they
 * are used where they lie. */
uint64_t ak_pack_bytes(const struct ak_backend *backend, const struct ak_view *view, uint32_t rows);

/* Gets 0 … 1 from the calling thread and returns false to cancel. */
typedef bool ak_pack_progress_fn(double fraction, void *user);

/* What packing needs. The pages of `source` that were packed are dropped. */
struct ak_pack_job {
    struct ak_weights *weights;
    struct ak_backend *backend;
    const struct ak_provider *source; /* NULL: nothing is dropped */
    /* the source will not be read again: drop it from the page cache too */
    bool evict_source;
    struct ak_pool *pool;
    ak_pack_progress_fn *progress; /* NULL: silent */
    void *user;
};

/* Packs all weights on the pool's threads into memory of this process. */
ak_status ak_pack_weights(const struct ak_pack_job *job, struct ak_error *error);
void ak_pack_clear(struct ak_weights *w);

/* Packs the part [begin, end) of the block to out, which is block byte `origin`;
 * 16 rows that lie only partly in it are packed wholly, those at its beginning
 * only where `both_ends`. Called by several threads. */
struct ak_pack_range {
    uint64_t begin, end, origin;
    bool both_ends;
};
void ak_pack_range(const struct ak_pack_job *job, const struct ak_pack_range *range, uint8_t *out);

/* The source of [begin, end) will be wanted soon: the disk may begin. */
enum { AK_PACK_READ_AHEAD_BYTES = 16 << 20 };
void ak_pack_read_ahead(const struct ak_pack_job *job, uint64_t begin, uint64_t end);

/* Hands out the block in windows, each once, to threads: in order to whoever is free.
 * With `numa_local`, a thread first gets those that it will read in a pass, whose pages then
 * lie on its NUMA node. */
struct ak_pack_windows {
    const struct ak_pack_job *job;
    uint64_t bytes; /* of one */
    size_t n;
    bool numa_local;
    atomic_uchar *taken; /* [n] */
};
/* `numa_local` as it suits this machine. */
ak_status ak_pack_windows_create(const struct ak_pack_job *job, uint64_t bytes,
                                 struct ak_pack_windows *out, struct ak_error *error);
void ak_pack_windows_clear(struct ak_pack_windows *w);
/* *next is the thread's own, from 0. False: all are taken. */
bool ak_pack_windows_take(const struct ak_pack_windows *w, unsigned thread, size_t *next,
                          uint64_t *begin);

/* The largest 16 packed rows: what ak_pack_range may write beyond its range. */
uint64_t ak_pack_slack(const struct ak_pack_job *job);

/* The block is there: lets the parts point into it. */
void ak_pack_set_block(struct ak_weights *w);

/* The weights of an operator: n of them from `first` on. */
void ak_pack_find_linear(const struct ak_weights *w, enum ak_op_linear linear, int layer,
                         uint32_t *first, uint32_t *n);
uint32_t ak_pack_linear_width(const struct ak_weights *w, enum ak_op_linear linear, int layer);
/* Vector slot of (role, layer); AK_OP_NONE where the model has none. */
uint32_t ak_pack_find_vector(const struct ak_weights *w, enum ak_role role, int layer);

/* ---- Tiles (tiles.c) -------------------------------------------------- */
/* What backends with tiles of 16 rows share: where the rows of a view come from, and what
 * happens to types without tiles. */
enum { AK_PACK_ROWS = 16, AK_PACK_K = 256 };

/* A backend's tiles. Tiles of the same rows follow each other, so that AK_PACK_K columns
 * can be packed behind those before them. */
struct ak_pack_tile_format {
    /* NULL rows are packed as zeros; k is a multiple of the type's block. */
    void (*pack)(enum ak_quant_type type, const void *const rows[AK_PACK_ROWS], size_t k,
                 uint8_t *to);
    size_t (*bytes)(enum ak_quant_type type, size_t k); /* of 16 rows */
    bool (*is_tiled)(enum ak_quant_type type);
};

/* The backend's `packed_bytes` and `pack`. */
uint64_t ak_pack_tile_bytes(const struct ak_pack_tile_format *tiles, enum ak_quant_type type,
                            uint32_t rows, uint32_t cols);
void ak_pack_tile_rows(const struct ak_pack_tile_format *tiles, const struct ak_view *view,
                       uint32_t first, uint32_t n, void *packed);

#endif
