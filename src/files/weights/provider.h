/* Provider: an opened model file, read in the same way whatever its format. The formats in
 * files/weights/ implement it. engine/spec/, engine/pack/, text/tokenizer/, text/template/,
 * conversion/convert/, engine/session/, engine/persist/ and api/ read models through it; bench/
 * reads vocabularies. files/store/ takes its fingerprint; engine/cpu/, opencl/, engine/backend/ and
 * engine/dispatch/ use tensor views. Once its overrides are set, a provider is immutable and
 * thread-safe. */
#ifndef AK_FILES_WEIGHTS_PROVIDER_H
#define AK_FILES_WEIGHTS_PROVIDER_H

#include <string.h>

#include "base/error.h"
#include "base/file.h"
#include "files/weights/role.h"
#include "files/quant/type.h"

enum { AK_TENSOR_DIMS_MAX = 4, AK_VIEW_PLANES_MAX = 4 };

struct ak_plane {
    const void *data;
    uint64_t bytes;
};

struct ak_composed_tensor; /* files/weights/composed.h */

/* Tensor view: one tensor as the model uses it. Points into the map; lives as long as the provider.
 * plane[0]: weights. Other planes: scales, biases or zero points of a composed tensor, which makes
 * rows of blocks of `type` from them. */
struct ak_view {
    enum ak_quant_type type;
    uint32_t rows, cols;                       /* logical shape; a vector has rows = 1 */
    struct ak_plane plane[AK_VIEW_PLANES_MAX]; /* unused ones are { NULL, 0 } */
    const char *name;                          /* in the file; for messages */
    const char *type_name; /* NULL, or the file's word for a type that akunu lacks: see ak_tensor */
    unsigned n_dims;       /* stored, without leading ones; a vector has 1 */
    const struct ak_composed_tensor *composed_tensor; /* NULL: plane[0] holds rows of blocks */
    uint32_t first_row; /* first row of the view in the composed tensor */
    /* expert stack of separate tensors: one view per expert; the planes then have the first
     * one's address and the total size. NULL: one tensor */
    const struct ak_view *expert_views;
    /* merged tensor: every second row (vectors: element) is another view's */
    bool is_interleaved;
};

/* One tensor as stored in the file. */
struct ak_tensor {
    const char *name;
    enum ak_quant_type type;
    const char *type_name; /* NULL, or the file's word for a type that akunu lacks; `type` is then
                            * U8, and data are its bytes, as many as there are */
    unsigned n_dims;
    uint64_t shape[AK_TENSOR_DIMS_MAX]; /* row-major: shape[n_dims-1] is contiguous */
    uint64_t bytes, offset;             /* offset: from the start of its part */
    const void *data;
    const struct ak_composed_tensor *composed_tensor; /* NULL: data is blocks of `type` */
    bool has_role;                                    /* role and layer are valid */
    enum ak_role role;
    int layer;
};

enum ak_meta_kind {
    AK_META_NONE,
    AK_META_BOOL,
    AK_META_INT,
    AK_META_UINT,
    AK_META_FLOAT,
    AK_META_STRING,
    AK_META_ARRAY
};

/* A metadata value. Strings point into the map and have no NUL. */
struct ak_meta {
    const char *key; /* with a NUL; "" for an element */
    enum ak_meta_kind kind;
    enum ak_meta_kind element_kind; /* of an array */
    uint64_t n;                     /* bytes of a string, elements of an array, else 1 */
    /* bytes of a number, or of each number of an array; 0: the format has one width only */
    unsigned width;
    union {
        bool boolean;
        int64_t integer;
        uint64_t unsigned_integer;
        double number;
        const char *string;
        const void *elements; /* private to the format; read by ak_provider_element */
    } as;
};

/* Bytes without a NUL. */
struct ak_text {
    const char *bytes;
    uint32_t n;
};

static inline bool ak_text_equals(struct ak_text text, const char *other)
{
    return text.n == strlen(other) && memcmp(text.bytes, other, text.n) == 0;
}

/* Tokens for fill-in-the-middle. PREFIX and SUFFIX begin the text before and after the gap, MIDDLE
 * begins what fills it; the others end it. */
enum ak_vocab_fim {
    AK_VOCAB_FIM_PREFIX,
    AK_VOCAB_FIM_SUFFIX,
    AK_VOCAB_FIM_MIDDLE,
    AK_VOCAB_FIM_PAD,
    AK_VOCAB_FIM_REPO, /* begins the name of a repository */
    AK_VOCAB_FIM_FILE, /* begins another file */
    AK_VOCAB_FIM_COUNT
};

/* The vocabulary of the file. Arrays have n_tokens or n_merges entries, or are NULL. Ids and flags
 * are −1 if the file has none. */
struct ak_vocab {
    struct ak_text model; /* "gpt2", "llama", …; n = 0: the file has no vocabulary */
    struct ak_text pre;   /* pre-tokenizer: "smollm", …; n = 0: none given */
    struct ak_text name;  /* the model's name */
    uint32_t n_tokens;
    const struct ak_text *tokens;
    const float *scores;
    /* GGUF: 1 normal, 2 unknown, 3 control, 4 user defined, 5 unused, 6 byte */
    const int32_t *types;
    uint32_t n_merges;
    const struct ak_text *merges;                                     /* "left right" */
    int64_t bos, eos, eot, unknown, separator, padding, cls, mask;    /* token ids */
    int add_bos, add_eos, add_space_prefix, remove_extra_whitespaces; /* -1, 0, 1 */
    int lowercase, strip_accents;                                     /* WordPiece: -1, 0, 1 */
    const int64_t *fim; /* ids by enum ak_vocab_fim; NULL: none */
    /* without a vocabulary: which file would have it, for messages; NULL: nothing is known */
    const char *advice;
    /* Unigram: SentencePiece's precompiled character map; n = 0: none */
    struct ak_text charsmap;
};
extern const struct ak_vocab ak_vocab_none; /* a file without a vocabulary */

struct ak_provider;

/* Naming convention of a checkpoint's tensors, with its layout. */
enum ak_provider_naming {
    /* llama.cpp's names; its converter has permuted rows of q and k and shifted norms */
    AK_PROVIDER_NAMING_GGUF,
    AK_PROVIDER_NAMING_HF /* Hugging Face's names; nothing permuted, nothing added */
};

/* Fingerprint of a model file: identifies it for cache keys without reading tensors. */
struct ak_provider_fingerprint {
    const char *path; /* path of the first part, for messages */
    uint64_t bytes;   /* of the first part */
    int64_t mtime_ns; /* of the first part */
    uint64_t hash[2]; /* over sizes, times and all non-tensor bytes of all parts */
};

/* Starts a fingerprint with the first part. Then add each part, this one too, with the number of
 * bytes before its tensors. */
void ak_provider_fingerprint_begin(struct ak_provider_fingerprint *fingerprint,
                                   const struct ak_file *first);
void ak_provider_fingerprint_add(struct ak_provider_fingerprint *fingerprint,
                                 const struct ak_file *file, uint64_t bytes);

/* Functions of a format: one static instance per format, listed in provider.c. */
struct ak_provider_format {
    const char *name;  /* "gguf" */
    const char *about; /* what these files are, for users */
    enum ak_provider_naming naming;
    /* Whether the content at `path` has this format. Reads bytes, not the name, and never fails:
     * `open` refuses damaged files. */
    bool (*probe)(const char *path);
    ak_status (*open)(const char *path, struct ak_provider **out, struct ak_error *error);
    void (*close)(struct ak_provider *p);
    /* Fails if the weights are unreadable although the file opens; NULL: always readable. */
    ak_status (*check_weights)(const struct ak_provider *p, struct ak_error *error);
    bool (*find)(const struct ak_provider *p, enum ak_role role, int layer, const char *hf,
                 struct ak_view *out);
    size_t (*n_tensors)(const struct ak_provider *p);
    bool (*tensor)(const struct ak_provider *p, size_t i, struct ak_tensor *out);
    size_t (*n_metas)(const struct ak_provider *p);
    bool (*meta)(const struct ak_provider *p, size_t i, struct ak_meta *out);
    bool (*find_meta)(const struct ak_provider *p, const char *key, struct ak_meta *out);
    /* the i-th key with the value null; NULL past the last one. NULL: the format has no nulls */
    const char *(*null_meta)(const struct ak_provider *p, size_t i);
    bool (*element)(const struct ak_provider *p, const struct ak_meta *array, uint64_t i,
                    struct ak_meta *out);
    /* NULL: no vocabulary */
    ak_status (*vocab)(const struct ak_provider *p, struct ak_vocab *out, struct ak_error *error);
    /* NULL: the format has no files beside the weights */
    bool (*file)(const struct ak_provider *p, const char *name, struct ak_text *out);
    uint64_t (*bytes)(const struct ak_provider *p);
    /* NULL: a file of its own for each tensor */
    const struct ak_file *(*part)(const struct ak_provider *p, size_t i);
    void (*fingerprint)(const struct ak_provider *p, struct ak_provider_fingerprint *out);
    void (*advise)(const struct ak_provider *p, const void *data, uint64_t bytes,
                   enum ak_file_advice use);
};

struct ak_meta_override;
struct ak_ignored_key;

/* A format's own struct has this as its first member. */
struct ak_provider {
    const struct ak_provider_format *format;
    struct ak_meta_override *overrides; /* NULL: none */
    struct ak_ignored_key *ignored;     /* NULL: none */
};

/* The i-th format; NULL past the end. */
const struct ak_provider_format *ak_provider_format_at(size_t i);

/* Detects the format at `path` by content and opens it. The caller owns *out after success. Error
 * messages begin with the path; those of the functions below do not. */
ak_status ak_provider_open(const char *path, struct ak_provider **out, struct ak_error *error);
/* Opens the GGUF file of a descriptor, which stays the caller's (gguf/gguf.c). Error messages begin
 * with the name of the file. */
ak_status ak_provider_open_fd(int fd, struct ak_provider **out, struct ak_error *error);
/* A provider that differs from `source` in one tensor: it holds `values`, row-major floats of its
 * shape. name NULL: in none. All of them stay the caller's and must outlive it; do not save a
 * packed cache of it, whose key would be that of `source`. */
ak_status ak_provider_replace(const struct ak_provider *source, const char *name,
                              const float *values, struct ak_provider **out,
                              struct ak_error *error);
void ak_provider_close(struct ak_provider *p); /* NULL allowed */

/* Replaces or adds a metadata value: "KEY=TYPE:VALUE" with TYPE int, float, bool or str, as in
 * llama.cpp's --override-kv. AKUNU_ERROR_ARGUMENT: any other text. Call it before anything else on
 * the provider. ak_provider_find_meta and ak_provider_meta return overrides; added keys come last
 * in the list. */
ak_status ak_provider_override(struct ak_provider *p, const char *text, struct ak_error *error);
bool ak_meta_overrides_find(const struct ak_meta_override *list, const char *key,
                            struct ak_meta *out);
/* false past the end */
bool ak_meta_overrides_at(const struct ak_meta_override *list, size_t i, struct ak_meta *out);
void ak_meta_overrides_free(struct ak_meta_override *list); /* NULL allowed */

/* Hides a metadata value from ak_provider_find_meta, as if the file did not have the key. */
ak_status ak_provider_ignore(struct ak_provider *p, const char *key, struct ak_error *error);
/* Both of lists that end in NULL, as users give them; NULL: none. */
ak_status ak_provider_adjust(struct ak_provider *p, const char *const *override_kv,
                             const char *const *ignore_keys, struct ak_error *error);
bool ak_provider_ignores(const struct ak_provider *p, const char *key);
void ak_ignored_keys_free(struct ak_ignored_key *list); /* NULL allowed */

enum ak_provider_naming ak_provider_naming(const struct ak_provider *p);

/* Fails if the weights are unreadable: a folder with an unsupported quantization still opens, for
 * inspection. */
ak_status ak_provider_check_weights(const struct ak_provider *p, struct ak_error *error);

/* Finds the tensor of a role and layer (AK_ROLE_NO_LAYER: none). Formats of AK_PROVIDER_NAMING_HF
 * know no roles: they look for `hf`, the architecture's name of the tensor with "{n}" for the
 * layer; NULL finds nothing. False: the file has no such tensor, which is normal for optional
 * weights. */
bool ak_provider_find(const struct ak_provider *p, enum ak_role role, int layer, const char *hf,
                      struct ak_view *out);

size_t ak_provider_n_tensors(const struct ak_provider *p);
bool ak_provider_tensor(const struct ak_provider *p, size_t i, struct ak_tensor *out);
size_t ak_provider_n_metas(const struct ak_provider *p);
bool ak_provider_meta(const struct ak_provider *p, size_t i, struct ak_meta *out);
/* The i-th key with the value null, which is no metadata value; NULL past the last one. */
const char *ak_provider_null(const struct ak_provider *p, size_t i);
/* False: no such key. */
bool ak_provider_find_meta(const struct ak_provider *p, const char *key, struct ak_meta *out);
/* Element i of an array value; strings as AK_META_STRING. False past the end. */
bool ak_provider_element(const struct ak_provider *p, const struct ak_meta *array, uint64_t i,
                         struct ak_meta *out);
/* The floats of an array; the caller frees *out. NULL: the file has no such array. */
ak_status ak_provider_read_floats(const struct ak_provider *p, const char *key, float **out,
                                  uint32_t *n, struct ak_error *error);
/* The arrays live as long as the provider. A file without a vocabulary is not an error: model.n
 * is 0. */
ak_status ak_provider_vocab(const struct ak_provider *p, struct ak_vocab *out,
                            struct ak_error *error);
/* Fails with AKUNU_ERROR_FORMAT: there is no vocabulary, and the provider's advice. */
ak_status ak_provider_fail_vocab(const struct ak_provider *p, struct ak_error *error);
/* A file beside the weights, by its name in the model's folder: "tokenizer.json",
 * "tokenizer_config.json", "generation_config.json". The bytes live as long as the provider. False:
 * no such file; always for formats of a single file. */
bool ak_provider_file(const struct ak_provider *p, const char *name, struct ak_text *out);
/* Whether one of the files beside the weights holds a vocabulary: tokenizer.json, or those of a
 * slow tokenizer, of which there may be too few. */
bool ak_provider_has_vocab_file(const struct ak_provider *p);
/* The content of such a file, parsed; NULL: no such file. The caller frees it with json_decref.
 * Error messages begin with the name. */
struct json_t;
ak_status ak_provider_json(const struct ak_provider *p, const char *name, struct json_t **out,
                           struct ak_error *error);
/* Bytes of all parts of the file. */
uint64_t ak_provider_bytes(const struct ak_provider *p);
/* The i-th opened file, including those beside the weights; NULL past the end, and if each tensor
 * has a file of its own. */
const struct ak_file *ak_provider_part(const struct ak_provider *p, size_t i);
/* The path lives as long as the provider. */
void ak_provider_fingerprint(const struct ak_provider *p, struct ak_provider_fingerprint *out);
/* Memory advice for tensor data [data, data + bytes): see ak_file_advise. */
void ak_provider_advise(const struct ak_provider *p, const void *data, uint64_t bytes,
                        enum ak_file_advice use);

/* Typed access with a default. An absent key gives `fallback`. A value of another type or out of
 * range is an error that names the key, the value found and the type expected. Integers of any
 * width and sign are accepted if the value fits; floats accept integers. */
ak_status ak_meta_u32(const struct ak_provider *p, const char *key, uint32_t fallback,
                      uint32_t *out, struct ak_error *error);
ak_status ak_meta_float(const struct ak_provider *p, const char *key, float fallback, float *out,
                        struct ak_error *error);
ak_status ak_meta_bool(const struct ak_provider *p, const char *key, bool fallback, bool *out,
                       struct ak_error *error);
/* These convert a value that the caller has found already. Messages name its key. */
ak_status ak_meta_to_u32(const struct ak_meta *meta, uint32_t *out, struct ak_error *error);
ak_status ak_meta_to_float(const struct ak_meta *meta, float *out, struct ak_error *error);
ak_status ak_meta_to_bool(const struct ak_meta *meta, bool *out, struct ak_error *error);
ak_status ak_meta_to_text(const struct ak_meta *meta, struct ak_text *out, struct ak_error *error);
enum { AK_META_SHOWN_BYTES = 512 };
/* The value for a message: 4, true, "silu", an array of 3 × float. */
const char *ak_meta_show(const struct ak_meta *meta, char out[AK_META_SHOWN_BYTES]);
/* Whether the value is this string. */
bool ak_meta_equals(const struct ak_meta *meta, const char *text);
/* An absent key gives { NULL, 0 }. */
ak_status ak_meta_text(const struct ak_provider *p, const char *key, struct ak_text *out,
                       struct ak_error *error);

/* Calls `fn` for pieces of all tensors, in file order, dequantized. A piece is elements
 * [first, first + n) of a tensor: whole rows, or whole blocks of a row over 1 MiB. Only one piece
 * is in memory. Stops at the first status that is not AKUNU_OK and returns it. */
typedef ak_status ak_tensor_stream_fn(const struct ak_tensor *tensor, uint64_t first, uint64_t n,
                                      const float *values, void *user);
ak_status ak_provider_stream(const struct ak_provider *p, ak_tensor_stream_fn *fn, void *user,
                             struct ak_error *error);
/* The same for one tensor. */
ak_status ak_tensor_stream(const struct ak_tensor *tensor, ak_tensor_stream_fn *fn, void *user,
                           struct ak_error *error);
/* Fails with AKUNU_ERROR_UNSUPPORTED if the tensor's type cannot be dequantized. */
ak_status ak_tensor_check_type(const struct ak_tensor *tensor, struct ak_error *error);
/* Dequantizes elements [first, first + n), whole blocks, of a type that can be. */
void ak_tensor_dequantize(const struct ak_tensor *tensor, uint64_t first, uint64_t n, float *out);
/* Name of the stored type: "Q4_K", "MLX4_G64". */
const char *ak_tensor_type_name(const struct ak_tensor *tensor);

/* GGUF's name of a role (NULL: none), and the role of a name (false: none). Speech models keep the
 * names of OpenAI's checkpoints in GGUF, as in whisper.cpp's files: ak_whisper_name. */
const char *ak_gguf_name(enum ak_role role);
const char *ak_whisper_name(enum ak_role role);
bool ak_gguf_role(const char *name, enum ak_role *role, int *layer);

/* Prefixes of tensor names in Hugging Face checkpoints, which depend on the class that was saved;
 * ends in NULL. The stem is the name without its prefix. */
extern const char *const ak_hf_roots[];
const char *ak_hf_stem(const char *name);

#endif
