/* akunu/sample.h: the part of the public API that handles sampling: its parameters, samplers for
 * programs that run passes themselves, and log-probabilities of tokens. akunu_generation (core.h)
 * takes the same parameters. Included by akunu.h; compiles alone. */
#ifndef AKUNU_SAMPLE_H
#define AKUNU_SAMPLE_H

#include "akunu/core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Sampling ----------------------------------------------------------- */
/* Added to a token's logit: INFINITY forces a token, -INFINITY forbids it. */
struct akunu_logit_bias {
    akunu_token token;
    float bias;
};

/* The default of `samplers`. */
#define AKUNU_SAMPLERS "penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature"

/* First the bias, then the samplers in their order, then sampling. Each sampler works as in
 * llama.cpp, and the defaults are llama.cpp's. akunu/sampling.def lists the numbers with their
 * defaults, ranges and flags. */
struct akunu_sampling {
    size_t size;
    /* 0.8; ≤ 0: the most likely token after bias, penalties and DRY; filters are ignored */
    float temperature;
    int32_t top_k;           /* 40; ≤ 0: off */
    float top_p;             /* 0.95; ≥ 1: off */
    float min_p;             /* 0.05; ≤ 0: off */
    float repeat_penalty;    /* 1.0: off */
    int32_t repeat_last_n;   /* 64 last tokens; 0: off; -1: the whole context */
    float presence_penalty;  /* 0.0 */
    float frequency_penalty; /* 0.0 */
    uint64_t seed;           /* UINT64_MAX: a random seed */
    bool ignore_end;         /* never sample a token that ends the text */

    /* The sampler chain, as names separated by ';' or as letters; at most one of the two is given.
     * "" is an empty chain. Both NULL: AKUNU_SAMPLERS, in letters "edskypmxt". There is also
     * "adaptive_p", "a", which samples the token and so always comes last. A sampler that is not
     * named is off; one named twice runs twice. */
    const char *samplers;
    const char *sampler_seq;

    /* Dynamic temperature: between max(0, temperature − range) and temperature + range, by
     * (entropy / maximum)^exponent. */
    float dynatemp_range;    /* 0.0: off */
    float dynatemp_exponent; /* 1.0 */
    /* 1.0; ≤ 0, ≥ 1: off; keeps the tokens with a surprise nearest to the entropy */
    float typical_p;
    /* -1.0; ≤ 0: off; keeps logits within this many standard deviations of the best */
    float top_n_sigma;
    /* XTC: with probability xtc_probability, drops the tokens of probability xtc_threshold or more,
     * except the least likely of these. */
    float xtc_probability; /* 0.0: off */
    float xtc_threshold;   /* 0.1; above 0.5: off */

    /* DRY: the logit of a token that extends a repetition of n ≥ allowed tokens is reduced by
     * multiplier · base^(n − allowed). No repetition extends over a sequence breaker. */
    float dry_multiplier;       /* 0.0: off */
    float dry_base;             /* 1.75; 1 or more */
    int32_t dry_allowed_length; /* 2 */
    int32_t dry_penalty_last_n; /* 64 last tokens; 0: off; -1: the whole context */
    const char *const
        *dry_sequence_breakers; /* of 1 to 40 bytes, ends with NULL; NULL: "\n", ":", "\"", "*" */

    /* 0: off; 1, 2: Mirostat of that version, which replaces all samplers except temperature */
    int32_t mirostat;
    float mirostat_tau; /* 5.0; target surprise in bits */
    float mirostat_eta; /* 0.1; learning rate */
    /* -1.0; < 0: adaptive_p samples from the unchanged distribution; else the target probability,
     * at most 1 */
    float adaptive_target;
    /* 0.9; 0 … 0.99: it averages over about 1 / (1 − decay) tokens */
    float adaptive_decay;

    /* [n_logit_bias]; entries of the same token add up */
    const struct akunu_logit_bias *logit_bias;
    size_t n_logit_bias;

    /* NULL: any text. Tokens that the grammar forbids are removed before all samplers. Tokens that
     * end the text are allowed where the grammar may end; where it must end, the text ends by
     * itself. akunu_sampler_sample takes each sampled token as the next one of the text. */
    const struct akunu_grammar *grammar;
};
AKUNU_API void akunu_sampling_default(struct akunu_sampling *sampling, size_t size);

/* Checks everything that needs no model; akunu_sampler_new and akunu_session_generate do so too.
 * AKUNU_ERROR_ARGUMENT: the message names the field, its value and the accepted values. */
AKUNU_API enum akunu_status akunu_sampling_check(const struct akunu_sampling *sampling);

struct akunu_sampler;
AKUNU_API struct akunu_sampler *akunu_sampler_new(const struct akunu_model *model,
                                                  const struct akunu_sampling *sampling);
AKUNU_API void akunu_sampler_free(struct akunu_sampler *sampler);
/* A copy in the same state, grammar included: both sample the same from the same logits. NULL if
 * out of memory, or if sampler is NULL. */
AKUNU_API struct akunu_sampler *akunu_sampler_clone(const struct akunu_sampler *sampler);
/* Returns to the state after akunu_sampler_new, with the same seed: for the next text. */
AKUNU_API enum akunu_status akunu_sampler_reset(struct akunu_sampler *sampler);
/* The seed in use, to reproduce a text. */
AKUNU_API uint64_t akunu_sampler_seed(const struct akunu_sampler *sampler);
/* Adds a token of the context, for the penalties. */
AKUNU_API void akunu_sampler_accept(struct akunu_sampler *sampler, akunu_token token);
/* Samples from vocab_size logits, which are not changed. -1 on failure. */
AKUNU_API akunu_token akunu_sampler_sample(struct akunu_sampler *sampler, const float *logits);

/* Natural logarithm of a token's probability: the softmax of the raw logits, before bias, samplers
 * and temperature. The same as OpenAI's `logprobs` and `top_logprobs` and llama.cpp's `n_probs`. */
struct akunu_logprob {
    akunu_token token;
    float logprob;
};
/* Computes *logprob of `token` from vocab_size logits. Fills `top`, which may be NULL if n_top is
 * 0, with the n_top most likely tokens, most likely first. If fewer tokens have a logit that is a
 * number, the rest is token -1 with minus infinity. AKUNU_ERROR_ARGUMENT: the token is outside the
 * vocabulary, or n_top exceeds it. */
AKUNU_API enum akunu_status akunu_logprobs_compute(const float *logits, size_t vocab_size,
                                                   akunu_token token, float *logprob,
                                                   struct akunu_logprob *top, size_t n_top);

#ifdef __cplusplus
}
#endif

#endif
