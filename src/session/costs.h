/* What passes of few tokens take in a session, learned from those that it makes. For
 * choosing how much to guess: never what the text is. */
#ifndef AK_SESSION_COSTS_H
#define AK_SESSION_COSTS_H

#include <stdint.h>

enum { AK_FEW_TOKENS = 16 }; /* the most tokens of such a pass */

struct ak_costs {
    double seconds[AK_FEW_TOKENS + 1]; /* of a pass of so many tokens; 0: none was made */
};

/* A pass of n tokens, 1 … AK_FEW_TOKENS, took `seconds`. */
void ak_costs_learn(struct ak_costs *c, uint32_t n, double seconds);

/* Seconds that a pass of n tokens is thought to take; 0 before the first one. */
double ak_costs_of(const struct ak_costs *c, uint32_t n);

#endif
