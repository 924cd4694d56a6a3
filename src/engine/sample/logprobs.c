/* Log-probabilities from raw logits, before any sampler: the logit minus ln Σ e^x. */
#include "engine/sample/sampler.h"

#include <float.h>

#include "base/mem.h"
#include "engine/sample/candidates.h"

ak_status ak_sample_logprobs_init(struct ak_sample_logprobs *l, uint32_t n_top, uint32_t n_vocab,
                                  struct ak_error *error)
{
    *l = (struct ak_sample_logprobs){ .n_top = n_top < n_vocab ? n_top : n_vocab };
    uint32_t capacity = l->n_top > 0 ? l->n_top : 1;
    l->top = ak_alloc(capacity, sizeof *l->top);
    l->best.items = ak_alloc(capacity, sizeof *l->best.items);
    return l->top && l->best.items ? AKUNU_OK : ak_fail_memory(error, "the log-probabilities", 0);
}

void ak_sample_logprobs_release(struct ak_sample_logprobs *l)
{
    ak_free(l->top);
    ak_free(l->best.items);
}

/* Clamps a logit to finite floats as candidates are; NaN counts as -FLT_MAX. */
static float clamp_logit(float logit)
{
    float x = logit > -FLT_MAX ? logit : -FLT_MAX; /* NaN too */
    return x < FLT_MAX ? x : FLT_MAX;
}

float ak_sample_logprobs_compute(struct ak_sample_logprobs *l, const float *logits,
                                 uint32_t n_vocab, int32_t token)
{
    struct ak_sample_candidates *best = &l->best;
    double rest = INFINITY; /* subtracted from a logit: the log of the partition sum */
    ak_sample_collect(best, logits, n_vocab, l->n_top > 0 ? l->n_top : 1);
    if (best->n > 0) {
        ak_sample_sort(best);
        rest = (double)best->items[0].logit + ak_log_sum_exp(logits, n_vocab, best->items[0].logit);
    }
    for (uint32_t i = 0; i < l->n_top; i++)
        l->top[i] =
            i < best->n ?
                (struct akunu_logprob){ .token = best->items[i].token,
                                        .logprob = (float)((double)best->items[i].logit - rest) } :
                (struct akunu_logprob){ .token = -1, .logprob = -INFINITY };
    return logits[token] > -INFINITY ? (float)((double)clamp_logit(logits[token]) - rest) :
                                       -INFINITY;
}
