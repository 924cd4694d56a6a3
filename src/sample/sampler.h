/* Choosing the next token from logits.
 *
 * logits → allowed tokens → logit bias → the samplers in their order → draw
 *
 * Each sampler works as llama.cpp defines it; they are in penalties.c, dry.c, truncation.c,
 * temperature.c, mirostat.c and adaptive_p.c, the order in choose.c. Every operation is of
 * base/math.h or exact, so a seed gives the same text on every machine. All memory is
 * allocated at creation.
 *
 * Where it differs from llama.cpp: of equal logits the lower id is the likelier one (there
 * it depends on the sort); sums are doubles (there floats), which shows only where a cut
 * falls on a rounding error; a temperature of 0 takes the likeliest token after bias,
 * penalties and DRY whatever the filters are (there XTC and typical may take that one away);
 * one generator gives all random numbers (there each sampler has its own with the same seed);
 * probabilities below e^-87 of the likeliest one's are 0.
 */
#ifndef AK_SAMPLE_SAMPLER_H
#define AK_SAMPLE_SAMPLER_H

#include "base/error.h"
#include "sample/candidates.h"
#include "tokenizer/tokenizer.h"

struct ak_sampler;
struct ak_sample_candidate;

/* `tokenizer` says which tokens end a text; NULL: none. Values that make no sense
 * (NaN, a repeat penalty of 0) are AKUNU_ERROR_ARGUMENT. */
ak_status ak_sample_create(const struct akunu_sampling *sampling, uint32_t n_vocab,
                           const struct ak_tokenizer *tokenizer, struct ak_sampler **out,
                           struct ak_error *error);
void ak_sample_free(struct ak_sampler *s); /* NULL allowed */

uint64_t ak_sample_seed(const struct ak_sampler *s);

/* The parameters leave the distribution as it is but for its temperature, or want its
 * likeliest token: a table that ends in a Gumbel step draws from the same one. */
bool ak_sample_matches_gumbel(const struct ak_sampler *s);

/* AKUNU_ERROR_NUMERIC: no logit is a number. */
ak_status ak_sample_fail_empty(struct ak_error *error);

/* 64 random bits from the sampler's generator. */
uint64_t ak_sample_random_bits(struct ak_sampler *s);

/* Tells of a token in the context; ids outside the vocabulary are ignored. */
void ak_sample_accept(struct ak_sampler *s, int32_t token);

/* Of equal logits the lower id counts as the likelier token; NaN counts as minus
 * infinity. Where no token is left (all NaN or minus infinity, or only tokens
 * that are forbidden) it is AKUNU_ERROR_NUMERIC. */
ak_status ak_sample_token(struct ak_sampler *s, const float *logits, int32_t *token,
                          struct ak_error *error);

/* How many of the best tokens are all that ak_sample_token looks at; 0: any number. */
uint32_t ak_sample_n_best(const struct ak_sampler *s);

/* The n best tokens after bias, penalties and DRY, or fewer where there are no more, the
 * best one first; valid until the sampler's next call. */
const struct ak_sample_candidate *ak_sample_find_best(struct ak_sampler *s, const float *logits,
                                                      uint32_t n, uint32_t *n_found);

/* The same among the tokens t whose bit t % 32 of allowed[t / 32] is set, as though the
 * vocabulary had no others: what a sampler counts or sums up is of these. */
ak_status ak_sample_token_masked(struct ak_sampler *s, const float *logits, const uint32_t *allowed,
                                 int32_t *token, struct ak_error *error);

/* ---- Parameter checks: params.c ----------------------------------------- */
/* Whether parameters of sampling make sense. */

/* All that can be checked without a model. AKUNU_ERROR_ARGUMENT with a message that names
 * the field, what it is and what it may be. */
ak_status ak_sample_check_params(const struct akunu_sampling *sampling, struct ak_error *error);

/* ---- Log-probabilities: logprobs.c -------------------------------------- */
/* Logarithms of the probabilities that a model gives to tokens. */

/* Room for the likeliest ones. */
struct ak_sample_logprobs {
    struct akunu_logprob *top; /* likeliest first */
    uint32_t n_top;
    struct ak_sample_candidates best; /* scratch */
};

/* For the n_top likeliest tokens of a vocabulary, or all where it has no more. */
ak_status ak_sample_logprobs_init(struct ak_sample_logprobs *l, uint32_t n_top, uint32_t n_vocab,
                                  struct ak_error *error);
void ak_sample_logprobs_release(struct ak_sample_logprobs *l); /* zeroed is allowed */

/* Fills l->top and gives that of `token`. Of logits that are no numbers it is minus
 * infinity; where no logit is a number l->top gets no token (-1). */
float ak_sample_logprobs_compute(struct ak_sample_logprobs *l, const float *logits,
                                 uint32_t n_vocab, int32_t token);

#endif
