/* akunu/files.h: the part of the public API that handles files: inspects and converts models,
 * manages the cache, saves sequences, lists what this build can read. Included by akunu.h;
 * compiles alone. */
#ifndef AKUNU_FILES_H
#define AKUNU_FILES_H

#include "akunu/core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Looking into a file without loading it ----------------------------- */
/* An opened model file. Only headers are read; tensors are mapped. */
struct akunu_file;

/* `path`: a GGUF file, or the first file of a split one; a folder of SafeTensors with config.json,
 * or one SafeTensors file next to it; a folder of NumPy arrays with manifest.json and config.json;
 * a Whisper model in the GGML format; a NumPy array. */
AKUNU_API struct akunu_file *akunu_file_open(const char *path);
/* The same with metadata that replaces the file's, as in akunu_load_params; NULL allowed. */
AKUNU_API struct akunu_file *akunu_file_open_with(const char *path, const char *const *override_kv);
AKUNU_API void akunu_file_free(struct akunu_file *file);

struct akunu_file_info {
    const char *format;       /* "gguf", "safetensors", "npy-dir", "whisper-ggml", "npy" */
    const char *architecture; /* "llama"; "" if the file names none */
    size_t n_tensors, n_metadata;
    uint64_t bytes; /* of all parts */
};
AKUNU_API enum akunu_status akunu_file_get_info(const struct akunu_file *file,
                                                struct akunu_file_info *info, size_t size);

struct akunu_tensor_info {
    const char *name;      /* as in the file */
    const char *canonical; /* akunu's name; NULL: the tensor has no role */
    const char *type;      /* "Q4_1" */
    unsigned n_dims;       /* 1 … 4 */
    uint64_t shape[4];     /* row-major: the last of n_dims is the contiguous one */
    uint64_t bytes;
    uint64_t offset; /* from the start of its file */
};
/* i in 0 … n_tensors-1, in file order. */
AKUNU_API enum akunu_status akunu_file_tensor(const struct akunu_file *file, size_t i,
                                              struct akunu_tensor_info *info, size_t size);

/* Dequantizes tensor i to float32, row-major. Elements [first, first+n) are
 * written to out; `first` and `n` are multiples of the row length. */
AKUNU_API enum akunu_status akunu_file_read_f32(const struct akunu_file *file, size_t i,
                                                uint64_t first, uint64_t n, float *out);

/* SHA-256 of tensor i dequantized to little-endian float32 in row-major order,
 * as 64 hexadecimal digits and a NUL. */
AKUNU_API enum akunu_status akunu_file_sha256_f32(const struct akunu_file *file, size_t i,
                                                  char out[65]);

/* SHA-256 of a model's file, as sha256sum prints it. Of a folder: of the name, a NUL and the digest
 * of each file in it, sorted by name; subfolders and names with a leading dot are left out.
 * `cancel`, unless NULL, is asked after each megabyte. AKUNU_ERROR_IO: something cannot be read. */
AKUNU_API enum akunu_status akunu_path_sha256(const char *path, akunu_cancel_fn *cancel, void *user,
                                              char out[65]);

enum akunu_meta_type {
    AKUNU_META_BOOL = 1,
    AKUNU_META_INT = 2,
    AKUNU_META_UINT = 3,
    AKUNU_META_FLOAT = 4,
    AKUNU_META_STRING = 5,
    AKUNU_META_ARRAY = 6
};
struct akunu_meta {
    const char *key;           /* UTF-8, NUL-terminated */
    enum akunu_meta_type type; /* AKUNU_META_ARRAY for an array */
    enum akunu_meta_type element_type;
    uint64_t n; /* bytes of a string, elements of an array, otherwise 1 */
    bool boolean;
    int64_t integer;
    uint64_t unsigned_integer;
    double number;
    const char *string; /* n bytes, not terminated */
};
/* Metadata entry i in file order, and element j of an array entry. */
AKUNU_API enum akunu_status akunu_file_meta(const struct akunu_file *file, size_t i,
                                            struct akunu_meta *out, size_t size);
AKUNU_API enum akunu_status akunu_file_meta_element(const struct akunu_file *file, size_t i,
                                                    uint64_t j, struct akunu_meta *out,
                                                    size_t size);

/* ---- What this build can read ------------------------------------------- */
struct akunu_format_info {
    const char *name;  /* as in akunu_file_info: "gguf" */
    const char *about; /* what files these are */
};
struct akunu_architecture_info {
    const char *name;  /* as in GGUF's general.architecture: "qwen2moe" */
    const char *about; /* which models these are */
    /* all names that files use, `name` and config.json's model_type included; ends with NULL */
    const char *const *names;
    bool experts; /* a mixture of experts */
};
struct akunu_type_info {
    const char *name;                  /* "Q4_K" */
    unsigned block_elems, block_bytes; /* weights and bytes of a block */
    bool integers;                     /* products use 8-bit integers, else floats */
    /* packed for the kernels at load; otherwise read in place */
    bool packed;
};
struct akunu_quantization_info {
    const char *name;  /* quant_method of config.json, "mlx" for MLX's own key */
    const char *about; /* which of its variants are read */
};

/* Entry i, from 0; AKUNU_ERROR_ARGUMENT past the last one. Strings live as long as the program. */
AKUNU_API enum akunu_status akunu_format_at(size_t i, struct akunu_format_info *info, size_t size);
AKUNU_API enum akunu_status akunu_architecture_at(size_t i, struct akunu_architecture_info *info,
                                                  size_t size);
AKUNU_API enum akunu_status akunu_type_at(size_t i, struct akunu_type_info *info, size_t size);
AKUNU_API enum akunu_status akunu_quantization_at(size_t i, struct akunu_quantization_info *info,
                                                  size_t size);

/* A device of a backend other than the CPU's, usable or not. */
struct akunu_device_info {
    char backend[16];                                       /* "opencl" */
    char name[128], vendor[128], version[128], driver[128]; /* as the driver reports them, ASCII */
    char features[128];                                     /* "gpu, unified memory, fp16" */
    uint64_t memory;                                        /* bytes */
    uint64_t max_allocation;                                /* bytes of the largest allocation */
    unsigned units, mhz;
    bool usable; /* it supports what akunu's kernels need */
};
/* Device i, from 0, numbered as in akunu_load_params.device. AKUNU_ERROR_ARGUMENT past the last
 * one; AKUNU_ERROR_UNSUPPORTED, with the reason, if this machine or build has none. */
AKUNU_API enum akunu_status akunu_device_at(size_t i, struct akunu_device_info *info, size_t size);

/* ---- The cache ---------------------------------------------------------- */
/* The first load of a model packs its weights into a file of the cache folder, and later loads map
 * that file. If that is impossible (a full disk, a read-only folder), weights are packed in memory
 * and the log says why in one line; results are the same bits. Processes that load a model at the
 * same time build the file once. The folder also holds the prompts of akunu_sequence_keep. Packed
 * weights and prompts have a limit each (akunu_load_params.cache_limit,
 * akunu_prompt_cache.max_bytes). Files may be removed at any time, even while in use. */
struct akunu_cache;

enum akunu_cache_state {
    AKUNU_CACHE_READY = 1,
    AKUNU_CACHE_STALE = 2,      /* its model file was removed or has changed */
    AKUNU_CACHE_DAMAGED = 3,    /* damaged or of another version: never used */
    AKUNU_CACHE_UNFINISHED = 4, /* left behind by a process that ended while writing it */
    AKUNU_CACHE_BUILDING = 5    /* a process is writing it now */
};
AKUNU_API const char *akunu_cache_state_name(enum akunu_cache_state state); /* "ready" */

/* Lists the folder `dir`; NULL: the folder that akunu_model_load uses. A missing folder is an empty
 * cache. */
AKUNU_API struct akunu_cache *akunu_cache_open(const char *dir);
AKUNU_API void akunu_cache_free(struct akunu_cache *cache);
AKUNU_API const char *akunu_cache_path(const struct akunu_cache *cache);
AKUNU_API size_t akunu_cache_count(const struct akunu_cache *cache);

struct akunu_cache_entry {
    const char *file;    /* its name in the folder */
    const char *model;   /* path of the model file; "": unknown */
    const char *backend; /* "cpu"; "": unknown */
    enum akunu_cache_state state;
    uint64_t bytes; /* on disk */
    /* seconds since 1970; built: 0 if unknown; used: when it was last mapped */
    int64_t built, used;
    uint64_t n_tokens; /* tokens of a prompt; 0: packed weights */
};
/* i in 0 … count-1. Strings live as long as the cache. */
AKUNU_API enum akunu_status akunu_cache_get_entry(const struct akunu_cache *cache, size_t i,
                                                  struct akunu_cache_entry *entry, size_t size);

/* Removes the file of entry i. The entry stays, so other indices do not change. AKUNU_ERROR_IO: it
 * cannot be removed, or is being written. */
AKUNU_API enum akunu_status akunu_cache_remove(struct akunu_cache *cache, size_t i);

/* Where a load gets a model's weights from, best first. */
enum akunu_tier {
    AKUNU_TIER_PACKED = 1,     /* the packed cache: it is mapped, and nothing is computed */
    AKUNU_TIER_COMPRESSED = 2, /* a folder of NumPy arrays with manifest.json */
    AKUNU_TIER_SOURCE = 3      /* the model file, of any other format */
};
AKUNU_API const char *akunu_tier_name(enum akunu_tier tier); /* "packed cache" */

/* What a load does to the weights whose kernels read them in another layout than the file's. */
enum akunu_packing {
    AKUNU_PACKING_CACHED = 1, /* nothing: they are mapped from the cache */
    AKUNU_PACKING_KEPT = 2,   /* packs them into the cache, for this start and later ones */
    AKUNU_PACKING_MEMORY = 3, /* packs them into memory, at every start */
    AKUNU_PACKING_NONE = 4    /* there are none */
};
AKUNU_API const char *akunu_packing_name(enum akunu_packing packing); /* "cached" */

/* What akunu_model_load would do now, and what the model takes then. */
struct akunu_load_plan {
    const char *format; /* as in akunu_file_info */
    enum akunu_tier tier;
    enum akunu_packing packing;
    enum akunu_cache_state cache_state; /* of the packed weights' file; 0: there is none */
    char cache_file[64];   /* its name in the cache folder; "": none is read or written */
    char reason[256];      /* why the weights are not mapped from the cache; "": they are */
    char backend[32];      /* whose layout it is: "cpu", for every instruction set */
    int64_t built, used;   /* of the file, as in akunu_cache_entry; 0: unknown */
    uint64_t cache_limit;  /* bytes of all packed weights, if they are to be kept; else 0 */
    uint64_t source_bytes; /* of the model's files */
    uint64_t packed_bytes; /* of weights in the kernels' layout */
    /* of weights that kernels read from the file in place; the embedding, of which a pass reads a
     * row per token, is not counted */
    uint64_t in_place_bytes;
    uint64_t token_weight_bytes; /* read for one token of decode; of experts those that are used */
    uint64_t kv_bytes, scratch_bytes; /* of the session */
    uint32_t context;                 /* of the session, in tokens */
};

/* Plans a load of the model at `path` and a session on it: reads headers and writes nothing.
 * `params` and `session` may be NULL; a session's context is 1 token … the model's, 0: the
 * model's. Fails as akunu_model_load does. */
AKUNU_API enum akunu_status akunu_model_plan(const char *path,
                                             const struct akunu_load_params *params,
                                             const struct akunu_session_params *session,
                                             struct akunu_load_plan *plan, size_t size);

/* ---- Saved sequences ---------------------------------------------------- */
/* Writes a sequence's tokens, keys and values to a file, or reads them into an empty sequence of a
 * session with the same model and KV types, on this or another machine, with the same bits. The
 * file appears complete or not at all. AKUNU_ERROR_UNSUPPORTED: the model has recurrent state, or
 * runs on a device. AKUNU_ERROR_FORMAT: the file is damaged, of another model, or writable by
 * others. AKUNU_ERROR_CONTEXT: its text does not fit. */
AKUNU_API enum akunu_status akunu_sequence_save(struct akunu_session *session,
                                                akunu_sequence sequence, const char *path);
AKUNU_API enum akunu_status akunu_sequence_load(struct akunu_session *session,
                                                akunu_sequence sequence, const char *path);

/* Earlier prompts, kept on disk. Files are private to the user (mode 0600). */
struct akunu_prompt_cache {
    size_t size;
    const char *dir;  /* NULL: the folder of the packed weights */
    const char *file; /* one file instead of the folder; NULL: none */
    /* of all prompts in the folder (2 GB); the least recently used are evicted */
    uint64_t max_bytes;
    uint32_t min_tokens; /* shorter prompts are neither looked up nor kept (128) */
};
AKUNU_API void akunu_prompt_cache_default(struct akunu_prompt_cache *cache, size_t size);

/* Fills an empty sequence with the longest prefix of the prompt that a kept prompt begins with,
 * never all of it. Run the rest, from ids + *n_restored on; logits are the same bits as without the
 * cache. cache may be NULL. A file that cannot be used (damaged, another model, a model with
 * recurrent state) is skipped: *n_restored is 0 and the session's log has a line. */
AKUNU_API enum akunu_status akunu_sequence_restore(struct akunu_session *session,
                                                   akunu_sequence sequence, const akunu_token *ids,
                                                   size_t n_ids,
                                                   const struct akunu_prompt_cache *cache,
                                                   size_t *n_restored);

/* Keeps the first n_tokens of a sequence for later prompts, unless nearly all of them are kept
 * already. If the file cannot be written, it is skipped as above. */
AKUNU_API enum akunu_status akunu_sequence_keep(struct akunu_session *session,
                                                akunu_sequence sequence, size_t n_tokens,
                                                const struct akunu_prompt_cache *cache);

/* ---- Converting --------------------------------------------------------- */
struct akunu_convert_params {
    size_t size;
    /* type of matrices: "F32", "F16", "BF16", "Q8_0"; NULL: as stored, or F32 if GGUF lacks the
     * type. Vectors are F32; rows that do not fill blocks are F16 */
    const char *type;
    /* tokenizer.ggml.pre; NULL: the known pre-tokenizer that splits as the model's does */
    const char *pre;
    bool overwrite;                 /* replace an existing file at the destination */
    const char *const *override_kv; /* as in akunu_load_params */
    akunu_fraction_fn *progress;    /* called every few megabytes; NULL allowed */
    akunu_log_fn *log;              /* NULL allowed */
    void *user;
    bool no_vocab;                  /* write the file even if the model has no vocabulary */
    const char *const *ignore_keys; /* as in akunu_load_params */
};
AKUNU_API void akunu_convert_params_default(struct akunu_convert_params *params, size_t size);

/* Writes the model at `from`, of any format that can be loaded, to one GGUF file `to` with
 * tokenizer and metadata, for akunu and, except speech models, llama.cpp. Takes memory for at most
 * one tensor. The file appears complete or not at all, and no file of the model is ever replaced.
 *
 * AKUNU_ERROR_ARGUMENT: `to` exists. AKUNU_ERROR_FORMAT: the model has no vocabulary, or a damaged
 * one. AKUNU_ERROR_UNSUPPORTED: GGUF cannot express something of the model. AKUNU_ERROR_IO: it
 * cannot be written, or would not fit. */
AKUNU_API enum akunu_status akunu_file_convert(const char *from, const char *to,
                                               const struct akunu_convert_params *params);

/* ---- Quantizing --------------------------------------------------------- */
/* A tensor of the new file. shape: as in struct akunu_tensor; bytes: in the new file. */
struct akunu_quantized_tensor {
    const char *name;
    const char *stored, *type; /* names of its types: in the source, and in the new file */
    unsigned n_dims;
    const uint64_t *shape;
    uint64_t bytes;
    /* KL divergence that its quantization is expected to add, in nats per token, if types were
     * searched; else 0 */
    double divergence;
};
typedef void akunu_quantize_report_fn(const struct akunu_quantized_tensor *tensor, void *user);

struct akunu_quantize_params {
    size_t size;
    /* a type, "Q6_K", or a mix of types, "Q4_K_M", by llama.cpp's names and with its choices */
    const char *type;
    /* "PATTERN=TYPE": the type of tensors in whose names the regular expression is found; the first
     * one counts. Ends in NULL; NULL: none */
    const char *const *tensor_types;
    const char *output_type, *embedding_type; /* NULL: as `type` says */
    /* importance matrix, of akunu_importance_write or llama-imatrix; NULL: all columns count alike.
     * AKUNU_ERROR_ARGUMENT if a matrix is to be IQ1_S, IQ1_M, IQ2_XXS, IQ2_XS, IQ2_S or IQ3_XXS and
     * has no importance, unless it is the embedding or the output */
    const char *importance;
    bool pure;       /* no mix: all matrices have the type */
    bool requantize; /* even if the source is quantized */
    bool overwrite;  /* as in akunu_convert_params, like what follows */
    const char *const *override_kv;
    unsigned n_threads; /* 0: the physical cores */
    akunu_fraction_fn *progress;
    akunu_quantize_report_fn *report; /* every tensor, before the work begins; NULL allowed */
    akunu_log_fn *log;
    void *user;
    /* A size in place of a mix: each matrix gets the type with which the model's predictions on a
     * text diverge least from the source's. Measured by a run of 512 tokens for each matrix, which
     * needs a GGUF file, and its largest matrix as floats in memory. */
    uint64_t target_bytes; /* of the file, at most; 0: no limit */
    double target_bits;    /* bits per weight, at most; 0: no limit */
    const char *text;      /* calibration text, n_text bytes of UTF-8, at least 64 tokens */
    size_t n_text;
    bool no_vocab;                  /* as in akunu_convert_params */
    const char *const *ignore_keys; /* as in akunu_load_params */
};
AKUNU_API void akunu_quantize_params_default(struct akunu_quantize_params *params, size_t size);

/* As akunu_file_convert, with quantized matrices; `to` NULL: reports the tensors and writes
 * nothing. The bytes depend on source and parameters alone, not on threads or machine. */
AKUNU_API enum akunu_status akunu_file_quantize(const char *from, const char *to,
                                                const struct akunu_quantize_params *params);

/* Type or mix i that can be written, by name; NULL: past the last one. */
AKUNU_API const char *akunu_quantize_type_at(size_t i);

/* ---- Choosing a type ---------------------------------------------------- */
/* Says what a model would take as each type or mix: disk, memory, time per token on this machine,
 * and what its predictions lose. */
struct akunu_advisor;

struct akunu_advisor_params {
    size_t size;
    /* context, batch, threads and KV types of the sessions to come; NULL: defaults */
    const struct akunu_session_params *session;
    const char *const *override_kv; /* as in akunu_load_params */
    const char *cpu;                /* as in akunu_load_params */
    bool no_speed;                  /* measure nothing: tokens_per_second is 0 */
    const char *const *ignore_keys; /* as in akunu_load_params */
};
AKUNU_API void akunu_advisor_params_default(struct akunu_advisor_params *params, size_t size);

/* Opens the model at `path` for questions: a model of any format, which need not have more than
 * headers. Fails as akunu_file_quantize does. */
AKUNU_API struct akunu_advisor *akunu_advisor_new(const char *path,
                                                  const struct akunu_advisor_params *params);
AKUNU_API void akunu_advisor_free(struct akunu_advisor *advisor);

struct akunu_advice {
    const char *type;      /* "Q4_K_M"; of the model as it is the type of most bytes */
    bool needs_importance; /* akunu_file_quantize refuses it without an importance matrix */
    bool requantizes;      /* quantized tensors of the source would be quantized again */
    uint64_t file_bytes;   /* of the GGUF file; of the model as it is, of its files */
    /* weights in the kernels' layout or read from the file in place, KV cache, memory of passes,
     * and their sum */
    uint64_t weight_bytes, kv_bytes, scratch_bytes, memory_bytes;
    uint32_t context;            /* tokens of the KV cache */
    uint64_t token_weight_bytes; /* as in akunu_load_plan */
    /* expected of one text at the start of its context, and at its end; 0: not known */
    double tokens_per_second, end_tokens_per_second;
    /* Expected KL divergence from the source in nats per token, without an importance matrix and
     * with one: that of Llama 3 8B, from which other models differ by a factor of up to 4. Of the
     * model as it is 0; below 0: not known. */
    double divergence, importance_divergence;
};
/* type: a name of akunu_quantize_type_at; NULL: the model as it is. Measures the speed of a type
 * when it first occurs, in at most a tenth of a second. */
AKUNU_API enum akunu_status akunu_advisor_get(struct akunu_advisor *advisor, const char *type,
                                              struct akunu_advice *advice, size_t size);

/* ---- Compressing -------------------------------------------------------- */
struct akunu_compress_params {
    size_t size;
    const char *encoding; /* of the matrices: "int8" (default), "int4" or "int3" */
    uint32_t group;       /* neighbors in a row that share a scale: 32, 64 (default), 96 or 128 */
    /* importance matrix, as in akunu_quantize_params, for int4 and int3; NULL: columns count alike,
     * or as `awq` says */
    const char *importance;
    /* an importance matrix whose sums scale the columns of matrices behind norms (AWQ), for int4
     * and int3; NULL: they are not scaled */
    const char *awq;
    /* the folder is compared with the source on this text, n_text bytes of UTF-8, at least 64
     * tokens; NULL: it is not compared. int3 needs it */
    const char *text;
    size_t n_text;
    /* Limits of that comparison: mean KL divergence in nats per token, and the share of positions
     * with the same best token, 0 … 1. Below 0 (default): 0.25 and 0.75 for int3, else none. */
    double max_divergence, min_agreement;
    bool requantize;    /* even if the source is quantized */
    bool overwrite;     /* replace the model in the folder, or what an interrupted call left */
    unsigned n_threads; /* 0: the physical cores */
    akunu_fraction_fn *progress;
    akunu_log_fn *log;
    void *user;
};
AKUNU_API void akunu_compress_params_default(struct akunu_compress_params *params, size_t size);

struct akunu_compress_result {
    uint64_t source_bytes; /* of the source's tensors */
    /* of the arrays in the folder; int8, int4 and int3: 0 if it has none */
    uint64_t int8_bytes, int4_bytes, int3_bytes, plain_bytes;
    uint64_t n_matrices; /* that the encoding has; int8 leaves F16 those that would lose too much */
    uint64_t n_resumed;  /* of these, written by an earlier call that was interrupted */
    double min_cosine;   /* least cosine of a matrix with what it became; 0: none is known */
    /* the comparison: positions, mean KL divergence, share of equal best tokens; 0: none */
    uint64_t n_positions;
    double divergence, agreement;
};

/* Writes the model at `from`, of any format but a speech model's, as a folder of NumPy arrays
 * (docs/npy-directory.md). The folder is new or empty; or it has another encoding of the same
 * model: then this one joins it, and is the one that loads. The folder loads once all of it is
 * written. A call with the same source and parameters goes on where an interrupted one stopped.
 * Takes memory for a few rows; with a text, for both models.
 *
 * result may be NULL; it is filled after a failure too, as far as the work went.
 * AKUNU_ERROR_ARGUMENT: the folder holds something else or has the encoding already, the source is
 * quantized, or the limits are not met. AKUNU_ERROR_UNSUPPORTED: the format cannot hold the model.
 * AKUNU_ERROR_BUSY: another process writes the folder. */
AKUNU_API enum akunu_status akunu_file_compress(const char *from, const char *to,
                                                const struct akunu_compress_params *params,
                                                struct akunu_compress_result *result, size_t size);

/* ---- Importance of columns ---------------------------------------------- */
/* An importance matrix: for each column of a model's matrices the sum of squares of what it is
 * multiplied with, over the tokens of texts. Quantizers let columns count by it. Mixtures have sums
 * for each expert. Tensors have the names that akunu_file_convert gives them. */
struct akunu_importance;

struct akunu_importance_params {
    size_t size;
    /* also the output matrix, or the embedding if it serves as one: passes compute logits for it */
    bool output;
    uint32_t chunk_size; /* tokens of a text, for the file and for files of the older form (512) */
    const char *dataset; /* name of the texts, for the file; NULL: none */
};
AKUNU_API void akunu_importance_params_default(struct akunu_importance_params *params, size_t size);

/* Begins with zeros. model NULL: only files are combined. AKUNU_ERROR_UNSUPPORTED: the model cannot
 * be a GGUF file. */
AKUNU_API struct akunu_importance *
akunu_importance_new(const struct akunu_model *model, const struct akunu_importance_params *params);
AKUNU_API void akunu_importance_free(struct akunu_importance *importance);

/* Adds the sums of a file, of llama-imatrix or akunu_importance_write, in GGUF or the older form,
 * so that a run goes on or several become one. AKUNU_ERROR_ARGUMENT: it is of another model.
 * AKUNU_ERROR_FORMAT: it is none, or damaged. After either nothing is added. */
AKUNU_API enum akunu_status akunu_importance_read(struct akunu_importance *importance,
                                                  const char *path);

/* Runs n tokens as a text of its own, in a free sequence of a session of the same model on the cpu
 * backend, and adds the inputs of all products. The sums depend neither on threads nor on the
 * number of passes. `cancel`, unless NULL, is asked before each pass. After any failure nothing is
 * added. AKUNU_ERROR_UNSUPPORTED: another backend, or a speech model. AKUNU_ERROR_CONTEXT: the text
 * does not fit. AKUNU_ERROR_NUMERIC: an input is not finite. */
AKUNU_API enum akunu_status akunu_importance_add(struct akunu_importance *importance,
                                                 struct akunu_session *session,
                                                 const akunu_token *ids, size_t n,
                                                 akunu_cancel_fn *cancel, void *user);

struct akunu_importance_info {
    size_t n_tensors;
    uint64_t n_tokens;   /* of all texts and files */
    uint64_t n_matrices; /* of all tensors: an expert is one */
    uint64_t n_unused;   /* of these, matrices that no token was multiplied with */
};
AKUNU_API enum akunu_status akunu_importance_get_info(const struct akunu_importance *importance,
                                                      struct akunu_importance_info *info,
                                                      size_t size);

/* Writes a GGUF file that akunu_file_quantize and llama-quantize read. It appears complete or not
 * at all. The same texts give the same bytes, also if the file was written in between and read
 * again. AKUNU_ERROR_ARGUMENT: nothing was added, or `path` exists. */
AKUNU_API enum akunu_status akunu_importance_write(const struct akunu_importance *importance,
                                                   const char *path, bool overwrite);
/* Whether it could be written now, for a check before long work. Leaves nothing behind. */
AKUNU_API enum akunu_status akunu_importance_check_path(const char *path, bool overwrite);

#ifdef __cplusplus
}
#endif

#endif
