/* Memory that is freed all at once. */
#ifndef AK_TEMPLATE_JINJA_ARENA_H
#define AK_TEMPLATE_JINJA_ARENA_H

#include <stdbool.h>
#include <stddef.h>

struct ak_jarena_block;
struct ak_jarena {
    struct ak_jarena_block *blocks; /* the newest first */
    char *next, *end;               /* what is free of it */
    size_t bytes, max_bytes;        /* taken of the system, and the limit */
};

/* Zeroed, at a multiple of 16; NULL where the limit is reached or there is no memory. */
void *ak_j_arena_alloc(struct ak_jarena *arena, size_t bytes);

/* Makes the newest allocation longer where it lies; false where that is not possible. The
 * new part is zeroed. */
bool ak_j_arena_extend(struct ak_jarena *arena, const void *p, size_t old_bytes, size_t bytes);

void ak_j_arena_free(struct ak_jarena *arena);

#endif
