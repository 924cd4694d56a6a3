#include <float.h>

#include "base/math.h"
#include "sample/candidates.h"

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

/* What is no float any more becomes the largest one. */
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
