/* Importance of a matrix's columns: the mean square of what each is multiplied by, over a text.
 * Files are those of llama.cpp's llama-imatrix: GGUF, with `NAME.in_sum2` and `NAME.counts` per
 * tensor, or its older binary form. Used by convert/types.c and convert/rows.c. */
#ifndef AK_CONVERT_IMPORTANCE_H
#define AK_CONVERT_IMPORTANCE_H

#include "base/error.h"
#include "base/name_index.h"

/* Of one tensor: [n_matrices][cols], matrices being the experts. */
struct ak_importance_entry {
    char *name; /* of the tensor in the new file */
    float *values;
    uint64_t n; /* values */
};

struct ak_importance {
    struct ak_importance_entry *entries;
    size_t n, capacity;
    struct ak_name_index index;
};

/* Reads a file. Free the result in any case; zeros are an empty one. */
ak_status ak_importance_read(const char *path, struct ak_importance *out, struct ak_error *error);
void ak_importance_free(struct ak_importance *importance);

/* NULL: there is none. */
const struct ak_importance_entry *ak_importance_find(const struct ak_importance *importance,
                                                     const char *name);

#endif
