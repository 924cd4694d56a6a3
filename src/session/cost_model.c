#include "session/cost_model.h"

/* A token more in a pass whose weights are read anyway, in passes of one token: what it is
 * before it was measured. */
static const double token_increment = 0.1;

/* Other programs make passes slower and nothing makes them faster: a shorter time counts
 * five times as much as a longer one, and no time more than twice the one before. */
void ak_session_cost_update(struct ak_session_cost_model *c, uint32_t n, double seconds)
{
    double before = ak_session_cost_estimate(c, n), *own = &c->seconds[n];
    if (before <= 0.0) {
        *own = seconds;
        return;
    }
    double first = *own > 0.0 ? 1.0 : 8.0; /* a guess is worth less than a measurement */
    double bounded = seconds < 2.0 * before ? seconds : 2.0 * before;
    *own = before + (bounded < before ? 0.25 : 0.05 * first) * (bounded - before);
}

/* Between two that were measured a straight line. */
double ak_session_cost_estimate(const struct ak_session_cost_model *c, uint32_t n)
{
    uint32_t below = n, above = n;
    while (below > 0 && c->seconds[below] <= 0.0)
        below--;
    while (above <= AK_SESSION_SKINNY_MAX && c->seconds[above] <= 0.0)
        above++;
    if (below == n)
        return c->seconds[n];
    if (below > 0 && above <= AK_SESSION_SKINNY_MAX)
        return c->seconds[below] + (c->seconds[above] - c->seconds[below]) * (double)(n - below) /
                                       (double)(above - below);
    if (below > 0)
        return c->seconds[below] * (1.0 + token_increment * (double)n) /
               (1.0 + token_increment * (double)below);
    return above <= AK_SESSION_SKINNY_MAX ?
               c->seconds[above] * (1.0 + token_increment * (double)n) /
                   (1.0 + token_increment * (double)above) :
               0.0;
}
