/* akunu/sample.h: how the next token is sampled: parameters, samplers for programs that run passes
 * themselves, and log-probabilities. akunu_generation_params (core.h) takes the same parameters.
 * Included by akunu.h; compiles alone. */
#ifndef AKUNU_SAMPLE_H
#define AKUNU_SAMPLE_H

#include "akunu/core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Sampling ----------------------------------------------------------- */
/* Is added to a token's logit: INFINITY forces a token, -INFINITY forbids it. */
struct akunu_logit_bias {
    akunu_token token;
    float bias;
};

/* The least number of a range that is above 0. */
#define AKUNU_ABOVE_ZERO 0x1p-20

/* The default of `samplers`. */
#define AKUNU_SAMPLERS "penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature"

/* The bias is applied first, then the samplers in their order; then a token is sampled. Each
 * sampler works as in llama.cpp and has llama.cpp's defaults. akunu/sampling.def lists the numbers
 * with their defaults, ranges and flags. */
struct akunu_sampling_params {
    size_t size;
    /* ≤ 0: the most likely token after bias, penalties and DRY, without the other samplers (0.8) */
    float temperature;
    int32_t top_k;         /* keeps this many tokens; ≤ 0: off (40) */
    float top_p;           /* keeps the most likely tokens up to this sum; ≥ 1: off (0.95) */
    float min_p;           /* drops tokens below this share of the most likely; ≤ 0: off (0.05) */
    float repeat_penalty;  /* 1: off (1) */
    int32_t repeat_last_n; /* tokens that penalties look at; 0: off; -1: the whole context (64) */
    float presence_penalty;  /* 0: off (0) */
    float frequency_penalty; /* 0: off (0) */
    uint64_t seed;           /* UINT64_MAX: a random seed (UINT64_MAX) */
    bool ignore_end;         /* never sample a token that ends the text */

    /* The sampler chain, as names separated by ';' or as letters; at most one of the two is set. ""
     * is an empty chain. Both NULL mean AKUNU_SAMPLERS, or "edskypmxt". Besides these there is
     * "adaptive_p", or "a", which samples the token and therefore always comes last. A sampler that
     * is not named is off; one that is named twice runs twice. */
    const char *samplers;
    const char *sampler_seq;

    /* Dynamic temperature: between max(0, temperature − range) and temperature + range, by
     * (entropy / maximum)^exponent. */
    float dynatemp_range;    /* 0: off (0) */
    float dynatemp_exponent; /* (1) */
    /* keeps the tokens whose surprise is nearest to the entropy; ≤ 0, ≥ 1: off (1) */
    float typical_p;
    /* keeps logits within this many standard deviations of the largest; ≤ 0: off (-1) */
    float top_n_sigma;
    /* XTC: with probability xtc_probability, drops the tokens of probability xtc_threshold or more,
     * except for the least likely of them. */
    float xtc_probability; /* 0: off (0) */
    float xtc_threshold;   /* above 0.5: off (0.1) */

    /* DRY: the logit of a token that extends a repetition of n ≥ allowed tokens is reduced by
     * multiplier · base^(n − allowed). A repetition does not extend over a sequence breaker. */
    float dry_multiplier;       /* 0: off (0) */
    float dry_base;             /* 1 or more (1.75) */
    int32_t dry_allowed_length; /* tokens (2) */
    int32_t dry_penalty_last_n; /* tokens that DRY looks at; 0: off; -1: the whole context (64) */
    /* of 1 to 40 bytes; NULL: "\n", ":", "\"", "*" */
    const char *const *dry_sequence_breakers;

    /* 0: off; 1, 2: this version of Mirostat, which replaces all samplers except temperature (0) */
    int32_t mirostat;
    float mirostat_tau; /* target surprise in bits (5) */
    float mirostat_eta; /* learning rate (0.1) */
    /* target probability of adaptive_p, at most 1; < 0: the distribution is not changed (-1) */
    float adaptive_target;
    /* adaptive_p averages over about 1 / (1 − decay) tokens; 0 … 0.99 (0.9) */
    float adaptive_decay;

    /* [n_logit_bias]; entries of the same token add up */
    const struct akunu_logit_bias *logit_bias;
    size_t n_logit_bias;

    /* NULL: any text. Tokens that the grammar forbids are removed before all samplers. Tokens that
     * end the text are allowed wherever the grammar may end. Where it must end, the text ends by
     * itself. akunu_sampler_sample takes each token that it returns as the next one of the text. */
    const struct akunu_grammar *grammar;
};
AKUNU_API void akunu_sampling_params_default(struct akunu_sampling_params *sampling, size_t size);

/* Checks everything for which no model is needed; akunu_sampler_new and akunu_session_generate do
 * so too. AKUNU_ERROR_ARGUMENT: the message names the member, its value and the accepted values. */
AKUNU_API enum akunu_status akunu_sampling_check(const struct akunu_sampling_params *sampling);

/* The state of sampling for one text. */
struct akunu_sampler;
AKUNU_API struct akunu_sampler *akunu_sampler_new(const struct akunu_model *model,
                                                  const struct akunu_sampling_params *sampling);
AKUNU_API void akunu_sampler_free(struct akunu_sampler *sampler);
/* Returns a copy in the same state, including the grammar's: both sample the same tokens from the
 * same logits. */
AKUNU_API struct akunu_sampler *akunu_sampler_clone(const struct akunu_sampler *sampler);
/* Returns to the state after akunu_sampler_new, with the same seed, for another text. */
AKUNU_API enum akunu_status akunu_sampler_reset(struct akunu_sampler *sampler);
/* The seed in use, with which the text can be repeated. */
AKUNU_API uint64_t akunu_sampler_seed(const struct akunu_sampler *sampler);
/* Adds a token of the context, which penalties then count. */
AKUNU_API void akunu_sampler_accept(struct akunu_sampler *sampler, akunu_token token);
/* Samples a token from logits [vocab_size], which it does not change. -1 on failure. */
AKUNU_API akunu_token akunu_sampler_sample(struct akunu_sampler *sampler, const float *logits);

/* Natural logarithm of a token's probability: the softmax of the raw logits, before bias, samplers
 * and temperature. These are the values of OpenAI's `logprobs` and `top_logprobs` and of
 * llama.cpp's `n_probs`. */
struct akunu_logprob {
    akunu_token token;
    float logprob;
};
/* Computes *logprob of `token` from logits [vocab_size], and fills top [n_top] with the most likely
 * tokens, the most likely first. top may be NULL if n_top is 0. If fewer tokens have a logit that
 * is a number, the remaining entries are token -1 with minus infinity. AKUNU_ERROR_ARGUMENT: the
 * token is outside the vocabulary, or n_top is larger than it. */
AKUNU_API enum akunu_status akunu_logprobs_compute(const float *logits, size_t vocab_size,
                                                   akunu_token token, float *logprob,
                                                   struct akunu_logprob *top, size_t n_top);

#ifdef __cplusplus
}
#endif

#endif
