/* akunu/files.h: files: looking into model files, what this build can read, the cache, saved
 * sequences, and converting, quantizing and compressing models. Included by akunu.h; compiles
 * alone. */
#ifndef AKUNU_FILES_H
#define AKUNU_FILES_H

#include "akunu/core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Looking into a file without loading it ----------------------------- */
/* An opened model file. Opening reads headers only; tensors are mapped. */
struct akunu_file;

/* `path`: a GGUF file, or the first file of a split one; a folder of SafeTensors with config.json,
 * or one SafeTensors file next to it; a folder of NumPy arrays with manifest.json and config.json;
 * a Whisper model in the GGML format; or a NumPy array. */
AKUNU_API struct akunu_file *akunu_file_open(const char *path);
/* override_kv: metadata that replaces the file's, as in akunu_load_params; NULL: none. */
AKUNU_API struct akunu_file *akunu_file_open_with(const char *path, const char *const *override_kv);
AKUNU_API void akunu_file_free(struct akunu_file *file);

struct akunu_file_info {
    const char *format;       /* "gguf", "safetensors", "npy-dir", "whisper-ggml", "npy" */
    const char *architecture; /* "llama"; "": the file names none */
    size_t n_tensors, n_metadata;
    uint64_t bytes; /* of all parts of the file */
};
AKUNU_API enum akunu_status akunu_file_get_info(const struct akunu_file *file,
                                                struct akunu_file_info *info, size_t size);

struct akunu_tensor_info {
    const char *name;      /* as in the file */
    const char *canonical; /* akunu's name; NULL: the model does not use the tensor */
    const char *type;      /* "Q4_1" */
    unsigned n_dims;       /* 1 … 4 */
    uint64_t shape[4];     /* [n_dims], row-major: the last dimension is contiguous */
    uint64_t bytes;
    uint64_t offset; /* in bytes from the start of its file */
};
/* Tensor i of 0 … n_tensors - 1, in the order of the file. */
AKUNU_API enum akunu_status akunu_file_get_tensor(const struct akunu_file *file, size_t i,
                                                  struct akunu_tensor_info *info, size_t size);

/* Dequantizes elements first … first + n - 1 of tensor i to out [n], in row-major order. `first`
 * and `n` are multiples of the length of a row. */
AKUNU_API enum akunu_status akunu_file_read_f32(const struct akunu_file *file, size_t i,
                                                uint64_t first, uint64_t n, float *out);

/* SHA-256 of tensor i, dequantized to little-endian float32 in row-major order, as 64 hexadecimal
 * digits and a NUL. */
AKUNU_API enum akunu_status akunu_file_sha256_f32(const struct akunu_file *file, size_t i,
                                                  char out[65]);

/* SHA-256 of a model's file, as sha256sum prints it. For a folder: of the name, a NUL and the
 * digest of each file in it, sorted by name, without subfolders and without names that begin with a
 * dot. `cancel`, unless NULL, is called after each megabyte. AKUNU_ERROR_IO: a file cannot be read.
 */
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
/* A metadata value. Only the member of its type is set. */
struct akunu_meta {
    const char *key;
    enum akunu_meta_type type;
    enum akunu_meta_type element_type; /* of an array */
    uint64_t n;                        /* bytes of a string, elements of an array, otherwise 1 */
    bool boolean;
    int64_t integer;
    uint64_t unsigned_integer;
    double number;
    const char *string; /* n bytes, without a NUL */
};
/* Metadata entry i of 0 … n_metadata - 1, in the order of the file; and element j of an entry that
 * is an array. */
AKUNU_API enum akunu_status akunu_file_get_meta(const struct akunu_file *file, size_t i,
                                                struct akunu_meta *meta, size_t size);
AKUNU_API enum akunu_status akunu_file_get_meta_element(const struct akunu_file *file, size_t i,
                                                        uint64_t j, struct akunu_meta *meta,
                                                        size_t size);

/* ---- What this build can read ------------------------------------------- */
struct akunu_format_info {
    const char *name;  /* as in akunu_file_info: "gguf" */
    const char *about; /* which files these are */
};
struct akunu_architecture_info {
    const char *name;  /* as in GGUF's general.architecture: "qwen2moe" */
    const char *about; /* which models these are */
    /* all names in files, including `name` and model_type of config.json */
    const char *const *names;
    bool experts; /* a mixture of experts */
};
struct akunu_type_info {
    const char *name;                  /* "Q4_K" */
    unsigned block_elems, block_bytes; /* weights and bytes of a block */
    bool integers;                     /* products use 8-bit integers; false: floats */
    bool packed; /* packed for the kernels when a model is loaded; false: read in place */
};
struct akunu_quantization_info {
    const char *name;  /* quant_method of config.json; "mlx" for MLX's own key */
    const char *about; /* which of its variants are read */
};

/* Entry i, from 0. AKUNU_ERROR_ARGUMENT: i is past the end. Strings live as long as the program. */
AKUNU_API enum akunu_status akunu_get_format(size_t i, struct akunu_format_info *info, size_t size);
AKUNU_API enum akunu_status akunu_get_architecture(size_t i, struct akunu_architecture_info *info,
                                                   size_t size);
AKUNU_API enum akunu_status akunu_get_type(size_t i, struct akunu_type_info *info, size_t size);
AKUNU_API enum akunu_status akunu_get_quantization(size_t i, struct akunu_quantization_info *info,
                                                   size_t size);

/* A device of another backend than the CPU's, usable or not. */
struct akunu_device_info {
    char backend[16];                                       /* "opencl" */
    char name[128], vendor[128], version[128], driver[128]; /* as the driver reports them, ASCII */
    char features[128];                                     /* "gpu, unified memory, fp16" */
    uint64_t memory;                                        /* bytes */
    uint64_t max_allocation;                                /* bytes of the largest allocation */
    unsigned units, mhz;                                    /* compute units; their clock */
    bool usable; /* it supports what akunu's kernels need */
};
/* Device i, from 0, the number that akunu_load_params.device takes. AKUNU_ERROR_ARGUMENT: i is past
 * the end. AKUNU_ERROR_UNSUPPORTED: this machine or build has no devices; the message says why. */
AKUNU_API enum akunu_status akunu_get_device(size_t i, struct akunu_device_info *info, size_t size);

/* ---- The cache ---------------------------------------------------------- */
/* The first load of a model packs its weights into a file of the cache folder, and later loads map
 * that file. If the file cannot be written (a full disk, a read-only folder), weights are packed
 * into memory and the log says why in one line; results are the same bits. If several processes
 * load a model at once, one of them writes the file. The folder also holds the prompts of
 * akunu_sequence_keep. Packed weights and prompts each have a limit (akunu_load_params.cache_limit,
 * akunu_prompt_cache.max_bytes). Files may be removed at any time, even while they are in use. */
struct akunu_cache;

enum akunu_cache_state {
    AKUNU_CACHE_READY = 1,
    AKUNU_CACHE_STALE = 2,      /* its model file was removed or has changed */
    AKUNU_CACHE_DAMAGED = 3,    /* damaged or of another version; it is never used */
    AKUNU_CACHE_UNFINISHED = 4, /* left behind by a process that ended while writing it */
    AKUNU_CACHE_BUILDING = 5    /* a process is writing it now */
};
AKUNU_API const char *akunu_cache_state_name(enum akunu_cache_state state); /* "ready" */

/* Lists the folder `dir`; NULL: the folder that akunu_model_load uses. A missing folder is an empty
 * cache. */
AKUNU_API struct akunu_cache *akunu_cache_open(const char *dir);
AKUNU_API void akunu_cache_free(struct akunu_cache *cache);
/* Path of the folder. */
AKUNU_API const char *akunu_cache_path(const struct akunu_cache *cache);
/* Number of entries. */
AKUNU_API size_t akunu_cache_count(const struct akunu_cache *cache);

struct akunu_cache_entry {
    const char *file;    /* its name in the folder */
    const char *model;   /* path of the model file; "": unknown */
    const char *backend; /* "cpu"; "": unknown */
    enum akunu_cache_state state;
    uint64_t bytes; /* on disk */
    /* times in seconds since 1970: when it was written (0: unknown), and when it was last mapped */
    int64_t built, used;
    uint64_t n_tokens; /* tokens of a prompt; 0: packed weights */
};
/* Entry i of 0 … akunu_cache_count() - 1. */
AKUNU_API enum akunu_status akunu_cache_get_entry(const struct akunu_cache *cache, size_t i,
                                                  struct akunu_cache_entry *entry, size_t size);

/* Removes the file of entry i. The entry stays, so other indices do not change. AKUNU_ERROR_IO: the
 * file cannot be removed, or is being written. */
AKUNU_API enum akunu_status akunu_cache_remove(struct akunu_cache *cache, size_t i);

/* Where a load takes a model's weights from, best first. */
enum akunu_tier {
    AKUNU_TIER_PACKED = 1,     /* the packed cache: mapped without any computation */
    AKUNU_TIER_COMPRESSED = 2, /* a folder of NumPy arrays with manifest.json */
    AKUNU_TIER_SOURCE = 3      /* the model file, of any other format */
};
AKUNU_API const char *akunu_tier_name(enum akunu_tier tier); /* "packed cache" */

/* What a load does to weights that kernels do not read in the file's layout. */
enum akunu_packing {
    AKUNU_PACKING_CACHED = 1, /* maps them from the cache */
    AKUNU_PACKING_KEPT = 2,   /* packs them into the cache, for this load and later ones */
    AKUNU_PACKING_MEMORY = 3, /* packs them into memory, at every load */
    AKUNU_PACKING_NONE = 4    /* nothing: there are none */
};
AKUNU_API const char *akunu_packing_name(enum akunu_packing packing); /* "cached" */

/* What akunu_model_load would do now, and the memory that the model and a session would take. */
struct akunu_load_plan {
    const char *format; /* as in akunu_file_info */
    enum akunu_tier tier;
    enum akunu_packing packing;
    enum akunu_cache_state cache_state; /* of the packed weights' file; 0: there is none */
    char cache_file[64];   /* its name in the cache folder; "": none is read or written */
    char reason[256];      /* why the weights are not mapped from the cache; "": they are */
    char backend[32];      /* backend whose layout it has: "cpu", for every ISA */
    int64_t built, used;   /* times of the file, as in akunu_cache_entry; 0: unknown */
    uint64_t cache_limit;  /* bytes of all packed weights, for AKUNU_PACKING_KEPT; otherwise 0 */
    uint64_t source_bytes; /* of the model's files */
    uint64_t packed_bytes; /* of weights in the kernels' layout */
    /* of weights that kernels read from the file in place, without the embedding, of which a pass
     * reads one row per token */
    uint64_t in_place_bytes;
    uint64_t token_weight_bytes;      /* as in akunu_model_info */
    uint64_t kv_bytes, scratch_bytes; /* of the session */
    uint32_t context;                 /* of the session, in tokens */
};

/* Plans a load of the model at `path` and a session on it. Reads headers only and writes nothing.
 * session->context is at most the model's; 0: the model's. Errors are those of akunu_model_load. */
AKUNU_API enum akunu_status akunu_get_load_plan(const char *path,
                                                const struct akunu_load_params *params,
                                                const struct akunu_session_params *session,
                                                struct akunu_load_plan *plan, size_t size);

/* ---- Saved sequences ---------------------------------------------------- */
/* Write the tokens, keys and values of a sequence to a file, and read them into an empty sequence
 * of a session with the same model and KV types, on this or another machine, as the same bits. The
 * file appears complete or not at all. AKUNU_ERROR_UNSUPPORTED: the model has recurrent state, or
 * runs on a device. AKUNU_ERROR_FORMAT: the file is damaged, belongs to another model, or can be
 * written by other users. AKUNU_ERROR_CONTEXT: its text does not fit. */
AKUNU_API enum akunu_status akunu_sequence_save(struct akunu_session *session,
                                                akunu_sequence sequence, const char *path);
AKUNU_API enum akunu_status akunu_sequence_load(struct akunu_session *session,
                                                akunu_sequence sequence, const char *path);

/* Prompts that are kept on disk. Only the user can read the files (mode 0600). */
struct akunu_prompt_cache {
    size_t size;
    const char *dir;  /* NULL: the folder of the packed weights */
    const char *file; /* one file instead of the folder; NULL: none */
    /* limit of all prompts in the folder; the least recently used are removed (2,000,000,000) */
    uint64_t max_bytes;
    uint32_t min_tokens; /* shorter prompts are neither looked up nor kept (128) */
};
AKUNU_API void akunu_prompt_cache_default(struct akunu_prompt_cache *cache, size_t size);

/* Fills an empty sequence with the longest beginning that `prompt` shares with a kept prompt, but
 * never with all of it, and sets *n_restored to its number of tokens. Then run the rest of the
 * prompt. Logits are the same bits as without the cache. A file that cannot be used (damaged, of
 * another model, of a model with recurrent state) is skipped: *n_restored is 0, and the session's
 * log gets a line. */
AKUNU_API enum akunu_status akunu_sequence_restore(struct akunu_session *session,
                                                   akunu_sequence sequence,
                                                   const struct akunu_ids *prompt,
                                                   const struct akunu_prompt_cache *cache,
                                                   size_t *n_restored);

/* Keeps the first n_tokens of a sequence for later prompts, unless nearly all of them are kept
 * already. If the file cannot be written, it is skipped, and the session's log gets a line. */
AKUNU_API enum akunu_status akunu_sequence_keep(struct akunu_session *session,
                                                akunu_sequence sequence, size_t n_tokens,
                                                const struct akunu_prompt_cache *cache);

/* ---- Converting --------------------------------------------------------- */
struct akunu_convert_params {
    size_t size;
    /* type of matrices: "F32", "F16", "BF16" or "Q8_0"; NULL: the stored type, or F32 if GGUF lacks
     * it. Vectors are F32. Rows that do not fill blocks are F16. */
    const char *type;
    /* value of tokenizer.ggml.pre; NULL: the known pre-tokenizer that splits as the model's does */
    const char *pre;
    bool overwrite;                 /* replace an existing file at the destination */
    const char *const *override_kv; /* as in akunu_load_params */
    akunu_fraction_fn *progress;    /* called every few megabytes; NULL: none */
    akunu_log_fn *log;              /* NULL: silent */
    void *user;                     /* passed to both callbacks */
    bool no_vocab;                  /* write the file even if the model has no vocabulary */
    const char *const *ignore_keys; /* as in akunu_load_params */
};
AKUNU_API void akunu_convert_params_default(struct akunu_convert_params *params, size_t size);

/* Writes the model at `from`, of any format that can be loaded, to one GGUF file `to`, with
 * tokenizer and metadata. akunu reads the file, and so does llama.cpp, except for speech models.
 * Takes memory for at most one tensor. The file appears complete or not at all, and never replaces
 * a file of the model.
 *
 * AKUNU_ERROR_ARGUMENT: `to` exists. AKUNU_ERROR_FORMAT: the model has no vocabulary, or a damaged
 * one. AKUNU_ERROR_UNSUPPORTED: GGUF cannot express the model. AKUNU_ERROR_IO: the file cannot be
 * written, or would not fit. */
AKUNU_API enum akunu_status akunu_convert(const char *from, const char *to,
                                          const struct akunu_convert_params *params);

/* ---- Quantizing --------------------------------------------------------- */
/* A tensor of the new file. */
struct akunu_quantized_tensor {
    const char *name;
    const char *stored, *type; /* names of its types: in the source, and in the new file */
    unsigned n_dims;
    const uint64_t *shape; /* as in akunu_tensor_info */
    uint64_t bytes;        /* in the new file */
    /* KL divergence, in nats per token, that quantizing it is expected to add; 0 unless types were
     * searched (target_bytes, target_bits) */
    double divergence;
};
/* Gets a tensor of the new file. */
typedef void akunu_quantize_report_fn(const struct akunu_quantized_tensor *tensor, void *user);

struct akunu_quantize_params {
    size_t size;
    /* a type ("Q6_K"), or one of llama.cpp's mixes of types ("Q4_K_M"), which is the default */
    const char *type;
    /* "PATTERN=TYPE": a type for tensors whose name contains a match of the regular expression; the
     * first one that matches counts. NULL: none */
    const char *const *tensor_types;
    const char *output_type, *embedding_type; /* NULL: as `type` says */
    /* importance matrix from akunu_importance_write or llama-imatrix; NULL: all columns count
     * alike. AKUNU_ERROR_ARGUMENT: a matrix would become IQ1_S, IQ1_M, IQ2_XXS, IQ2_XS, IQ2_S or
     * IQ3_XXS and has no importance, and is not the embedding or the output. */
    const char *importance;
    bool pure;                        /* no mix: all matrices get the type */
    bool requantize;                  /* even if the source is quantized */
    bool overwrite;                   /* replace an existing file at the destination */
    const char *const *override_kv;   /* as in akunu_load_params */
    unsigned n_threads;               /* 0: the physical cores */
    akunu_fraction_fn *progress;      /* NULL: none */
    akunu_quantize_report_fn *report; /* gets every tensor before the work begins; NULL: none */
    akunu_log_fn *log;                /* NULL: silent */
    void *user;                       /* passed to all three callbacks */
    /* A limit instead of a mix: each matrix gets the type that changes the model's predictions on a
     * text least. This is measured with a run of 512 tokens for each matrix. It needs a GGUF file
     * as the source, and memory for its largest matrix as floats. */
    uint64_t target_bytes; /* largest size of the file; 0: no limit */
    double target_bits;    /* largest number of bits per weight; 0: no limit */
    const char *text;      /* the text: n_text bytes of UTF-8, at least 64 tokens */
    size_t n_text;
    bool no_vocab;                  /* as in akunu_convert_params */
    const char *const *ignore_keys; /* as in akunu_load_params */
};
AKUNU_API void akunu_quantize_params_default(struct akunu_quantize_params *params, size_t size);

/* Converts a model as akunu_convert does, with quantized matrices. to NULL: reports the
 * tensors and writes nothing. The bytes depend only on the source and the parameters, and not on
 * threads or machine. Errors are those of akunu_convert; also AKUNU_ERROR_ARGUMENT: a type is
 * unknown, or the source is quantized. */
AKUNU_API enum akunu_status akunu_quantize(const char *from, const char *to,
                                           const struct akunu_quantize_params *params);

/* Name of type or mix i that akunu_quantize can write; NULL: i is past the end. */
AKUNU_API const char *akunu_quantize_type_name(size_t i);

/* ---- Choosing a type ---------------------------------------------------- */
/* Tells what a model would take as each type or mix: disk, memory, time per token on this machine,
 * and loss of its predictions. */
struct akunu_advisor;

struct akunu_advisor_params {
    size_t size;
    /* the sessions to plan for: context, batch, threads and KV types; NULL: defaults */
    const struct akunu_session_params *session;
    const char *const *override_kv; /* as in akunu_load_params */
    const char *cpu;                /* as in akunu_load_params */
    bool no_speed;                  /* measure nothing: tokens_per_second is 0 */
    const char *const *ignore_keys; /* as in akunu_load_params */
};
AKUNU_API void akunu_advisor_params_default(struct akunu_advisor_params *params, size_t size);

/* Opens the model at `path`, of any format. Only the headers of its files are needed. Errors are
 * those of akunu_quantize. */
AKUNU_API struct akunu_advisor *akunu_advisor_new(const char *path,
                                                  const struct akunu_advisor_params *params);
AKUNU_API void akunu_advisor_free(struct akunu_advisor *advisor);

struct akunu_advice {
    const char *type;      /* "Q4_K_M"; for the model as it is, the type that most bytes have */
    bool needs_importance; /* akunu_quantize needs an importance matrix for this type */
    bool requantizes;      /* quantized tensors of the source would be quantized again */
    uint64_t file_bytes;   /* of the GGUF file; for the model as it is, of its files */
    /* weights, packed or read from the file in place; KV cache; memory of passes; their sum */
    uint64_t weight_bytes, kv_bytes, scratch_bytes, memory_bytes;
    uint32_t context;            /* tokens of the KV cache */
    uint64_t token_weight_bytes; /* as in akunu_model_info */
    /* expected for one text, at the beginning of the context and at its end; 0: unknown */
    double tokens_per_second, end_tokens_per_second;
    /* Expected KL divergence from the source in nats per token, without an importance matrix and
     * with one. It is that of Llama 3 8B; other models differ from it by a factor of up to 4. 0 for
     * the model as it is; negative: unknown. */
    double divergence, importance_divergence;
};
/* type: a name from akunu_quantize_type_name; NULL: the model as it is. The first call for a type
 * measures its speed, which takes at most a tenth of a second. */
AKUNU_API enum akunu_status akunu_advisor_get_advice(struct akunu_advisor *advisor,
                                                     const char *type, struct akunu_advice *advice,
                                                     size_t size);

/* ---- Compressing -------------------------------------------------------- */
struct akunu_compress_params {
    size_t size;
    const char *encoding; /* of the matrices: "int8", "int4" or "int3" ("int8") */
    uint32_t group;       /* neighbors in a row that share a scale: 32, 64, 96 or 128 (64) */
    /* for int4 and int3: importance matrix, as in akunu_quantize_params; NULL: columns count alike,
     * or as `awq` says */
    const char *importance;
    /* for int4 and int3: importance matrix whose sums scale the columns of matrices that follow a
     * norm (AWQ); NULL: they are not scaled */
    const char *awq;
    /* n_text bytes of UTF-8, at least 64 tokens, on which the folder is compared with the source;
     * NULL: they are not compared. int3 needs a text. */
    const char *text;
    size_t n_text;
    /* Limits of that comparison: mean KL divergence in nats per token, and share of positions with
     * the same most likely token, 0 … 1. Negative: 0.25 and 0.75 for int3, otherwise none (-1). */
    double max_divergence, min_agreement;
    bool requantize;    /* even if the source is quantized */
    bool overwrite;     /* replace the model in the folder, or an interrupted call's files */
    unsigned n_threads; /* 0: the physical cores */
    akunu_fraction_fn *progress; /* NULL: none */
    akunu_log_fn *log;           /* NULL: silent */
    void *user;                  /* passed to both callbacks */
};
AKUNU_API void akunu_compress_params_default(struct akunu_compress_params *params, size_t size);

struct akunu_compress_result {
    uint64_t source_bytes; /* of the source's tensors */
    /* of the arrays in the folder, by encoding; 0: it has none of this encoding */
    uint64_t int8_bytes, int4_bytes, int3_bytes, plain_bytes;
    uint64_t n_matrices; /* in the encoding; int8 leaves those F16 that would lose too much */
    uint64_t n_resumed;  /* of these, written by an earlier call that was interrupted */
    double min_cosine;   /* smallest cosine of a matrix with its encoding; 0: unknown */
    /* the comparison: positions, mean KL divergence, share of equal most likely tokens; 0: none */
    uint64_t n_positions;
    double divergence, agreement;
};

/* Writes the model at `from` as a folder `to` of NumPy arrays (docs/npy-directory.md). The source
 * has any format; it is not a speech model. The folder is new or empty, or it has another encoding
 * of the same model; the new encoding is then added and is the one that loads. The folder can be
 * loaded once all of it is written. A call with the same source and parameters continues where an
 * interrupted one stopped. Takes memory for a few rows, and with a text for both models.
 *
 * result may be NULL; after a failure it tells how far the work went. AKUNU_ERROR_ARGUMENT: the
 * folder holds something else or has the encoding already, the source is quantized, or a limit is
 * not met. AKUNU_ERROR_UNSUPPORTED: the format cannot hold the model. AKUNU_ERROR_BUSY: another
 * process writes the folder. */
AKUNU_API enum akunu_status akunu_compress(const char *from, const char *to,
                                           const struct akunu_compress_params *params,
                                           struct akunu_compress_result *result, size_t size);

/* ---- Importance of columns ---------------------------------------------- */
/* An importance matrix: for each column of a model's matrices, the sum of squares of the values
 * with which it is multiplied over the tokens of some texts. Quantizers weight columns by it.
 * Mixtures of experts have sums for each expert. Tensors have the names that akunu_convert
 * gives them. */
struct akunu_importance;

struct akunu_importance_params {
    size_t size;
    /* include the output matrix, or the embedding if it is used as one; passes then compute
     * logits */
    bool output;
    uint32_t chunk_size; /* tokens of a text, which the file states (512) */
    const char *dataset; /* name of the texts, which the file states; NULL: none */
};
AKUNU_API void akunu_importance_params_default(struct akunu_importance_params *params, size_t size);

/* Begins with zeros. model NULL: only files will be combined. AKUNU_ERROR_UNSUPPORTED: GGUF cannot
 * express the model. */
AKUNU_API struct akunu_importance *
akunu_importance_new(const struct akunu_model *model, const struct akunu_importance_params *params);
AKUNU_API void akunu_importance_free(struct akunu_importance *importance);

/* Adds the sums of a file from llama-imatrix or akunu_importance_write, in GGUF or the older form,
 * to continue a run or to combine several. If it fails, nothing is added. AKUNU_ERROR_ARGUMENT: the
 * file belongs to another model. AKUNU_ERROR_FORMAT: it is not such a file, or is damaged. */
AKUNU_API enum akunu_status akunu_importance_read(struct akunu_importance *importance,
                                                  const char *path);

/* Runs a text in a sequence of its own, and adds the inputs of all products. The session belongs to
 * the same model, runs on the backend "cpu", and has a free sequence. The sums do not depend on
 * threads or on the number of passes. `cancel`, unless NULL, is called before each pass. If it
 * fails, nothing is added. AKUNU_ERROR_UNSUPPORTED: another backend, or a speech model.
 * AKUNU_ERROR_CONTEXT: the text does not fit. AKUNU_ERROR_NUMERIC: an input is not finite. */
AKUNU_API enum akunu_status akunu_importance_add(struct akunu_importance *importance,
                                                 struct akunu_session *session,
                                                 const struct akunu_ids *text,
                                                 akunu_cancel_fn *cancel, void *user);

struct akunu_importance_info {
    size_t n_tensors;
    uint64_t n_tokens;   /* of all texts and files */
    uint64_t n_matrices; /* of all tensors; each expert counts as one */
    uint64_t n_unused;   /* of these, matrices with which no token was multiplied */
};
AKUNU_API enum akunu_status akunu_importance_get_info(const struct akunu_importance *importance,
                                                      struct akunu_importance_info *info,
                                                      size_t size);

/* Writes a GGUF file that akunu_quantize and llama-quantize read. It appears complete or not
 * at all. The same texts give the same bytes, also if the sums were written and read again in
 * between. AKUNU_ERROR_ARGUMENT: nothing was added, or `path` exists. */
AKUNU_API enum akunu_status akunu_importance_write(const struct akunu_importance *importance,
                                                   const char *path, bool overwrite);
/* Checks whether akunu_importance_write could write the file now: before long work. Leaves no file
 * behind. */
AKUNU_API enum akunu_status akunu_importance_check_path(const char *path, bool overwrite);

#ifdef __cplusplus
}
#endif

#endif
