/* Internals of the OpenCL backend, private to this folder. A dispatch table becomes a list of
 * launches: kernels with bound arguments. A pass enqueues them on an in-order queue. Those of a
 * pass of one token are recorded once, as a command buffer, if the device has these (record.c).
 *
 * Data that changes from pass to pass is in the pass buffer (kernels/shared.h): numbers of rows,
 * positions and page tables. Two things have buffers of their own: rotation angles, and the input
 * of the table, which is the tokens' embedding rows, read by the host from the file as the CPU
 * backend does, or the frames of a speech encoder's windows. Everything else stays on the device: a
 * pass of the sampled table returns one token per row of logits. */
#ifndef AK_OPENCL_OPENCL_H
#define AK_OPENCL_OPENCL_H

#include <pthread.h>
#include <stdatomic.h>

#include "engine/backend/backend.h"
#include "base/mem.h"
#include "engine/dispatch/table.h"
#include "opencl/device.h"
#include "opencl/layout.h"
#include "opencl/kernels/shared.h"

enum {
    AK_OCL_GROUP = 128,        /* lanes of a group that works on a row */
    AK_OCL_ELEMENT_LANES = 64, /* lanes of a group with an element per lane */
    AK_OCL_HEAD_MAX = 256,     /* elements of an attention head, at most */
    /* delta rule: rows of a head's state, at most; columns of a group, lanes per column */
    AK_OCL_DELTA_DIM_MAX = 512,
    AK_OCL_DELTA_COLUMNS = 16,
    AK_OCL_DELTA_SLICES = 16,
    AK_OCL_QUERIES = 8,       /* tokens per block of attention in a GEMM pass */
    AK_OCL_SKINNY_MAX = 8,    /* skinny GEMM: up to this many tokens */
    AK_OCL_LOGIT_ROWS = 64,   /* rows of logits computed at once */
    AK_OCL_SPLITS_MAX = 32,   /* groups that share a token's pages, at most */
    AK_OCL_STAGING = 16 << 20 /* bytes of weights per upload */
};

/* ---- Programs (program.c) ----------------------------------------------- */
/* Programs of the kernels in opencl/kernels, compiled for a device or read from the binaries of an
 * earlier process:
 *
 *     CACHE/opencl/KEY.bin, KEY a hash over device, driver, options and sources:
 *     "akunuOCL", 16 bytes of a hash over the rest, the rest: the device's binary */
struct ak_ocl_builder {
    const struct ak_ocl_api *cl;
    const struct ak_ocl_device *device;
    cl_context context;
    const char *cache_dir; /* NULL: the default folder; "": nothing is kept */
    const struct ak_log *log;
};

/* The sources in opencl/kernels. */
extern const char ak_ocl_source_shared[], ak_ocl_source_types[], ak_ocl_source_gemv[],
    ak_ocl_source_gemm[], ak_ocl_source_group[], ak_ocl_source_rows[], ak_ocl_source_recurrent[],
    ak_ocl_source_kv[], ak_ocl_source_attention[], ak_ocl_source_online_softmax[],
    ak_ocl_source_scores[], ak_ocl_source_probe[];

enum { AK_OCL_SOURCES_MAX = 24 };

/* `sources` are concatenated. */
ak_status ak_ocl_build_program(const struct ak_ocl_builder *b, const char *const *sources,
                               uint32_t n, const char *options, cl_program *out,
                               struct ak_error *error);

/* ---- Backend ------------------------------------------------------------ */
/* A packed weight on the device. */
struct ak_ocl_weight {
    cl_mem memory, order; /* order: NULL unless columns read the input in another order */
    bool is_zero_copy;    /* `memory` is the host's copy */
    uint32_t rows;        /* of one matrix: all its parts, each padded to 16 */
    uint64_t expert_bytes;
};

/* A session's KV cache. */
struct ak_ocl_kv {
    cl_mem memory;
    cl_int failed; /* first error of a copy; the contents are then invalid */
};

struct ak_ocl {
    struct ak_backend base;
    const struct ak_ocl_api *cl;
    struct ak_ocl_device device;
    struct ak_ocl_builder builder;
    struct ak_log log;
    char *cache_dir;
    char *description;
    struct ak_ocl_recorder *recorder; /* NULL: launches are enqueued one by one */
    atomic_bool refuses_lists;        /* the device has rejected a command buffer */
    cl_context context;
    cl_command_queue queue; /* uploads and copies */
    /* built at first use. rows: rows.cl and recurrent.cl; attention: by types of keys and values;
     * products: by weight type, without and with experts */
    cl_program rows, attention[AK_KV_TYPE_COUNT][AK_KV_TYPE_COUNT], products[AK_QUANT_COUNT][2];
    uint32_t tile; /* gemm: rows and tokens per lane */
    /* gemv groups: slices per tile row (or rows of floats); lanes per slice */
    uint32_t slices, lanes;
    pthread_mutex_t lock;             /* protects what follows, which sessions share */
    const struct ak_weights *weights; /* weights on the device; NULL: none */
    struct ak_ocl_weight *packed;     /* [weights->n_packed] */
    uint32_t n_packed;
    cl_mem vectors;
    uint64_t *vector_at;   /* [weights->n_vectors]: element offsets in `vectors` */
    uint64_t positions_at; /* element offset of a speech encoder's positions in `vectors` */
};

/* ---- backend.c ---------------------------------------------------------- */
/* Program of products with a weight type, of all other steps, of attention. Built once; the backend
 * owns them. */
ak_status ak_ocl_build_products(struct ak_ocl *o, enum ak_quant_type type, bool experts,
                                cl_program *out, struct ak_error *error);
ak_status ak_ocl_build_rows(struct ak_ocl *o, cl_program *out, struct ak_error *error);
ak_status ak_ocl_build_attention(struct ak_ocl *o, enum akunu_kv_type k_type,
                                 enum akunu_kv_type v_type, cl_program *out,
                                 struct ak_error *error);

/* The caller releases it. */
ak_status ak_ocl_build_probe(struct ak_ocl *o, cl_program *out, struct ak_error *error);

/* ---- measure.c: the vtable's -------------------------------------------- */
ak_status ak_ocl_measure_bandwidth(struct ak_backend *b, const struct ak_weights *weights,
                                   unsigned n_threads, double *out, struct ak_error *error);

/* ---- upload.c ----------------------------------------------------------- */
/* Uploads the model's weights, once. */
ak_status ak_ocl_upload(struct ak_ocl *o, const struct ak_weights *weights, struct ak_error *error);
void ak_ocl_release_weights(struct ak_ocl *o);

/* Bytes of a weight on the device. */
uint64_t ak_ocl_weight_bytes(const struct ak_pack_weight *packed);
/* Bytes of a speech encoder's positions there, 0 in other models. */
uint64_t ak_ocl_position_bytes(const struct ak_weights *weights);

/* Fails because `what` ("the KV cache") of that many bytes cannot be allocated. The message gives
 * the device's memory and its largest allocation. */
ak_status ak_ocl_fail(const struct ak_ocl *o, cl_int code, const char *what, uint64_t bytes,
                      struct ak_error *error);
ak_status ak_ocl_create_buffer(const struct ak_ocl *o, uint64_t bytes, const char *what,
                               cl_mem *out, struct ak_error *error);

/* ---- memory.c: the vtable's --------------------------------------------- */
uint64_t ak_ocl_kv_bytes_max(const struct ak_backend *b, const struct ak_weights *weights);
ak_status ak_ocl_check_memory(const struct ak_backend *b, const struct ak_backend_tables *tables,
                              const struct ak_weights *weights, const struct ak_spec *spec,
                              const struct ak_backend_table_options *options,
                              struct ak_error *error);

/* ---- prepare.c ---------------------------------------------------------- */
/* Bytes of a session's buffers, without its KV cache. */
uint64_t ak_ocl_scratch_bytes(struct ak_ocl *o, const struct ak_table *table,
                              const struct ak_weights *weights, const struct ak_spec *spec,
                              const struct ak_backend_table_options *options);

/* Number of lanes of a launch. */
enum ak_ocl_grid {
    AK_OCL_ELEMENTS,     /* columns lanes × rows of the row set */
    AK_OCL_GROUPS,       /* columns groups × rows of the row set */
    AK_OCL_FIXED_GROUPS, /* columns × lines groups, whatever the rows */
    AK_OCL_PRODUCT,      /* gemv, skinny or gemm, by the number of rows */
    AK_OCL_ATTENTION
};

enum { AK_OCL_VARIANTS = 5, /* of a product: 1, 2, 4, 8 tokens, gemm */ AK_OCL_LAUNCHES_MAX = 2 };

/* Kernels of a launch of attention. PoCL replays a kernel with the arguments it has at replay, so
 * recordings have a merge of their own. */
enum ak_ocl_attention_kernel {
    AK_OCL_ATTENTION_ONE,    /* blocks of one token */
    AK_OCL_ATTENTION_BLOCKS, /* of up to AK_OCL_QUERIES */
    AK_OCL_ATTENTION_MERGE,
    AK_OCL_ATTENTION_MERGE_RECORDED,
    AK_OCL_ATTENTION_SCORES /* cross-attention alone */
};

struct ak_ocl_launch {
    const struct ak_command *command;
    enum ak_ocl_grid grid;
    enum ak_op_row_set row_set;
    uint32_t columns, lines; /* columns: elements or groups of a row, rows of a product, heads */
    size_t group[2];         /* lanes; a product's depend on the variant */
    bool experts;
    /* products: by variant; attention: enum ak_ocl_attention_kernel; else one */
    cl_kernel kernels[AK_OCL_VARIANTS];
    uint32_t n_kernels;
};

/* The blocks of tokens that attention takes at once. */
struct ak_ocl_blocks {
    uint32_t n, n_splits; /* n_splits: groups that share a block's pages */
    uint32_t pages;       /* of the longest sequence that is read */
    bool single_token;    /* every block has one token */
};

/* The launches of a one-token pass as one command buffer. */
struct ak_ocl_recording {
    void *list; /* cl_command_buffer_khr; NULL: not recorded */
    /* values it was recorded for */
    uint32_t n_launches, n_splits, n_cross_splits;
    struct ak_backend_counts counts; /* products in it */
};

struct ak_ocl_table {
    struct ak_ocl *o;
    const struct ak_table *table;
    const struct ak_weights *weights;
    const struct ak_spec *spec;
    cl_command_queue queue;
    cl_program rows, attention; /* owned by the backend */
    cl_mem arena[AK_OP_ROWS_COUNT], pass, input, angles, partials, ordered, sampled_memory;
    cl_mem scores; /* [tokens][positions]: of one head of cross-attention */
    const struct ak_command *input_command; /* EMBED or FRAMES */
    bool is_crossing;                       /* it has cross-attention */
    struct ak_ocl_kv *kv;
    uint32_t n_kv_layers;
    uint32_t max_rows[AK_OP_ROWS_COUNT]; /* of logits: those computed at once */
    uint32_t max_logits, context;
    const float *frequencies[AK_SPEC_ROPE_TABLES_MAX];
    struct ak_ocl_launch *launches;
    uint32_t n_launches, n_before_logits;  /* launches before SELECT run once per pass */
    int32_t *words;                        /* host copy of the pass */
    uint32_t words_at[AK_OCL_PASS_HEADER]; /* where each list begins */
    uint32_t words_capacity, words_fixed;  /* all words; those before the page tables */
    uint64_t states_at, state_elems;       /* floats of the pool */
    uint64_t head_bytes, keys_bytes;       /* bytes of a KV head in a page: all, and its keys */
    /* keys are quantized in a second step, after the page's first key */
    bool keys_wait;
    float *embedding_rows, *angle_rows, *row;
    float *logits; /* [max_logits][width] on the host */
    size_t logits_bytes;
    int32_t *sampled;
    const struct ak_batch *batch;    /* of the current run */
    struct ak_ocl_blocks own, cross; /* of sequences, and of their cross sequences */
    bool is_recording;               /* launches go to the recording */
    struct ak_ocl_recording recording;
    cl_int failed; /* first error of the current pass */
    uint64_t memory_bytes;
    struct ak_backend_counts counts;
};

ak_status ak_ocl_prepare(struct ak_backend *b, const struct ak_table *table,
                         const struct ak_weights *weights, const struct ak_spec *spec,
                         const struct ak_backend_table_options *options, void *kv,
                         struct ak_backend_table **out, struct ak_error *error);
void ak_ocl_release(struct ak_backend_table *p);

/* ---- launches.c: at most AK_OCL_LAUNCHES_MAX a command ------------------ */
/* Floats from one reordered row of activations to the next. */
static inline uint32_t ak_ocl_ordered_stride(uint32_t cols)
{
    return (uint32_t)ak_round_up(cols, AK_OCL_BLOCK_K);
}
ak_status ak_ocl_add_launches(struct ak_ocl_table *p, struct ak_error *error);

/* ---- record.c ----------------------------------------------------------- */
/* Sets o->recorder if the device has command buffers. */
void ak_ocl_find_recorder(struct ak_ocl *o);

/* With a recorder only: begin drops the old recording, record adds a launch, end completes it;
 * replay enqueues it, while it is not running. */
cl_int ak_ocl_begin_recording(struct ak_ocl_table *p);
cl_int ak_ocl_record(struct ak_ocl_table *p, cl_kernel kernel, uint32_t dims, const size_t *global,
                     const size_t *local);
cl_int ak_ocl_end_recording(struct ak_ocl_table *p);
cl_int ak_ocl_replay(struct ak_ocl_table *p);
void ak_ocl_drop_recording(struct ak_ocl_table *p);

/* ---- run.c -------------------------------------------------------------- */
void ak_ocl_run(struct ak_backend_table *p, const struct ak_batch *batch);
ak_status ak_ocl_sync(struct ak_backend_table *p, struct ak_error *error);

#endif
