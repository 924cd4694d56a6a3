/* Mirostat 1 and 2: truncation with a threshold mu that follows the surprise of the sampled tokens.
 * Version 1 estimates Zipf's exponent from the best tokens; version 2 needs no estimate. */
#include "engine/sample/sampler_state.h"

#include "base/math.h"

#define LN2 0x1.62e42fefa39efp-1

/* tokens from which Zipf's exponent is estimated */
enum { ZIPF_TOKENS = 100 };

/* Number of tokens for a surprise of about mu, from Zipf's exponent s: (ε 2^mu / (1 − N^−ε))^(1/s),
 * ε = s − 1. */
static uint32_t estimate_top_k(const struct ak_sample_mirostat *m, double s, uint32_t n_max)
{
    if (!(s > 0.0))
        return n_max;
    double epsilon = s - 1.0, log_n = ak_ln((double)m->n_vocab);
    double rest = 1.0 - ak_exp(-epsilon * log_n);
    double ratio = fabs(epsilon) > 1e-9 ? epsilon / rest : 1.0 / log_n;
    double k = ak_exp((ak_ln(ratio) + m->mu * LN2) / s);
    return k < 1.0 ? 1 : k < (double)n_max ? (uint32_t)k : n_max;
}

/* Least-squares fit of the exponent over the best tokens. They are popped one by one, then as many
 * more as the estimate asks for. */
static void keep_by_zipf(const struct ak_sample_mirostat *m, struct ak_sample_candidates *c)
{
    uint32_t n = c->n < ZIPF_TOKENS ? c->n : ZIPF_TOKENS, popped = 1;
    double products = 0.0, squares = 0.0;
    if (c->n == 1)
        return;
    ak_sample_make_heap(c);
    float before = ak_sample_pop(c, 0).logit;
    for (; popped < n; popped++) {
        float logit = ak_sample_pop(c, popped).logit;
        double t = ak_ln((double)(popped + 1) / (double)popped);
        products += t * ((double)before - (double)logit);
        squares += t * t;
        before = logit;
    }
    uint32_t k = estimate_top_k(m, products / squares, c->n);
    c->sorted = false;
    if (k == c->n)
        return;
    for (; popped < k; popped++)
        ak_sample_pop(c, popped);
    ak_sample_keep_popped(c, popped);
    ak_sample_top_k(c, k);
}

static void keep_by_surprise(const struct ak_sample_mirostat *m, struct ak_sample_candidates *c)
{
    double log_total = ak_ln(ak_sample_weigh(c, 1.0f));
    ak_sample_keep_from(c, (double)ak_sample_best_logit(c) + log_total - m->mu * LN2);
}

uint32_t ak_sample_with_mirostat(struct ak_sample_mirostat *m, struct ak_sample_candidates *c,
                                 double unit)
{
    if (m->version == 1)
        keep_by_zipf(m, c);
    else
        keep_by_surprise(m, c);
    double total = ak_sample_weigh(c, 1.0f);
    uint32_t at = ak_sample_invert_cdf(c, total, unit);
    double log_p = (double)c->items[at].logit - (double)ak_sample_best_logit(c) - ak_ln(total);
    m->mu -= m->eta * (-log_p / LN2 - m->tau);
    return at;
}
