/* Mirostat: a cut that moves so that the tokens' surprise stays at a wanted number of
 * bits (Basu et al., https://arxiv.org/abs/2007.14966). */
#ifndef AK_SAMPLE_MIROSTAT_H
#define AK_SAMPLE_MIROSTAT_H

#include "sample/candidates.h"

struct ak_sample_mirostat {
    int version; /* 1: its algorithm of Zipf's exponent and top-k; 2: a cut by surprise */
    double tau, eta;
    double mu; /* begins at 2 tau */
    uint32_t n_vocab;
};

/* Narrows the candidates, chooses one by `unit` in [0, 1), and learns from it. Gives its place. */
uint32_t ak_sample_with_mirostat(struct ak_sample_mirostat *m, struct ak_sample_candidates *c,
                                 double unit);

#endif
