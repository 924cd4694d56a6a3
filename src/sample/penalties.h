/* Penalties on tokens that are in the context already. */
#ifndef AK_SAMPLE_PENALTIES_H
#define AK_SAMPLE_PENALTIES_H

#include "base/error.h"
#include "sample/history.h"

struct ak_sample_penalties {
    float repeat, presence, frequency;
    uint32_t window;      /* of the last tokens; 0: the whole context */
    uint32_t *counts;     /* in the window, by token */
    uint32_t *seen_index; /* in `seen`, by token, where its count is not 0 */
    int32_t *seen;        /* the tokens in the window, each once */
    uint32_t n_seen;
};

/* True where the parameters ask for penalties. */
bool ak_sample_penalties_enabled(const struct akunu_sampling *sampling);

ak_status ak_sample_penalties_init(struct ak_sample_penalties *p,
                                   const struct akunu_sampling *sampling, uint32_t n_vocab,
                                   struct ak_error *error);
void ak_sample_penalties_release(struct ak_sample_penalties *p); /* zeroed is allowed */

/* Tells of a token of the vocabulary before it is pushed to the history, whose size is
 * the window or more. */
void ak_sample_penalties_accept(struct ak_sample_penalties *p,
                                const struct ak_sample_history *history, int32_t token);

/* Changes the logits of the tokens in the window, as llama.cpp does: one that is above 0
 * is divided by `repeat`, another one multiplied with it; `frequency` for each time that
 * the token is there, and `presence` once, are taken away. */
void ak_sample_penalties_apply(const struct ak_sample_penalties *p, float *logits);

#endif
