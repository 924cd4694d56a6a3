/* Logarithms of the probabilities that a model gives to tokens. */
#ifndef AK_SAMPLE_LOGPROBS_H
#define AK_SAMPLE_LOGPROBS_H

#include "base/error.h"
#include "sample/candidates.h"

/* Room for the likeliest ones. */
struct ak_sample_logprobs {
    struct akunu_logprob *top; /* likeliest first */
    uint32_t n_top;
    struct ak_sample_candidates best; /* scratch */
};

/* For the n_top likeliest tokens of a vocabulary, or all where it has no more. */
ak_status ak_sample_logprobs_init(struct ak_sample_logprobs *l, uint32_t n_top, uint32_t n_vocab,
                                  struct ak_error *error);
void ak_sample_logprobs_release(struct ak_sample_logprobs *l); /* zeroed is allowed */

/* Fills l->top and gives that of `token`. Of logits that are no numbers it is minus
 * infinity; where no logit is a number l->top gets no token (-1). */
float ak_sample_logprobs_compute(struct ak_sample_logprobs *l, const float *logits,
                                 uint32_t n_vocab, int32_t token);

#endif
