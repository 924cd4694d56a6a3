/* The distribution over candidates: softmax weights, entropy, inverse CDF, temperature. Sums are
 * doubles in array order, so results do not depend on the machine. */
#include <assert.h>
#include <float.h>

#include "base/math.h"
#include "engine/sample/candidates.h"

double ak_sample_weigh(struct ak_sample_candidates *c, float temperature)
{
    const struct ak_sample_candidate *restrict items = c->items;
    float *restrict weights = c->weights;
    float best = ak_sample_best_logit(c);
    double sum = 0.0;
    uint32_t n = c->n;
    for (uint32_t i = 0; i < n; i++)
        weights[i] = ak_expf_unfused((items[i].logit - best) / temperature);
    for (uint32_t i = 0; i < n; i++)
        sum += (double)weights[i];
    return sum;
}

/* Σ −p ln p with p = w / total and ln p = (x − best) − ln total. */
double ak_sample_entropy(const struct ak_sample_candidates *c, double total)
{
    double best = (double)ak_sample_best_logit(c), sum = 0.0;
    for (uint32_t i = 0; i < c->n; i++)
        sum += (double)c->weights[i] * (best - (double)c->items[i].logit);
    return ak_ln(total) + sum / total;
}

uint32_t ak_sample_invert_cdf(const struct ak_sample_candidates *c, double total, double unit)
{
    assert(c->n > 0);
    double target = unit * total;
    uint32_t at = 0;
    for (uint32_t i = 0; i < c->n; i++) {
        if (c->weights[i] <= 0.0f)
            continue;
        at = i; /* the last one with a weight, in case rounding passes the end */
        target -= (double)c->weights[i];
        if (target < 0.0)
            break;
    }
    return at;
}

/* ---- Temperature -------------------------------------------------------- */
float ak_sample_dynamic_temperature(struct ak_sample_candidates *c, float temperature, float range,
                                    float exponent)
{
    double lowest = (double)temperature - (double)range,
           highest = (double)temperature + (double)range;
    if (c->n == 1)
        return 1.0f;
    lowest = lowest > 0.0 ? lowest : 0.0;
    double part = ak_sample_entropy(c, ak_sample_weigh(c, 1.0f)) / ak_ln((double)c->n);
    double raised = part > 0.0 ? ak_pow(part, (double)exponent) : exponent > 0.0f ? 0.0 : 1.0;
    double chosen = lowest + (highest - lowest) * raised;
    return chosen < (double)FLT_MAX ? (float)chosen : FLT_MAX;
}

/* Logits beyond the float range become ±FLT_MAX. */
void ak_sample_apply_temperature(struct ak_sample_candidates *c, float temperature)
{
    if (temperature <= 0.0f) {
        ak_sample_top_k(c, 1);
        return;
    }
    for (uint32_t i = 0; i < c->n && temperature != 1.0f; i++) {
        float x = c->items[i].logit / temperature;
        x = x < FLT_MAX ? x : FLT_MAX;
        c->items[i].logit = x > -FLT_MAX ? x : -FLT_MAX;
    }
}
