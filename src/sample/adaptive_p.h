/* Adaptive-p: tokens whose probability is near a target, which moves so that the chosen
 * ones' mean stays at the one that was asked for
 * (https://github.com/ggml-org/llama.cpp/pull/17927). */
#ifndef AK_SAMPLE_ADAPTIVE_P_H
#define AK_SAMPLE_ADAPTIVE_P_H

#include "akunu/akunu.h"
#include "sample/candidates.h"

struct ak_sample_adaptive_p {
    double target; /* below 0: it draws from the distribution as it is */
    double decay;
    /* of the probabilities chosen before, each `decay` times the one after it */
    double sum, weight;
    int32_t pending; /* the token chosen last, until it is accepted; -1: none */
    double pending_p;
};

void ak_sample_adaptive_p_init(struct ak_sample_adaptive_p *a,
                               const struct akunu_sampling *sampling);

/* Chooses by `unit` in [0, 1) after the temperature; gives the place. `by_token` is scratch
 * for the vocabulary. */
uint32_t ak_sample_with_adaptive_p(struct ak_sample_adaptive_p *a, struct ak_sample_candidates *c,
                                   float temperature, double unit, float *by_token);

/* Learns from the chosen token where it is the one that goes on. */
void ak_sample_adaptive_p_accept(struct ak_sample_adaptive_p *a, int32_t token);

#endif
