/* Growable byte buffer, to build a text of unknown length. */
#ifndef AK_BASE_BUFFER_H
#define AK_BASE_BUFFER_H

#include <string.h>

#include "base/error.h"
#include "base/mem.h"

/* An empty buffer is all zero. */
struct ak_buffer {
    char *bytes;
    size_t n, capacity;
    size_t max;       /* limit of n; 0: none */
    const char *what; /* the content, for messages; NULL: "a text" */
};

/* Reserves n more bytes; beyond `max`: AKUNU_ERROR_UNSUPPORTED. */
static inline ak_status ak_buffer_reserve(struct ak_buffer *b, size_t n, struct ak_error *error)
{
    const char *what = b->what ? b->what : "a text";
    if (b->capacity - b->n >= n)
        return AKUNU_OK;
    if (n > SIZE_MAX / 4 - b->n)
        return ak_fail_memory(error, what, n);
    if (b->max && b->n + n > b->max)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "%s exceeds the limit of %zu bytes", what,
                       b->max);
    size_t capacity = (b->n + n) * 2;
    char *bytes = ak_realloc(b->bytes, capacity, 1);
    if (!bytes)
        return ak_fail_memory(error, what, capacity);
    b->bytes = bytes;
    b->capacity = capacity;
    return AKUNU_OK;
}

static inline ak_status ak_buffer_add(struct ak_buffer *b, const char *bytes, size_t n,
                                      struct ak_error *error)
{
    if (n == 0)
        return AKUNU_OK;
    AK_TRY(ak_buffer_reserve(b, n, error));
    memcpy(b->bytes + b->n, bytes, n);
    b->n += n;
    return AKUNU_OK;
}

static inline void ak_buffer_free(struct ak_buffer *b)
{
    ak_free(b->bytes);
    *b = (struct ak_buffer){ 0 };
}

static inline void ak_buffer_swap(struct ak_buffer *a, struct ak_buffer *b)
{
    struct ak_buffer c = *a;
    *a = *b;
    *b = c;
}

#endif
