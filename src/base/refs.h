/* Reference count of an object with several owners: a model, a tokenizer, a grammar or a thread
 * pool. It lets programs free handles in any order. An all-zero count means one owner. */
#ifndef AK_BASE_REFS_H
#define AK_BASE_REFS_H

#include <stdatomic.h>
#include <stdbool.h>

struct ak_refs {
    _Atomic unsigned n_others; /* owners minus 1, so that zeros mean one owner */
};

static inline void ak_refs_take(struct ak_refs *refs)
{
    atomic_fetch_add_explicit(&refs->n_others, 1, memory_order_relaxed);
}

/* Gives a reference back. True: it was the last one, and the caller frees the object. */
static inline bool ak_refs_drop(struct ak_refs *refs)
{
    return atomic_fetch_sub_explicit(&refs->n_others, 1, memory_order_acq_rel) == 0;
}

#endif
