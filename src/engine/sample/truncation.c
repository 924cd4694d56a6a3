/* Filters that drop candidates: top-p, min-p, top-n-sigma, XTC, locally typical. They follow
 * llama.cpp's definitions; sampler.h lists the differences. */
#include <math.h>

#include "base/math.h"
#include "engine/sample/candidates.h"

/* Drops candidates that top-p cannot keep: those so light that all of them together weigh no more
 * than `unwanted`, the weight outside the wanted part. */
static void drop_light(struct ak_sample_candidates *c, double unwanted)
{
    double limit = unwanted / (double)c->n;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < c->n; i++)
        if ((double)c->weights[i] >= limit)
            c->items[kept++] = c->items[i];
    c->n = kept;
}

void ak_sample_top_p(struct ak_sample_candidates *c, float p)
{
    if (c->n == 0)
        return;
    float best = ak_sample_best_logit(c);
    double total = ak_sample_weigh(c, 1.0f), wanted = p > 0.0f ? (double)p * total : 0.0, sum = 0.0;
    uint32_t kept = 0;
    if (c->sorted) {
        do
            sum += (double)c->weights[kept++];
        while (kept < c->n && sum < wanted);
        c->n = kept;
        return;
    }
    drop_light(c, total - wanted);
    ak_sample_make_heap(c);
    do
        sum += (double)ak_expf_unfused(ak_sample_pop(c, kept++).logit - best);
    while (kept < c->n && sum < wanted);
    ak_sample_keep_popped(c, kept);
}

void ak_sample_keep_from(struct ak_sample_candidates *c, double logit)
{
    double best = (double)ak_sample_best_logit(c), limit = logit < best ? logit : best;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < c->n; i++)
        if ((double)c->items[i].logit >= limit)
            c->items[kept++] = c->items[i];
    c->n = kept;
}

void ak_sample_min_p(struct ak_sample_candidates *c, float log_p)
{
    if (c->n > 0)
        ak_sample_keep_from(c, (double)(ak_sample_best_logit(c) + log_p));
}

void ak_sample_top_n_sigma(struct ak_sample_candidates *c, float n)
{
    double sum = 0.0, squares = 0.0;
    for (uint32_t i = 0; i < c->n; i++)
        sum += (double)c->items[i].logit;
    double mean = sum / (double)c->n;
    for (uint32_t i = 0; i < c->n; i++) {
        double d = (double)c->items[i].logit - mean;
        squares += d * d;
    }
    ak_sample_keep_from(c,
                        (double)ak_sample_best_logit(c) - (double)n * sqrt(squares / (double)c->n));
}

void ak_sample_xtc(struct ak_sample_candidates *c, float threshold)
{
    double limit = (double)threshold * ak_sample_weigh(c, 1.0f);
    uint32_t above = 0, kept = 0;
    struct ak_sample_candidate worst = c->items[0];
    for (uint32_t i = 0; i < c->n; i++)
        if ((double)c->weights[i] >= limit &&
            (above++ == 0 || ak_sample_is_better(worst, c->items[i])))
            worst = c->items[i];
    if (above == 0)
        return;
    for (uint32_t i = 0; i < c->n; i++)
        if (!ak_sample_is_better(c->items[i], worst))
            c->items[kept++] = c->items[i];
    c->n = kept;
}

/* While the candidates are popped, `logit` holds minus the distance from the entropy. */
void ak_sample_typical(struct ak_sample_candidates *c, float p, float *by_token)
{
    double best = (double)ak_sample_best_logit(c), total = ak_sample_weigh(c, 1.0f), sum = 0.0;
    double entropy = ak_sample_entropy(c, total), log_total = ak_ln(total);
    for (uint32_t i = 0; i < c->n; i++) {
        struct ak_sample_candidate *item = &c->items[i];
        double surprise = log_total - ((double)item->logit - best);
        by_token[item->token] = item->logit;
        item->logit = -(float)fabs(surprise - entropy);
    }
    uint32_t kept = 0;
    ak_sample_make_heap(c);
    do
        sum += (double)ak_expf_unfused(by_token[ak_sample_pop(c, kept++).token] - (float)best);
    while (kept < c->n && sum <= (double)p * total);
    ak_sample_keep_popped(c, kept);
    for (uint32_t i = 0; i < c->n; i++)
        c->items[i].logit = by_token[c->items[i].token];
    c->sorted = false;
}
