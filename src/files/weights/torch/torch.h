/* Readers of the two layers of a PyTorch checkpoint, which nothing here executes: the ZIP archive
 * that torch.save() writes, and the pickle in it that describes the tensors.
 *
 *     zip.c      the archive: stored entries, found through the central directory
 *     pickle.c   the pickle: data of a few kinds, and the tensors that they describe
 *
 * https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT
 * https://docs.python.org/3/library/pickletools.html */
#ifndef AK_FILES_WEIGHTS_TORCH_TORCH_H
#define AK_FILES_WEIGHTS_TORCH_TORCH_H

#include "base/error.h"
#include "base/name_index.h"
#include "files/quant/type.h"

/* ---- zip.c -------------------------------------------------------------- */
struct ak_zip_entry {
    char *name;
    uint64_t header;        /* offset of the local header */
    uint64_t offset, bytes; /* of the data, in the file */
};

struct ak_zip {
    struct ak_zip_entry *entries; /* by offset; no two share bytes */
    size_t n, capacity;
    struct ak_name_index index;
};

/* Reads the directory of an archive of n bytes, ZIP64 included. AKUNU_ERROR_UNSUPPORTED: an entry
 * is compressed or encrypted, or the archive has several parts. The caller passes *out to
 * ak_zip_free, after a failure too. */
ak_status ak_zip_read(const uint8_t *data, uint64_t n, struct ak_zip *out, struct ak_error *error);
void ak_zip_free(struct ak_zip *zip);
/* NULL: no such entry. */
const struct ak_zip_entry *ak_zip_find(const struct ak_zip *zip, const char *name);

/* ---- pickle.c ----------------------------------------------------------- */
enum ak_pickle_kind {
    AK_PICKLE_NONE,
    AK_PICKLE_BOOL,
    AK_PICKLE_INT,
    AK_PICKLE_STRING,
    AK_PICKLE_TUPLE,
    AK_PICKLE_DICT,
    AK_PICKLE_GLOBAL,
    AK_PICKLE_STORAGE,
    AK_PICKLE_TENSOR,
    AK_PICKLE_OBJECT, /* of a class that is not loaded: its attributes */
    AK_PICKLE_OTHER   /* anything else, which is never looked into */
};

enum { AK_PICKLE_DIMS_MAX = 4 };
#define AK_PICKLE_NO_STATE UINT32_MAX

/* A value; never freed alone. Values refer to others by their index. */
struct ak_pickle_value {
    enum ak_pickle_kind kind;
    uint64_t at; /* offset of the opcode that made it, for messages */
    union {
        int64_t integer; /* of a bool, 0 or 1; of a global, private */
        struct {
            const char *bytes; /* in the pickle, without a NUL */
            uint32_t n;
        } string;
        struct {
            uint32_t first, n; /* in the list of children */
        } tuple;
        struct {
            enum ak_quant_type type;
            uint32_t key; /* a string: the entry data/KEY of the archive */
            uint64_t n;   /* elements */
        } storage;
        struct {
            uint32_t storage, n_dims; /* n_dims 0: one element */
            uint64_t first;           /* element of the storage */
            uint64_t shape[AK_PICKLE_DIMS_MAX];
            bool is_transposed; /* 2 dimensions, column after column; else row after row */
        } tensor;               /* inside its storage, without gaps */
        uint32_t state;         /* of an object; AK_PICKLE_NO_STATE: none */
        const char *what;       /* of AK_PICKLE_OTHER, for messages: "a tensor with gaps" */
    } as;
};

/* An item of a dict: indices of values. */
struct ak_pickle_item {
    uint32_t dict, key, value;
};

struct ak_pickle {
    struct ak_pickle_value *values;
    struct ak_pickle_item *items; /* of all dicts, in the order of the pickle */
    uint32_t *children;           /* of all tuples */
    size_t n_values, n_items, n_children;
    size_t values_capacity, items_capacity, children_capacity;
    uint32_t root;
};

/* Reads a pickle of n bytes, which `out` points into. What trainers put beside the weights
 * (optimizers, settings, objects of any class) becomes values that are never looked into; no class
 * is loaded and no function called. A damaged pickle is refused by offset. Memory is at most
 * proportional to n. The caller passes *out to ak_pickle_free, after a failure too. */
ak_status ak_pickle_read(const uint8_t *data, uint64_t n, struct ak_pickle *out,
                         struct ak_error *error);
void ak_pickle_free(struct ak_pickle *p);

/* The value of a string key, the last one of equal keys; NULL: none, or `dict` is no dict. */
const struct ak_pickle_value *ak_pickle_get(const struct ak_pickle *p, uint32_t dict,
                                            const char *key);

#endif
