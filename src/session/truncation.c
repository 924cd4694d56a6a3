#include "session/candidates.h"
#include "session/weight.h"

/* Leaves out what cannot be among the best that make `wanted`: candidates so
 * light that all of them together weigh no more than what is not wanted. */
static void drop_light(struct ak_candidates *c, double unwanted)
{
    double limit = unwanted / (double)c->n;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < c->n; i++)
        if ((double)c->weights[i] >= limit)
            c->items[kept++] = c->items[i];
    c->n = kept;
}

void ak_candidates_top_p(struct ak_candidates *c, float p)
{
    if (c->n == 0)
        return;
    float best = ak_candidates_best_logit(c);
    double total = ak_candidates_weigh(c, 1.0f), wanted = p > 0.0f ? (double)p * total : 0.0, sum = 0.0;
    uint32_t kept = 0;
    if (c->sorted) {
        do
            sum += (double)c->weights[kept++];
        while (kept < c->n && sum < wanted);
        c->n = kept;
        return;
    }
    drop_light(c, total - wanted);
    ak_candidates_heap(c);
    do
        sum += (double)ak_weight(ak_candidates_pop(c, kept++).logit - best);
    while (kept < c->n && sum < wanted);
    ak_candidates_keep_popped(c, kept);
}

/* Keeps those with this logit or more, in their order. */
static void keep_from(struct ak_candidates *c, float limit)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < c->n; i++)
        if (c->items[i].logit >= limit)
            c->items[kept++] = c->items[i];
    c->n = kept;
}

void ak_candidates_min_p(struct ak_candidates *c, float log_p)
{
    if (c->n == 0)
        return;
    float best = ak_candidates_best_logit(c);
    keep_from(c, log_p < 0.0f ? best + log_p : best);
}
