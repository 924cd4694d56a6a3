/* The last tokens of a context, as far back as the samplers look: a ring. */
#ifndef AK_SAMPLE_HISTORY_H
#define AK_SAMPLE_HISTORY_H

#include <assert.h>
#include <stdint.h>

struct ak_sample_history {
    int32_t *ring; /* of `size` tokens; NULL where that is 0 */
    uint32_t size;
    uint32_t n;    /* filled */
    uint32_t next; /* where the next token goes */
};

static inline void ak_sample_history_push(struct ak_sample_history *h, int32_t token)
{
    if (h->size == 0)
        return;
    h->ring[h->next] = token;
    h->next = h->next + 1 < h->size ? h->next + 1 : 0;
    h->n += h->n < h->size;
}

/* The token that came `back` ones before the last one; back < h->n. */
static inline int32_t ak_sample_history_back(const struct ak_sample_history *h, uint32_t back)
{
    assert(back < h->n);
    return h->ring[back < h->next ? h->next - 1 - back : h->next + h->size - 1 - back];
}

#endif
