/* Adaptive-p: replaces the logits by a curve that peaks at the target probability, then samples.
 * The target corrects for the mean of the tokens sampled before. */
#include "engine/sample/sampler_state.h"

#include <math.h>

/* llama.cpp's constants: a logit of PEAK at the target, a parabola around it, straight lines beyond
 * a distance of about WIDTH. */
#define WIDTH 0.3
#define PEAK 5.0
#define SHARPNESS 10.0

void ak_sample_adaptive_p_init(struct ak_sample_adaptive_p *a,
                               const struct akunu_sampling_params *sampling)
{
    *a = (struct ak_sample_adaptive_p){ .target = (double)sampling->adaptive_target,
                                        .decay = (double)sampling->adaptive_decay,
                                        .pending = -1 };
    a->weight = 1.0 / (1.0 - a->decay);
    a->sum = a->target * a->weight;
}

uint32_t ak_sample_with_adaptive_p(struct ak_sample_adaptive_p *a, struct ak_sample_candidates *c,
                                   float temperature, double unit, float *by_token)
{
    double total = ak_sample_weigh(c, temperature);
    if (a->target < 0.0)
        return ak_sample_invert_cdf(c, total, unit);
    double target = fmin(fmax(2.0 * a->target - a->sum / a->weight, 0.0), 1.0);
    for (uint32_t i = 0; i < c->n; i++) {
        double p = (double)c->weights[i] / total, distance = fabs(p - target) / WIDTH;
        by_token[c->items[i].token] = (float)p;
        c->items[i].logit = (float)(PEAK - SHARPNESS * distance * distance / (1.0 + distance));
    }
    c->sorted = false;
    uint32_t at = ak_sample_invert_cdf(c, ak_sample_weigh(c, 1.0f), unit);
    a->pending = c->items[at].token;
    a->pending_p = (double)by_token[a->pending];
    return at;
}

void ak_sample_adaptive_p_accept(struct ak_sample_adaptive_p *a, int32_t token)
{
    if (a->pending == token) {
        a->sum = a->pending_p + a->decay * a->sum;
        a->weight = 1.0 + a->decay * a->weight;
    }
    a->pending = -1;
}
