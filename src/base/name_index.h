/* Names in order, to find one and to see that none is there twice. Sorted, and
 * not hashed: no choice of names makes it slow. */
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

/* Makes room for n names, which the caller puts into `entries` before it sorts.
 * They stay the caller's. */
ak_status ak_name_index_alloc(struct ak_name_index *index, size_t n, struct ak_error *error);

/* Sorts; gives a name that is there twice, or NULL. */
const char *ak_name_index_sort(struct ak_name_index *index);

bool ak_name_index_find(const struct ak_name_index *index, const char *name, uint32_t *position);
void ak_name_index_free(struct ak_name_index *index); /* accepts an all-zero struct */

#endif
