/* Sampler: samples the next token from logits.
 *
 * logits → allowed tokens → logit bias → the samplers of the chain → sample
 *
 * Each sampler works as llama.cpp defines it: penalties.c, dry.c, truncation.c, distribution.c,
 * mirostat.c, adaptive_p.c; sample.c runs the chain. Every operation is IEEE arithmetic or from
 * base/math.h, so a seed gives the same text on every machine. All memory is allocated at creation.
 *
 * Differences from llama.cpp:
 * - Of equal logits the lower id ranks first; there it depends on the sort.
 * - Sums are doubles, there floats. It shows only if a truncation falls on a rounding error.
 * - A temperature of 0 samples the most likely token after bias, penalties and DRY, whatever the
 *   filters are; there XTC and typical may drop that token.
 * - One generator gives all random numbers; there each sampler has its own, of the same seed.
 * - Probabilities below e^-87 of the most likely token are 0. */
#ifndef AK_ENGINE_SAMPLE_SAMPLER_H
#define AK_ENGINE_SAMPLE_SAMPLER_H

#include "base/error.h"
#include "engine/sample/candidates.h"
#include "text/tokenizer/tokenizer.h"

struct ak_sampler;
struct ak_sample_candidate;

/* `tokenizer` knows the tokens that end a text; NULL: there are none. Values that
 * ak_sample_check_params rejects are AKUNU_ERROR_ARGUMENT. */
ak_status ak_sample_create(const struct akunu_sampling_params *sampling, uint32_t n_vocab,
                           const struct ak_tokenizer *tokenizer, struct ak_sampler **out,
                           struct ak_error *error);
void ak_sample_free(struct ak_sampler *s); /* NULL allowed */
/* A copy in the same state. The caller frees *out. */
ak_status ak_sample_clone(const struct ak_sampler *s, struct ak_sampler **out,
                          struct ak_error *error);
/* Returns to the state after creation, with the same seed. */
void ak_sample_reset(struct ak_sampler *s);

uint64_t ak_sample_seed(const struct ak_sampler *s);

/* Whether a Gumbel step samples from the same distribution: the parameters change nothing but the
 * temperature, or ask for the most likely token. */
bool ak_sample_matches_gumbel(const struct ak_sampler *s);

/* Fails with AKUNU_ERROR_NUMERIC: no allowed token has a usable logit. */
ak_status ak_sample_fail_empty(struct ak_error *error);

/* 64 random bits from the sampler's generator. */
uint64_t ak_sample_random_bits(struct ak_sampler *s);

/* Adds a token of the context; ids outside the vocabulary are ignored. */
void ak_sample_accept(struct ak_sampler *s, int32_t token);

/* Samples a token. Of equal logits the lower id is more likely; NaN counts as minus infinity.
 * AKUNU_ERROR_NUMERIC if no token is left: all are NaN or minus infinity, or forbidden. */
ak_status ak_sample_token(struct ak_sampler *s, const float *logits, int32_t *token,
                          struct ak_error *error);

/* Number of best tokens that ak_sample_token looks at; 0: any number. */
uint32_t ak_sample_n_best(const struct ak_sampler *s);
/* The same before bias and leading samplers edit the logits; 0: any number. */
uint32_t ak_sample_n_best_unedited(const struct ak_sampler *s);

/* The n best tokens after bias, penalties and DRY, best first, or fewer if there are no more. Valid
 * until the sampler's next call. */
const struct ak_sample_candidate *ak_sample_find_best(struct ak_sampler *s, const float *logits,
                                                      uint32_t n, uint32_t *n_found);

/* As ak_sample_token among the tokens t for which bit t % 32 of allowed[t / 32] is set. Samplers
 * count and sum these tokens alone, as if the vocabulary had no others. */
ak_status ak_sample_token_masked(struct ak_sampler *s, const float *logits, const uint32_t *allowed,
                                 int32_t *token, struct ak_error *error);

/* ---- Parameter checks: params.c ----------------------------------------- */
/* Checks of sampling parameters. */

/* Checks everything that needs no model. AKUNU_ERROR_ARGUMENT; the message names the field, its
 * value and the accepted ones. */
ak_status ak_sample_check_params(const struct akunu_sampling_params *sampling,
                                 struct ak_error *error);

/* ---- Log-probabilities: logprobs.c -------------------------------------- */
/* Log-probabilities that a model gives to tokens. */

struct ak_sample_logprobs {
    struct akunu_logprob *top; /* [n_top], most likely first */
    uint32_t n_top;
    struct ak_sample_candidates best; /* scratch */
};

/* For the n_top most likely tokens, at most n_vocab. */
ak_status ak_sample_logprobs_init(struct ak_sample_logprobs *l, uint32_t n_top, uint32_t n_vocab,
                                  struct ak_error *error);
void ak_sample_logprobs_release(struct ak_sample_logprobs *l); /* zeroed is allowed */

/* Fills l->top and returns the log-probability of `token`: minus infinity if its logit is NaN. If
 * no logit is a number, l->top gets token -1. */
float ak_sample_logprobs_compute(struct ak_sample_logprobs *l, const float *logits,
                                 uint32_t n_vocab, int32_t token);

#endif
