#include "session/costs.h"

/* A token more in a pass whose weights are read anyway, in passes of one token: what it is
 * before it was measured. */
static const double a_token_more = 0.1;

/* Other programs make passes slower and nothing makes them faster: a shorter time counts
 * five times as much as a longer one, and no time more than twice the one before. */
void ak_costs_learn(struct ak_costs *c, uint32_t n, double seconds)
{
    double before = ak_costs_of(c, n), *own = &c->seconds[n];
    if (before <= 0.0) {
        *own = seconds;
        return;
    }
    double first = *own > 0.0 ? 1.0 : 8.0; /* a guess is worth less than a measurement */
    double bounded = seconds < 2.0 * before ? seconds : 2.0 * before;
    *own = before + (bounded < before ? 0.25 : 0.05 * first) * (bounded - before);
}

/* Between two that were measured a straight line. */
double ak_costs_of(const struct ak_costs *c, uint32_t n)
{
    uint32_t below = n, above = n;
    while (below > 0 && c->seconds[below] <= 0.0)
        below--;
    while (above <= AK_FEW_TOKENS && c->seconds[above] <= 0.0)
        above++;
    if (below == n)
        return c->seconds[n];
    if (below > 0 && above <= AK_FEW_TOKENS)
        return c->seconds[below] + (c->seconds[above] - c->seconds[below]) * (double)(n - below) /
                                       (double)(above - below);
    if (below > 0)
        return c->seconds[below] * (1.0 + a_token_more * (double)n) /
               (1.0 + a_token_more * (double)below);
    return above <= AK_FEW_TOKENS ? c->seconds[above] * (1.0 + a_token_more * (double)n) /
                                        (1.0 + a_token_more * (double)above) :
                                    0.0;
}
