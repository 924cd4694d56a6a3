/* Copies samplers, and returns them to their first state. */
#include <string.h>

#include "base/mem.h"
#include "engine/sample/sampler_state.h"

/* Replaces the array at *at, which another sampler owns, by a copy. False: out of memory; *at is
 * NULL. */
static bool copy_array(void *at, size_t n, size_t size)
{
    void *own = NULL, *array;
    memcpy(&array, at, sizeof array);
    if (array && (own = ak_alloc(n, size)) != NULL)
        memcpy(own, array, n * size);
    memcpy(at, &own, sizeof own);
    return own || !array;
}

/* Tries all, so that no array stays another sampler's. */
static bool copy_arrays(struct ak_sampler *s)
{
    struct ak_sample_dry *d = &s->dry;
    size_t n_vocab = s->n_vocab;
    bool copied = copy_array(&s->bias, s->n_bias, sizeof *s->bias);
    copied &= copy_array(&s->logits, n_vocab, sizeof *s->logits);
    copied &= copy_array(&s->candidates.items, n_vocab, sizeof *s->candidates.items);
    copied &= copy_array(&s->candidates.weights, n_vocab, sizeof *s->candidates.weights);
    copied &= copy_array(&s->history.ring, s->history.size, sizeof *s->history.ring);
    copied &= copy_array(&s->penalties.counts, n_vocab, sizeof *s->penalties.counts);
    copied &= copy_array(&s->penalties.seen_index, n_vocab, sizeof *s->penalties.seen_index);
    copied &= copy_array(&s->penalties.seen, n_vocab, sizeof *s->penalties.seen);
    copied &= copy_array(&d->recent_tokens, d->window, sizeof *d->recent_tokens);
    copied &= copy_array(&d->repeats, d->window, sizeof *d->repeats);
    copied &= copy_array(&d->longest_repeats, n_vocab, sizeof *d->longest_repeats);
    copied &= copy_array(&d->breakers.first_head, n_vocab + 1, sizeof *d->breakers.first_head);
    copied &=
        copy_array(&d->breakers.head_tails, d->breakers.n_heads, sizeof *d->breakers.head_tails);
    copied &= copy_array(&d->breakers.tails, d->breakers.n_tails, sizeof *d->breakers.tails);
    d->breakers.capacity = d->breakers.n_heads;
    return copied;
}

ak_status ak_sample_clone(const struct ak_sampler *s, struct ak_sampler **out,
                          struct ak_error *error)
{
    *out = NULL;
    struct ak_sampler *clone = ak_alloc(1, sizeof *clone);
    if (!clone)
        return ak_fail_memory(error, "the sampler", sizeof *clone);
    *clone = *s;
    if (!copy_arrays(clone)) {
        ak_sample_free(clone);
        return ak_fail_memory(error, "the sampler", 0);
    }
    *out = clone;
    return AKUNU_OK;
}

void ak_sample_reset(struct ak_sampler *s)
{
    ak_random_seed(&s->random, s->params.seed);
    s->history.n = s->history.next = 0;
    for (uint32_t i = 0; i < s->penalties.n_seen; i++)
        s->penalties.counts[s->penalties.seen[i]] = 0;
    s->penalties.n_seen = 0;
    s->mirostat.mu = 2.0 * s->mirostat.tau;
    if (s->uses_adaptive_p)
        ak_sample_adaptive_p_init(&s->adaptive_p, &s->params);
}
