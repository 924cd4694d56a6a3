/* The tokens that may come next, narrowed step by step until one is drawn.
 *
 * Of equal logits the lower id is the better candidate. Nothing is allocated. */
#ifndef AK_SESSION_CANDIDATES_H
#define AK_SESSION_CANDIDATES_H

#include <stdbool.h>
#include <stdint.h>

struct ak_candidate {
    float logit; /* finite */
    int32_t token;
};

struct ak_candidates {
    struct ak_candidate *items; /* room for the vocabulary */
    float *weights;             /* the same; scratch */
    uint32_t n;
    bool sorted;                /* best first */
};

/* The k best of n_vocab logits, sorted; all of them, in the order of their ids,
 * where k is 0 or the vocabulary has no more. Minus infinity is never one. */
void ak_candidates_collect(struct ak_candidates *c, const float *logits, uint32_t n_vocab, uint32_t k);

/* Keeps the best ones until their probabilities make p or more; at least one. */
void ak_candidates_top_p(struct ak_candidates *c, float p);

/* Keeps those whose probability is at least exp(log_p) of the best one's, and the
 * best one. */
void ak_candidates_min_p(struct ak_candidates *c, float log_p);

/* The token at `unit` (in [0, 1)) of the distribution exp(logit / temperature);
 * c->n > 0 and temperature > 0. */
int32_t ak_candidates_draw(struct ak_candidates *c, float temperature, double unit);

#endif
