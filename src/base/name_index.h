/* Sorted index from name to position: lookup by bisection, and duplicate detection. Unlike a hash
 * table, no choice of names makes it slow. The file formats of files/weights/ find tensors and
 * metadata with it, conversion/convert/ importance; engine/pack/bind.c finds unused tensors. */
#ifndef AK_BASE_NAME_INDEX_H
#define AK_BASE_NAME_INDEX_H

#include "base/error.h"

struct ak_name_index_entry {
    const char *name;
    uint32_t position;
};

struct ak_name_index {
    struct ak_name_index_entry *entries;
    uint32_t n;
};

/* Allocates n entries for the caller to fill before ak_name_index_sort. Names stay the caller's. */
ak_status ak_name_index_alloc(struct ak_name_index *index, size_t n, struct ak_error *error);

/* Sorts the entries. Returns a duplicate name, or NULL. */
const char *ak_name_index_sort(struct ak_name_index *index);

bool ak_name_index_find(const struct ak_name_index *index, const char *name, uint32_t *position);
void ak_name_index_free(struct ak_name_index *index); /* accepts an all-zero struct */

#endif
