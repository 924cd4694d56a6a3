#include "sample/mirostat.h"

#include "base/math.h"

#define LN2 0x1.62e42fefa39efp-1

/* How many tokens Zipf's exponent is estimated from. */
enum { ESTIMATED = 100 };

/* The number of tokens that leave a surprise of about mu, from the exponent s of a law of
 * Zipf: (ε 2^mu / (1 − N^−ε))^(1/s), ε = s − 1. */
static uint32_t tokens_for(const struct ak_mirostat *m, double s, uint32_t most)
{
    if (!(s > 0.0))
        return most;
    double epsilon = s - 1.0, log_n = ak_ln((double)m->n_vocab);
    double rest = 1.0 - ak_exp(-epsilon * log_n);
    double ratio = fabs(epsilon) > 1e-9 ? epsilon / rest : 1.0 / log_n;
    double k = ak_exp((ak_ln(ratio) + m->mu * LN2) / s);
    return k < 1.0 ? 1 : k < (double)most ? (uint32_t)k : most;
}

/* The exponent by least squares over the best tokens, which are popped one by one, as are
 * those after them that the estimate asks for. */
static void keep_by_zipf(const struct ak_mirostat *m, struct ak_candidates *c)
{
    uint32_t n = c->n < ESTIMATED ? c->n : ESTIMATED, popped = 1;
    double products = 0.0, squares = 0.0;
    if (c->n == 1)
        return;
    ak_candidates_heap(c);
    float before = ak_candidates_pop(c, 0).logit;
    for (; popped < n; popped++) {
        float logit = ak_candidates_pop(c, popped).logit;
        double t = ak_ln((double)(popped + 1) / (double)popped);
        products += t * ((double)before - (double)logit);
        squares += t * t;
        before = logit;
    }
    uint32_t k = tokens_for(m, products / squares, c->n);
    c->sorted = false;
    if (k == c->n)
        return;
    for (; popped < k; popped++)
        ak_candidates_pop(c, popped);
    ak_candidates_keep_popped(c, popped);
    ak_candidates_top_k(c, k);
}

static void keep_by_surprise(const struct ak_mirostat *m, struct ak_candidates *c)
{
    double log_total = ak_ln(ak_candidates_weigh(c, 1.0f));
    ak_candidates_keep_from(c, (double)ak_candidates_best_logit(c) + log_total - m->mu * LN2);
}

uint32_t ak_mirostat_choose(struct ak_mirostat *m, struct ak_candidates *c, double unit)
{
    if (m->version == 1)
        keep_by_zipf(m, c);
    else
        keep_by_surprise(m, c);
    double total = ak_candidates_weigh(c, 1.0f);
    uint32_t at = ak_candidates_at(c, total, unit);
    double log_p = (double)c->items[at].logit - (double)ak_candidates_best_logit(c) - ak_ln(total);
    m->mu -= m->eta * (-log_p / LN2 - m->tau);
    return at;
}
