#include <assert.h>
#include <float.h>

#include "session/candidates.h"
#include "session/weight.h"

double ak_candidates_weigh(struct ak_candidates *c, float temperature)
{
    float best = ak_candidates_best_logit(c);
    double sum = 0.0;
    for (uint32_t i = 0; i < c->n; i++)
        c->weights[i] = ak_weight((c->items[i].logit - best) / temperature);
    for (uint32_t i = 0; i < c->n; i++)
        sum += (double)c->weights[i];
    return sum;
}

void ak_candidates_divide(struct ak_candidates *c, float temperature)
{
    assert(temperature > 0.0f);
    for (uint32_t i = 0; i < c->n; i++) {
        float x = c->items[i].logit / temperature;
        x = x < FLT_MAX ? x : FLT_MAX;
        c->items[i].logit = x > -FLT_MAX ? x : -FLT_MAX;
    }
}

uint32_t ak_candidates_at(const struct ak_candidates *c, double total, double unit)
{
    assert(c->n > 0);
    double target = unit * total;
    uint32_t at = 0;
    for (uint32_t i = 0; i < c->n; i++) {
        if (c->weights[i] <= 0.0f)
            continue;
        at = i; /* the last one with a weight, should rounding pass the end */
        target -= (double)c->weights[i];
        if (target < 0.0)
            break;
    }
    return at;
}

int32_t ak_candidates_draw(struct ak_candidates *c, float temperature, double unit)
{
    assert(c->n > 0 && temperature > 0.0f);
    double total = ak_candidates_weigh(c, temperature);
    return c->items[ak_candidates_at(c, total, unit)].token;
}
