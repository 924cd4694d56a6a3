/* Reader of GGUF files, versions 2 and 3, little-endian. Shared by the files of this folder;
 * conversion/convert/gguf_write.c uses the types of metadata.
 *
 *     header   "GGUF", version u32, number of tensors u64, of metadata entries u64
 *     metadata key string, value type u32, value
 *     tensors  name string, number of dimensions u32, dimensions u64 (the
 *              contiguous one first), type u32, offset u64
 *     data     at the next multiple of general.alignment; offsets count from here
 *
 * A string is its length as u64 and the bytes; an array its element type as u32,
 * the number of elements as u64, and the elements.
 * https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
 *
 *     gguf.c     the provider's functions
 *     split.c    opens one file, or the parts of a split one
 *     read.c     reads one part: header, metadata, tensor list
 *     value.c    checks metadata values, once
 *     meta.c     reads metadata values
 *     tensor.c   checks tensor types, shapes and extents
 *     nvfp4.c    composes weights with scales that are other tensors
 *     vocab.c    the vocabulary as arrays
 */
#ifndef AK_FILES_WEIGHTS_GGUF_GGUF_H
#define AK_FILES_WEIGHTS_GGUF_GGUF_H

#include <pthread.h>

#include "base/file.h"
#include "base/name_index.h"
#include "files/weights/provider.h"

enum ak_gguf_kind {
    AK_GGUF_U8 = 0,
    AK_GGUF_I8 = 1,
    AK_GGUF_U16 = 2,
    AK_GGUF_I16 = 3,
    AK_GGUF_U32 = 4,
    AK_GGUF_I32 = 5,
    AK_GGUF_F32 = 6,
    AK_GGUF_BOOL = 7,
    AK_GGUF_STRING = 8,
    AK_GGUF_ARRAY = 9,
    AK_GGUF_U64 = 10,
    AK_GGUF_I64 = 11,
    AK_GGUF_F64 = 12,
    AK_GGUF_KINDS
};

enum { AK_GGUF_ARRAY_HEADER = 4 + 8 };

struct ak_gguf_kind_info {
    const char *name;
    enum ak_meta_kind meta;
    uint8_t bytes; /* of a value; strings and arrays: the minimum */
};
extern const struct ak_gguf_kind_info ak_gguf_kinds[AK_GGUF_KINDS];

/* Copies of names, each with a NUL, one after another. Entries keep offsets, because the block
 * moves when it grows. */
struct ak_gguf_names {
    char *bytes;
    size_t n, capacity;
};

/* Positions of every AK_GGUF_STRIDE-th string of arrays, for access by index. */
enum { AK_GGUF_STRIDE = 64 };
struct ak_gguf_string_index {
    const uint8_t **strings;
    size_t n, capacity;
};

/* A checked value: reading it cannot leave the map. */
struct ak_gguf_entry {
    size_t key; /* in names */
    uint32_t kind;
    const uint8_t *value;
    size_t first_string; /* array of strings: where its positions begin in string_index */
};

struct ak_gguf_metadata {
    struct ak_gguf_names names;
    struct ak_gguf_entry *entries;
    size_t n, capacity;
    struct ak_gguf_string_index string_index;
    struct ak_name_index index;
};

struct ak_gguf_tensor {
    size_t name; /* in names */
    uint32_t part;
    enum ak_quant_type type;
    unsigned n_dims;
    uint32_t dims[AK_TENSOR_DIMS_MAX]; /* in the file's order: the contiguous one first */
    uint64_t offset, bytes;            /* offset: from the start of the part */
    bool has_role;
    enum ak_role role;
    int layer;
    struct ak_composed_tensor *composed_tensor; /* with a scale beside it; NULL: blocks of `type` */
};

struct ak_gguf_part {
    struct ak_file file;
    uint64_t data; /* offset of the tensor data */
    size_t first_tensor, n_tensors;
};

struct ak_gguf_vocab;

struct ak_gguf {
    struct ak_provider provider;
    struct ak_gguf_part *parts;
    uint32_t n_parts;
    struct ak_gguf_metadata metadata; /* of the first part */
    struct ak_gguf_names names;       /* of the tensors */
    struct ak_gguf_tensor *tensors;
    size_t n_tensors, tensors_capacity;
    struct ak_name_index index;
    struct ak_gguf_vocab *vocab; /* filled on first use */
};

/* Grows *array to at least n elements of `size` bytes, by doubling. Callers reserve as they read,
 * so that a false count in a file cannot allocate more memory than its data justify. */
ak_status ak_gguf_reserve(void **array, size_t *capacity, size_t n, size_t size,
                          struct ak_error *error);

/* Reads header, metadata and tensor list of g->parts[part], which is open, and appends its tensors.
 * After a failure too, the caller owns the metadata. */
ak_status ak_gguf_read_part(struct ak_gguf *g, uint32_t part, struct ak_gguf_metadata *metadata,
                            struct ak_error *error);
void ak_gguf_metadata_free(struct ak_gguf_metadata *metadata);

/* Entry i as a provider's metadata value. */
void ak_gguf_meta(const struct ak_gguf_metadata *metadata, size_t i, struct ak_meta *out);
bool ak_gguf_find_meta(const struct ak_gguf_metadata *metadata, const char *key,
                       struct ak_meta *out);
bool ak_gguf_element(const struct ak_gguf_metadata *metadata, const struct ak_meta *array,
                     uint64_t i, struct ak_meta *out);

/* All elements of an array of strings, in one pass. False: one is over 4 GiB. */
bool ak_gguf_texts(const struct ak_meta *array, struct ak_text *out);

/* Skips a value of `kind`, and checks everything that later reads rely on. */
ak_status ak_gguf_check_value(struct ak_cursor *c, uint32_t kind, const char *key,
                              struct ak_gguf_string_index *string_index, struct ak_error *error);

/* A tensor's entry in the file, unchecked. */
struct ak_gguf_raw_tensor {
    const char *name; /* escaped for messages */
    uint32_t n_dims;
    uint64_t dims[AK_TENSOR_DIMS_MAX];
    uint32_t type;
    uint64_t offset; /* from the start of the tensor data */
};

/* Checks type, shape and offset; sets type, n_dims, dims, bytes and offset of `out`. */
ak_status ak_gguf_check_tensor(const struct ak_gguf_raw_tensor *raw, uint64_t alignment,
                               struct ak_gguf_tensor *out, struct ak_error *error);

/* Makes the offsets of a part's tensors relative to its start. Fails if tensors overlap or leave
 * the file. */
ak_status ak_gguf_place_tensors(struct ak_gguf *g, const struct ak_gguf_part *part,
                                struct ak_error *error);

const void *ak_gguf_data(const struct ak_gguf *g, const struct ak_gguf_tensor *t);

/* Sets the composed tensors, once all tensors are indexed. */
ak_status ak_gguf_compose_nvfp4(struct ak_gguf *g, struct ak_error *error);

/* Opens the file at `path` and, if it is the first part of a split file, the other parts beside it.
 * path NULL: the file of descriptor `fd`; a split one is AKUNU_ERROR_UNSUPPORTED. After a failure
 * too, g owns what was opened. */
ak_status ak_gguf_open_parts(struct ak_gguf *g, const char *path, int fd, struct ak_error *error);

/* The first call of ak_gguf_vocab_get fills `vocab`, under a lock. */
ak_status ak_gguf_vocab_create(struct ak_gguf_vocab **out, struct ak_error *error);
ak_status ak_gguf_vocab_get(struct ak_gguf_vocab *vocab, const struct ak_provider *p,
                            struct ak_vocab *out, struct ak_error *error);
void ak_gguf_vocab_free(struct ak_gguf_vocab *vocab); /* NULL allowed */

#endif
