/* Index of names: an array sorted by name, searched by bisection. */
#include "base/name_index.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static int compare_entries(const void *a, const void *b)
{
    const struct ak_name_index_entry *x = a, *y = b;
    return strcmp(x->name, y->name);
}

ak_status ak_name_index_alloc(struct ak_name_index *index, size_t n, struct ak_error *error)
{
    *index = (struct ak_name_index){ 0 };
    if (n > UINT32_MAX)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "%zu names, where at most 2^32 - 1 are supported", n);
    index->entries = ak_alloc(n, sizeof *index->entries);
    if (!index->entries)
        return ak_fail_memory(error, "an index of names", n * sizeof *index->entries);
    index->n = (uint32_t)n;
    return AKUNU_OK;
}

const char *ak_name_index_sort(struct ak_name_index *index)
{
    qsort(index->entries, index->n, sizeof *index->entries, compare_entries);
    for (uint32_t i = 1; i < index->n; i++)
        if (strcmp(index->entries[i - 1].name, index->entries[i].name) == 0)
            return index->entries[i].name;
    return NULL;
}

bool ak_name_index_find(const struct ak_name_index *index, const char *name, uint32_t *position)
{
    struct ak_name_index_entry key = { name, 0 };
    const struct ak_name_index_entry *found =
        bsearch(&key, index->entries, index->n, sizeof *index->entries, compare_entries);
    if (found)
        *position = found->position;
    return found != NULL;
}

void ak_name_index_free(struct ak_name_index *index)
{
    ak_free(index->entries);
    *index = (struct ak_name_index){ 0 };
}
