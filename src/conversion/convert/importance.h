/* Importance matrices: how large the inputs are that each column of a matrix is multiplied with,
 * over a text. Files are those of llama.cpp's llama-imatrix: GGUF, with `NAME.in_sum2` and
 * `NAME.counts` per tensor, or its older binary form, which is only read.
 * conversion/convert/types.c and conversion/convert/rows.c quantize by them,
 * conversion/convert/collect.c and api/importance.c make them, and conversion/compress/ reads them.
 */
#ifndef AK_CONVERSION_CONVERT_IMPORTANCE_H
#define AK_CONVERSION_CONVERT_IMPORTANCE_H

#include "base/error.h"
#include "base/name_index.h"

/* Of one tensor; matrices are the experts. */
struct ak_importance_entry {
    char *name;    /* of the tensor in the new file */
    float *values; /* [n], [n_matrices][cols]: sums of squares; means after ak_importance_average */
    float *counts; /* [n_matrices]: rows of activations that were added */
    uint64_t n, n_matrices;
};

struct ak_importance {
    struct ak_importance_entry *entries;
    size_t n, capacity;
    struct ak_name_index index;
    char **datasets; /* names of the texts */
    size_t n_datasets, datasets_capacity;
    /* read from the older form: an entry has one count, of calls, and values are sums of the calls'
     * means */
    bool has_calls;
};

/* Reads a file. Free the result in any case; zeros are an empty one. */
ak_status ak_importance_read(const char *path, struct ak_importance *out, struct ak_error *error);
void ak_importance_free(struct ak_importance *importance);

/* Divides sums by counts. A matrix without rows gets ones: all columns count alike. */
ak_status ak_importance_average(struct ak_importance *importance, struct ak_error *error);

/* NULL: there is none. */
const struct ak_importance_entry *ak_importance_find(const struct ak_importance *importance,
                                                     const char *name);

/* ---- Making one --------------------------------------------------------- */
/* Adds an entry of zeros. Entries must be indexed before they are found. */
ak_status ak_importance_add_entry(struct ak_importance *im, const char *name, uint64_t n,
                                  uint64_t n_matrices, struct ak_error *error);
/* AKUNU_ERROR_FORMAT: two entries have the same name. */
ak_status ak_importance_index(struct ak_importance *im, struct ak_error *error);
/* Adds a name of a text, unless it is there. */
ak_status ak_importance_add_dataset(struct ak_importance *im, const char *name,
                                    struct ak_error *error);

/* Adds the sums of `from` to `to`, or its entries where `to` has none; changes nothing if they do
 * not fit. `chunk_size`: rows of a call in the older form. */
ak_status ak_importance_merge(struct ak_importance *to, const struct ak_importance *from,
                              uint32_t chunk_size, struct ak_error *error);

/* The largest count: tokens of all texts. */
uint64_t ak_importance_tokens(const struct ak_importance *im);

/* ---- Writing: importance_write.c ---------------------------------------- */
/* Writes the GGUF form, entries sorted by name. The file appears complete or not at all. */
ak_status ak_importance_write(const struct ak_importance *im, uint32_t chunk_size, const char *path,
                              struct ak_error *error);
/* Whether such a file could be written now; leaves nothing behind. AKUNU_ERROR_ARGUMENT: there is
 * one, and it may not be replaced. */
ak_status ak_importance_check_path(const char *path, bool overwrite, struct ak_error *error);

#endif
