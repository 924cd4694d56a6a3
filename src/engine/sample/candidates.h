/* Candidates for the next token: tokens with their logits, which samplers filter until one is
 * sampled.
 *
 * Of equal logits the lower id is the better candidate. Probabilities are the softmax of the
 * candidates' logits. They are summed in doubles, in a fixed order, so every machine samples the
 * same tokens. Nothing is allocated. Only the collecting functions and ak_sample_refresh may leave
 * no candidate; the other functions need at least one and leave at least one. */
#ifndef AK_ENGINE_SAMPLE_CANDIDATES_H
#define AK_ENGINE_SAMPLE_CANDIDATES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/math.h"

struct ak_sample_candidate {
    float logit; /* finite */
    int32_t token;
};

struct ak_sample_candidates {
    struct ak_sample_candidate *items; /* capacity: the vocabulary */
    float *weights;                    /* scratch, same capacity and index as `items` */
    uint32_t n;
    bool sorted; /* best first */
};

static inline bool ak_sample_is_better(struct ak_sample_candidate a, struct ak_sample_candidate b)
{
    return a.logit > b.logit || (a.logit == b.logit && a.token < b.token);
}

/* ---- candidates.c: collecting and sorting */
/* Collects the k best of n_vocab logits, sorted. If k is 0 or at least n_vocab, collects all,
 * ordered by id. NaN and minus infinity are never candidates; infinity counts as FLT_MAX. */
void ak_sample_collect(struct ak_sample_candidates *c, const float *logits, uint32_t n_vocab,
                       uint32_t k);

/* The same among the tokens t for which bit t % 32 of allowed[t / 32] is set. Bits past the
 * vocabulary are ignored. NULL: all tokens. */
void ak_sample_collect_masked(struct ak_sample_candidates *c, const float *logits,
                              const uint32_t *allowed, uint32_t n_vocab, uint32_t k);

/* Sets each candidate's logit to by_token[token]. Candidates of NaN or minus infinity are dropped,
 * so none may be left. */
void ak_sample_refresh(struct ak_sample_candidates *c, const float *by_token);

/* Keeps the k best, sorted. Does nothing if there are at most k. k > 0. */
void ak_sample_top_k(struct ak_sample_candidates *c, uint32_t k);

/* Sorts the candidates, best first. */
void ak_sample_sort(struct ak_sample_candidates *c);

float ak_sample_best_logit(const struct ak_sample_candidates *c);

/* Partial sort with a heap. After ak_sample_make_heap each ak_sample_pop moves the best remaining
 * candidate to the end of the array and returns it; `popped` counts those already moved.
 * ak_sample_keep_popped keeps the popped ones alone, best first. */
void ak_sample_make_heap(struct ak_sample_candidates *c);
struct ak_sample_candidate ak_sample_pop(struct ak_sample_candidates *c, uint32_t popped);
void ak_sample_keep_popped(struct ak_sample_candidates *c, uint32_t popped);

/* ---- truncation.c: filters */
/* Keeps the best candidates until their probabilities sum to p or more; at least one. */
void ak_sample_top_p(struct ak_sample_candidates *c, float p);

/* Keeps the candidates with at least exp(log_p) times the probability of the best one. The best one
 * always stays. */
void ak_sample_min_p(struct ak_sample_candidates *c, float log_p);

/* Keeps the candidates with a logit of at least `logit`. The best one always stays. */
void ak_sample_keep_from(struct ak_sample_candidates *c, double logit);

/* Locally typical sampling (Meister et al., https://arxiv.org/abs/2202.00666). Sorts the candidates
 * by the distance of their surprise, −ln of the probability, from the entropy, nearest first. Keeps
 * them until their probabilities sum to more than p. At equal distances the lower id comes first.
 * `by_token` is scratch for the vocabulary. */
void ak_sample_typical(struct ak_sample_candidates *c, float p, float *by_token);

/* Keeps the candidates with a logit within n standard deviations of the best one (Tang et al.,
 * https://arxiv.org/abs/2411.07641). */
void ak_sample_top_n_sigma(struct ak_sample_candidates *c, float n);

/* Exclude top choices (XTC): of the candidates with a probability of at least `threshold` only the
 * worst stays. */
void ak_sample_xtc(struct ak_sample_candidates *c, float threshold);

/* ---- distribution.c: temperature */
/* Dynamic temperature: between max(0, temperature − range) and temperature + range, in proportion
 * to the candidates' entropy divided by its maximum ln(n), raised to `exponent`. 1 for one
 * candidate. A result of 0 or less means: sample the best one. */
float ak_sample_dynamic_temperature(struct ak_sample_candidates *c, float temperature, float range,
                                    float exponent);

/* Divides the logits by the temperature. If it is not above 0, keeps the best candidate alone. */
void ak_sample_apply_temperature(struct ak_sample_candidates *c, float temperature);

/* ---- distribution.c: sampling */
/* Sets the weights to exp((logit − best) / temperature). Returns their sum, which is at least 1. */
double ak_sample_weigh(struct ak_sample_candidates *c, float temperature);

/* Entropy in nats. The weights were filled with temperature 1; `total` is their sum. */
double ak_sample_entropy(const struct ak_sample_candidates *c, double total);

/* Index of the candidate at `unit`, in [0, 1), of the cumulative weights (inverse CDF). `total` is
 * the sum of the weights. */
uint32_t ak_sample_invert_cdf(const struct ak_sample_candidates *c, double total, double unit);

#endif
