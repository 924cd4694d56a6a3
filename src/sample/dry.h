/* DRY, "don't repeat yourself": a token that would lengthen a repetition of the context's
 * end loses the more, the longer that is
 * (https://github.com/oobabooga/text-generation-webui/pull/5677). */
#ifndef AK_SAMPLE_DRY_H
#define AK_SAMPLE_DRY_H

#include "sample/dry_breakers.h"

struct ak_sample_dry {
    float multiplier;
    double base;
    uint32_t allowed_length, window; /* tokens */
    int32_t longest_exponent;        /* of `base` within the floats; 0: any is */
    struct ak_sample_dry_breakers breakers;

    /* scratch */
    int32_t *recent_tokens; /* the window's tokens, the newest first */
    uint32_t *repeats; /* by place in it: how many tokens from there on are the newest ones again */
    /* by token: 1 more than the longest repetition that it would go on with; 0: none */
    uint32_t *longest_repeats;
};

/* True where the parameters ask for it. */
bool ak_sample_dry_enabled(const struct akunu_sampling *sampling);

ak_status ak_sample_dry_init(struct ak_sample_dry *d, const struct akunu_sampling *sampling,
                             const struct ak_tokenizer *tokenizer, uint32_t n_vocab,
                             struct ak_error *error);
void ak_sample_dry_release(struct ak_sample_dry *d); /* zeroed is allowed */

/* Changes the logits of tokens that would go on with a repetition. The history has the
 * window's size or more. */
void ak_sample_dry_apply(struct ak_sample_dry *d, const struct ak_sample_history *history,
                         float *logits);

#endif
