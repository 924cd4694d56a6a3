/* What passes of few tokens take in a session, learned from those that it makes. For
 * choosing how much to guess: never what the text is. */
#ifndef AK_SESSION_COST_MODEL_H
#define AK_SESSION_COST_MODEL_H

#include <stdint.h>

enum { AK_SESSION_SKINNY_MAX = 16 }; /* the most tokens of such a pass */

struct ak_session_cost_model {
    double seconds[AK_SESSION_SKINNY_MAX + 1]; /* of a pass of so many tokens; 0: none was made */
};

/* A pass of n tokens, 1 … AK_SESSION_SKINNY_MAX, took `seconds`. */
void ak_session_cost_update(struct ak_session_cost_model *c, uint32_t n, double seconds);

/* Seconds that a pass of n tokens is thought to take; 0 before the first one. */
double ak_session_cost_estimate(const struct ak_session_cost_model *c, uint32_t n);

#endif
