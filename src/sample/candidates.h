/* The tokens that may come next, narrowed step by step until one is drawn.
 *
 * Of equal logits the lower id is the better candidate. Probabilities are the softmax of
 * the candidates' logits; they are summed in doubles, in the order in which the
 * candidates lie, so that every machine draws the same tokens. Nothing is allocated.
 * Only collecting may leave no candidate; the other functions want one and leave one. */
#ifndef AK_SAMPLE_CANDIDATES_H
#define AK_SAMPLE_CANDIDATES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/math.h"

struct ak_sample_candidate {
    float logit; /* finite */
    int32_t token;
};

struct ak_sample_candidates {
    struct ak_sample_candidate *items; /* room for the vocabulary */
    float *weights;                    /* the same; scratch, by place in `items` */
    uint32_t n;
    bool sorted; /* best first */
};

static inline bool ak_sample_is_better(struct ak_sample_candidate a, struct ak_sample_candidate b)
{
    return a.logit > b.logit || (a.logit == b.logit && a.token < b.token);
}

/* ---- candidates.c: which there are, and in which order ------------------ */
/* The k best of n_vocab logits, sorted; all of them, in the order of their ids,
 * where k is 0 or the vocabulary has no more. Minus infinity and NaN never are one,
 * infinity counts as the largest float. */
void ak_sample_collect(struct ak_sample_candidates *c, const float *logits, uint32_t n_vocab,
                       uint32_t k);

/* The same among the tokens t whose bit t % 32 of allowed[t / 32] is set; bits past the
 * vocabulary do not count. NULL: all. */
void ak_sample_collect_masked(struct ak_sample_candidates *c, const float *logits,
                              const uint32_t *allowed, uint32_t n_vocab, uint32_t k);

/* Gives the candidates the logits that their tokens have in `by_token`; those that are
 * none go, so there may be no candidate left. */
void ak_sample_refresh(struct ak_sample_candidates *c, const float *by_token);

/* Keeps the k best, sorted; changes nothing where there are no more than k. k > 0. */
void ak_sample_top_k(struct ak_sample_candidates *c, uint32_t k);

/* Best first. */
void ak_sample_sort(struct ak_sample_candidates *c);

float ak_sample_best_logit(const struct ak_sample_candidates *c);

/* The best ones one after another without sorting all: ak_sample_make_heap, then each
 * ak_sample_pop takes the best of those that are left and puts it at the end of the
 * array; `popped` are there already. ak_sample_keep_popped keeps these, best first. */
void ak_sample_make_heap(struct ak_sample_candidates *c);
struct ak_sample_candidate ak_sample_pop(struct ak_sample_candidates *c, uint32_t popped);
void ak_sample_keep_popped(struct ak_sample_candidates *c, uint32_t popped);

/* ---- truncation.c: fewer of them ---------------------------------------- */
/* Keeps the best ones until their probabilities make p or more; at least one. */
void ak_sample_top_p(struct ak_sample_candidates *c, float p);

/* Keeps those whose probability is at least exp(log_p) of the best one's, and the
 * best one. */
void ak_sample_min_p(struct ak_sample_candidates *c, float log_p);

/* Keeps those whose logit is this or more, and the best one. */
void ak_sample_keep_from(struct ak_sample_candidates *c, double logit);

/* Keeps those whose surprise, −ln of the probability, is nearest to the distribution's
 * entropy, until their probabilities make more than p; in this order (Meister et al.,
 * https://arxiv.org/abs/2202.00666). Of equally near ones the lower id comes first.
 * `by_token` is scratch for the vocabulary. */
void ak_sample_typical(struct ak_sample_candidates *c, float p, float *by_token);

/* Keeps those whose logit is within n standard deviations of the best one's (Tang et al.,
 * https://arxiv.org/abs/2411.07641). */
void ak_sample_top_n_sigma(struct ak_sample_candidates *c, float n);

/* Exclude top choices: of those whose probability is the threshold or more only the worst
 * stays. */
void ak_sample_xtc(struct ak_sample_candidates *c, float threshold);

/* ---- temperature.c: other probabilities --------------------------------- */
/* The temperature between temperature − range, at least 0, and temperature + range that
 * belongs to the candidates' entropy, as a part of the largest one that so many could have,
 * raised to `exponent`. 0 or less: only the best candidate is wanted. */
float ak_sample_dynamic_temperature(struct ak_sample_candidates *c, float temperature, float range,
                                    float exponent);

/* Divides the logits by the temperature; of one that is not above 0 the best candidate alone
 * is kept. */
void ak_sample_apply_temperature(struct ak_sample_candidates *c, float temperature);

/* ---- draw.c: one of them ------------------------------------------------ */
/* Fills the weights with exp((logit − best) / temperature); gives their sum, which is 1
 * or more. */
double ak_sample_weigh(struct ak_sample_candidates *c, float temperature);

/* The entropy in nats of weights that were filled with temperature 1; `total` is their sum. */
double ak_sample_entropy(const struct ak_sample_candidates *c, double total);

/* The place of the candidate at `unit`, in [0, 1), of weights whose sum is `total`. */
uint32_t ak_sample_invert_cdf(const struct ak_sample_candidates *c, double total, double unit);

/* The token at `unit` of the distribution exp(logit / temperature); temperature > 0. */
int32_t ak_sample_from_softmax(struct ak_sample_candidates *c, float temperature, double unit);

/* exp of x ≤ 0: ak_expf with products and sums that round apart. A fused one is a
 * call on the baseline of x86-64, and a whole vocabulary is weighed for a token. */
static inline float ak_sample_exp(float x)
{
    float shifted = x * AK_EXP_LOG2E + AK_EXP_ROUND;
    float n = shifted - AK_EXP_ROUND;
    float r = (x - n * AK_EXP_LN2_HIGH) - n * AK_EXP_LN2_LOW;
    float p = AK_EXP_C6 * r + AK_EXP_C5;
    p = p * r + AK_EXP_C4;
    p = p * r + AK_EXP_C3;
    p = p * r + AK_EXP_C2;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    float scale = ak_bits_float((ak_float_bits(shifted) << 23) + 0x3f800000u);
    return x < AK_EXP_LOW ? 0.0f : p * scale;
}

#endif
