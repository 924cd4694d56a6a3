/* One object opens a model file whatever its format; what comes after is
 * format-blind.
 *
 * An opened provider is immutable and may be read by any number of threads.
 */
#ifndef AK_WEIGHTS_PROVIDER_H
#define AK_WEIGHTS_PROVIDER_H

#include "base/error.h"
#include "base/file.h"
#include "op/role.h"
#include "quant/type.h"

enum { AK_TENSOR_DIMS_MAX = 4, AK_VIEW_PLANES_MAX = 4 };

struct ak_plane {
    const void *data;
    uint64_t bytes;
};

struct ak_composed_tensor; /* weights/composed.h */

/* One stored tensor as the model sees it. Views point into the map and live as
 * long as the provider. plane[0] holds the weights; formats that keep scales, biases or
 * zero points apart use the others, and the rows are then what the composed tensor makes of
 * them: blocks of `type` all the same. */
struct ak_view {
    enum ak_quant_type type;
    uint32_t rows, cols;                       /* logical shape; a vector has rows = 1 */
    struct ak_plane plane[AK_VIEW_PLANES_MAX]; /* unused ones are { NULL, 0 } */
    const char *name;                          /* as in the file, for messages */
    /* as stored, but for those of 1 before the last: a vector has 1 */
    unsigned n_dims;
    /* NULL: rows lie as blocks, one after another, in plane[0] */
    const struct ak_composed_tensor *composed_tensor;
    uint32_t first_row; /* the view's first row among those of the composed tensor */
    /* experts that are tensors of their own: one each; the planes then have the first one's
     * address and the size of all. Else NULL */
    const struct ak_view *expert_views;
    /* its rows (of vectors: elements) stand between those of another view */
    bool is_interleaved;
};

/* One stored tensor as the file has it. */
struct ak_tensor {
    const char *name;
    enum ak_quant_type type;
    unsigned n_dims;
    uint64_t shape[AK_TENSOR_DIMS_MAX]; /* row-major: shape[n_dims-1] is contiguous */
    uint64_t bytes, offset;             /* offset from the start of its part */
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

/* A metadata value; strings point into the map and are not terminated. */
struct ak_meta {
    const char *key; /* terminated; "" for an element */
    enum ak_meta_kind kind;
    enum ak_meta_kind element_kind; /* of an array */
    uint64_t n;                     /* bytes of a string, elements of an array, else 1 */
    /* bytes of a number, or of an element that is one, where the format has several */
    unsigned width;
    union {
        bool boolean;
        int64_t integer;
        uint64_t unsigned_integer;
        double number;
        const char *string;
        const void *elements; /* the provider's own: see ak_provider_element */
    } as;
};

/* The vocabulary as the file has it, format-blind. Arrays have n entries or are
 * NULL; ids are -1 where the file gives none; flags -1 where it says nothing. */
struct ak_text {
    const char *bytes;
    uint32_t n;
};
struct ak_vocab {
    struct ak_text model; /* "gpt2", "llama", …; n = 0: the file has no vocabulary */
    struct ak_text pre;   /* "smollm", …; n = 0: not said */
    struct ak_text name;  /* of the model, as its makers call it */
    uint32_t n_tokens;
    const struct ak_text *tokens;
    const float *scores;
    /* GGUF: 1 normal, 2 unknown, 3 control, 4 user defined, 5 unused, 6 byte */
    const int32_t *types;
    uint32_t n_merges;
    const struct ak_text *merges;                                     /* "left right" */
    int64_t bos, eos, eot, unknown, separator, padding, cls, mask;    /* token ids */
    int add_bos, add_eos, add_space_prefix, remove_extra_whitespaces; /* -1, 0, 1 */
    int lowercase, strip_accents;                                     /* of WordPiece: -1, 0, 1 */
    /* of Unigram: SentencePiece's precompiled character map; n = 0: none */
    struct ak_text charsmap;
};
extern const struct ak_vocab ak_vocab_none; /* of a file without one */

struct ak_provider;

/* By which convention a checkpoint's tensors are named and laid out. */
enum ak_provider_naming {
    /* llama.cpp's names; rows of q and k, and norms, as its converter leaves them */
    AK_PROVIDER_NAMING_GGUF,
    AK_PROVIDER_NAMING_HF /* Hugging Face's: nothing permuted, nothing added */
};

/* What tells a model file from any other, without its tensors. */
struct ak_provider_fingerprint {
    const char *path; /* of the first part, as it was opened; for people */
    uint64_t bytes;   /* of the first part */
    int64_t mtime_ns; /* of the first part */
    uint64_t hash[2]; /* hash over sizes, times, and all that is no tensor, of all parts */
};

/* The fingerprint of a file's first part, and of each part, this one too, what stands in its
 * first `bytes`: all that is no tensor. */
void ak_provider_fingerprint_begin(struct ak_provider_fingerprint *fingerprint,
                                   const struct ak_file *first);
void ak_provider_fingerprint_add(struct ak_provider_fingerprint *fingerprint,
                                 const struct ak_file *file, uint64_t bytes);

/* What a format implements; one static instance a format, listed in provider.c. */
struct ak_provider_format {
    const char *name;  /* "gguf" */
    const char *about; /* what files these are, for people */
    enum ak_provider_naming naming;
    /* Whether the content at `path` is this format's. Looks at bytes, not at the
     * name, and never fails: what is damaged later is `open`'s to refuse. */
    bool (*probe)(const char *path);
    ak_status (*open)(const char *path, struct ak_provider **out, struct ak_error *error);
    void (*close)(struct ak_provider *p);
    /* Whether weights are to be had, of a file that can be looked at; NULL: always. */
    ak_status (*check_weights)(const struct ak_provider *p, struct ak_error *error);
    bool (*find)(const struct ak_provider *p, enum ak_role role, int layer, const char *hf,
                 struct ak_view *out);
    size_t (*n_tensors)(const struct ak_provider *p);
    bool (*tensor)(const struct ak_provider *p, size_t i, struct ak_tensor *out);
    size_t (*n_metas)(const struct ak_provider *p);
    bool (*meta)(const struct ak_provider *p, size_t i, struct ak_meta *out);
    bool (*find_meta)(const struct ak_provider *p, const char *key, struct ak_meta *out);
    bool (*element)(const struct ak_provider *p, const struct ak_meta *array, uint64_t i,
                    struct ak_meta *out);
    /* NULL: it has none */
    ak_status (*vocab)(const struct ak_provider *p, struct ak_vocab *out, struct ak_error *error);
    /* NULL: a format of one file */
    bool (*file)(const struct ak_provider *p, const char *name, struct ak_text *out);
    uint64_t (*bytes)(const struct ak_provider *p);
    const struct ak_file *(*part)(const struct ak_provider *p, size_t i);
    void (*fingerprint)(const struct ak_provider *p, struct ak_provider_fingerprint *out);
    void (*advise)(const struct ak_provider *p, const void *data, uint64_t bytes,
                   enum ak_file_advice use);
};

/* A format embeds this as its first member. */
struct ak_meta_override;
struct ak_provider {
    const struct ak_provider_format *format;
    struct ak_meta_override *overrides; /* NULL: none */
};

/* The i-th format; NULL past the last one. */
const struct ak_provider_format *ak_provider_format_at(size_t i);

/* Detects the format at `path` by content and opens it. The caller owns
 * *out after success. Messages begin with the path; those of the functions below
 * do not. */
ak_status ak_provider_open(const char *path, struct ak_provider **out, struct ak_error *error);
void ak_provider_close(struct ak_provider *p); /* NULL allowed */

/* How Hugging Face folders may be quantized: what config.json calls it, and what of it is
 * read. NULL past the end. */
struct ak_hf_quantization {
    const char *name, *about;
};
const struct ak_hf_quantization *ak_hf_quantization_at(size_t i);

/* Puts a value in place of the file's, or beside what it has: "KEY=TYPE:VALUE" with
 * TYPE int, float, bool or str, as llama.cpp's --override-kv writes it. Only before
 * anything else is asked of the provider. What is no such text is
 * AKUNU_ERROR_ARGUMENT. Both ak_provider_find_meta and the list of all metadata,
 * where what the file does not have comes last, give it. */
ak_status ak_provider_override(struct ak_provider *p, const char *text, struct ak_error *error);
bool ak_meta_overrides_find(const struct ak_meta_override *list, const char *key,
                            struct ak_meta *out);
/* false past the end */
bool ak_meta_overrides_at(const struct ak_meta_override *list, size_t i, struct ak_meta *out);
void ak_meta_overrides_free(struct ak_meta_override *list); /* NULL allowed */

enum ak_provider_naming ak_provider_naming(const struct ak_provider *p);

/* Whether the weights can be taken: a folder in an encoding that is not supported opens,
 * to be looked at, and this says what it has. */
ak_status ak_provider_check_weights(const struct ak_provider *p, struct ak_error *error);

/* Finds the tensor that plays `role` in `layer` (AK_ROLE_NO_LAYER where it has none).
 * Formats of AK_PROVIDER_NAMING_HF know no roles: they look for `hf`, the architecture's
 * own name with "{n}" for the layer; NULL finds nothing there.
 * False where the file has no such tensor: optional weights are normal. */
bool ak_provider_find(const struct ak_provider *p, enum ak_role role, int layer, const char *hf,
                      struct ak_view *out);

size_t ak_provider_n_tensors(const struct ak_provider *p);
bool ak_provider_tensor(const struct ak_provider *p, size_t i, struct ak_tensor *out);
size_t ak_provider_n_metas(const struct ak_provider *p);
bool ak_provider_meta(const struct ak_provider *p, size_t i, struct ak_meta *out);
/* False where there is no such key. */
bool ak_provider_find_meta(const struct ak_provider *p, const char *key, struct ak_meta *out);
/* Element i of an array value; strings as AK_META_STRING. False past the end. */
bool ak_provider_element(const struct ak_provider *p, const struct ak_meta *array, uint64_t i,
                         struct ak_meta *out);
/* The arrays live as long as the provider. A file without a vocabulary is no
 * error: model.n is 0. */
ak_status ak_provider_vocab(const struct ak_provider *p, struct ak_vocab *out,
                            struct ak_error *error);
/* A file that lies beside the weights, by its name in the model's folder:
 * "tokenizer.json", "tokenizer_config.json", "generation_config.json". The bytes
 * live as long as the provider and are as the file has them. False where there is
 * none, and always where a format is one file. */
bool ak_provider_file(const struct ak_provider *p, const char *name, struct ak_text *out);
/* The same, parsed; NULL where there is none. The caller frees it (json_decref). The
 * message begins with the name. */
struct json_t;
ak_status ak_provider_json(const struct ak_provider *p, const char *name, struct json_t **out,
                           struct ak_error *error);
/* Bytes of all parts of the file. */
uint64_t ak_provider_bytes(const struct ak_provider *p);
/* The i-th of the files that were opened, those beside the weights too; NULL past the
 * last one. */
const struct ak_file *ak_provider_part(const struct ak_provider *p, size_t i);
/* The path lives as long as the provider. */
void ak_provider_fingerprint(const struct ak_provider *p, struct ak_provider_fingerprint *out);
/* What will become of the tensor data at [data, data + bytes): ak_file_advise. */
void ak_provider_advise(const struct ak_provider *p, const void *data, uint64_t bytes,
                        enum ak_file_advice use);

/* Typed access with a default. A key that is absent gives `fallback`; one
 * of another type, or out of range, is an error that names the key, the type
 * found and the type expected. Integers of any width and sign are accepted where
 * the value fits; floats accept integers. */
ak_status ak_meta_u32(const struct ak_provider *p, const char *key, uint32_t fallback,
                      uint32_t *out, struct ak_error *error);
ak_status ak_meta_float(const struct ak_provider *p, const char *key, float fallback, float *out,
                        struct ak_error *error);
ak_status ak_meta_bool(const struct ak_provider *p, const char *key, bool fallback, bool *out,
                       struct ak_error *error);
/* Whether it is this string. */
bool ak_meta_equals(const struct ak_meta *meta, const char *text);
/* *out is { NULL, 0 } where absent. */
ak_status ak_meta_text(const struct ak_provider *p, const char *key, struct ak_text *out,
                       struct ak_error *error);

/* Streaming: calls `fn` for every tensor in file order with its rows
 * dequantized a few at a time: `first` and `n` count elements, whole rows unless
 * one row is larger than a piece of about 1 MiB, which is all that is allocated.
 * Stops at the first status that is not AKUNU_OK and returns it. */
typedef ak_status ak_tensor_stream_fn(const struct ak_tensor *tensor, uint64_t first, uint64_t n,
                                      const float *values, void *user);
ak_status ak_provider_stream(const struct ak_provider *p, ak_tensor_stream_fn *fn, void *user,
                             struct ak_error *error);
/* The same for one tensor. */
/* Elements [first, first + n), whole blocks, of a tensor as floats; its type as people
 * call it. */
void ak_tensor_dequantize(const struct ak_tensor *tensor, uint64_t first, uint64_t n, float *out);
const char *ak_tensor_type_name(const struct ak_tensor *tensor);
ak_status ak_tensor_stream(const struct ak_tensor *tensor, ak_tensor_stream_fn *fn, void *user,
                           struct ak_error *error);

/* names.c: GGUF's name of a role, the other way round. NULL, false: none. */
const char *ak_gguf_name(enum ak_role role);
bool ak_gguf_role(const char *name, enum ak_role *role, int *layer);

/* What Hugging Face checkpoints may have before a tensor's name, after the class
 * that was saved; ends in NULL. The stem is the name without it. */
extern const char *const ak_hf_roots[];
const char *ak_hf_stem(const char *name);

#endif
