/* What rank 0 tells the others: numbers, arrays and texts, one after another. engine/backends/,
 * engine/session/ and api/ write them, the first two read them. Ranks have the same version, which
 * engine/session/ checks. */
#ifndef AK_ENGINE_DIST_MESSAGE_H
#define AK_ENGINE_DIST_MESSAGE_H

#include <stdbool.h>
#include <string.h>

#include "base/buffer.h"
#include "engine/dist/comm.h"

/* Kinds of messages, the first number of each. */
enum ak_message_kind {
    AK_MESSAGE_LOAD, /* engine/session/follow.c: a model and how to load it */
    AK_MESSAGE_FREE_MODEL,
    AK_MESSAGE_END, /* rank 0 leaves */
    /* of a model, engine/backends/ranks.c; the second number is the model's */
    AK_MESSAGE_ALLOC_KV,
    AK_MESSAGE_FREE_KV,
    AK_MESSAGE_COPY_PAGE,
    AK_MESSAGE_COPY_STATE,
    AK_MESSAGE_PREPARE,
    AK_MESSAGE_RELEASE,
    AK_MESSAGE_RUN
};

/* A message that is written. A failure (out of memory) stays. */
struct ak_message {
    struct ak_buffer bytes;
    ak_status status;
};

static inline void ak_message_put(struct ak_message *m, const void *data, size_t n)
{
    if (m->status == AKUNU_OK)
        m->status = ak_buffer_add(&m->bytes, data, n, NULL);
}

static inline void ak_message_put_u64(struct ak_message *m, uint64_t n)
{
    ak_message_put(m, &n, sizeof n);
}

/* With its NUL; NULL allowed. */
static inline void ak_message_put_text(struct ak_message *m, const char *text)
{
    ak_message_put_u64(m, text ? strlen(text) + 1 : 0);
    ak_message_put(m, text, text ? strlen(text) + 1 : 0);
}

/* A message that is read. Past its end all is zero, and `is_short` is set. */
struct ak_message_reader {
    const uint8_t *next;
    size_t left;
    bool is_short;
};

/* The next n bytes, wherever they lie; NULL: the message is too short. */
static inline const void *ak_message_take(struct ak_message_reader *r, size_t n)
{
    const void *found = r->next;
    if (n > r->left) {
        r->is_short = true;
        return NULL;
    }
    r->next += n;
    r->left -= n;
    return found;
}

static inline void ak_message_copy(struct ak_message_reader *r, void *to, size_t n)
{
    const void *from = ak_message_take(r, n);
    if (from && n > 0)
        memcpy(to, from, n);
    else if (n > 0)
        memset(to, 0, n);
}

static inline uint64_t ak_message_get_u64(struct ak_message_reader *r)
{
    uint64_t n;
    ak_message_copy(r, &n, sizeof n);
    return n;
}

static inline uint32_t ak_message_get_u32(struct ak_message_reader *r)
{
    return (uint32_t)ak_message_get_u64(r);
}

/* Points into the message; NULL: none, or it does not end. */
static inline const char *ak_message_get_text(struct ak_message_reader *r)
{
    uint64_t n = ak_message_get_u64(r);
    const char *text = n > 0 && n <= r->left ? ak_message_take(r, (size_t)n) : NULL;
    return text && text[n - 1] == '\0' ? text : NULL;
}

#endif
