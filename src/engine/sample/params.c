/* Checks sampling parameters before a sampler is created, so that messages name the field. */
#include "engine/sample/sampler.h"

#include <math.h>
#include <string.h>

#include "engine/sample/dry_breakers.h"
#include "engine/sample/sampler_state.h"

static ak_status check_numbers(const struct akunu_sampling_params *p, struct ak_error *error)
{
#define AKUNU_SAMPLING(type, member, ...)                                                          \
    if (!isfinite((double)p->member))                                                              \
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, #member " is not a finite number");
#include "akunu/sampling.def"
    return AKUNU_OK;
}

static ak_status check_ranges(const struct akunu_sampling_params *p, struct ak_error *error)
{
    if (p->repeat_penalty <= 0.0f)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "repeat_penalty is %g: it must be above 0 (1 switches it off)",
                       (double)p->repeat_penalty);
    if (p->repeat_last_n < -1)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "repeat_last_n is %d: it must be -1 (all tokens) or more",
                       (int)p->repeat_last_n);
    if (p->dynatemp_range > 0.0f && p->dynatemp_exponent < 0.0f)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "dynatemp_exponent is %g: it must be 0 or more",
                       (double)p->dynatemp_exponent);
    if (p->mirostat < 0 || p->mirostat > 2)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "mirostat is %d: it must be 0 (off), 1 or 2",
                       (int)p->mirostat);
    if (p->adaptive_target > 1.0f)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "adaptive_target is %g: it must be a probability, or below 0 (off)",
                       (double)p->adaptive_target);
    if (p->adaptive_decay < 0.0f || p->adaptive_decay > 0.99f)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "adaptive_decay is %g: it must be in 0 … 0.99",
                       (double)p->adaptive_decay);
    return AKUNU_OK;
}

static ak_status check_dry(const struct akunu_sampling_params *p, struct ak_error *error)
{
    if (p->dry_penalty_last_n < -1)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "dry_penalty_last_n is %d: it must be -1 (all tokens) or more",
                       (int)p->dry_penalty_last_n);
    for (size_t i = 0; p->dry_sequence_breakers && p->dry_sequence_breakers[i]; i++) {
        size_t n = strlen(p->dry_sequence_breakers[i]);
        if (n == 0 || n > AK_SAMPLE_DRY_BREAKER_BYTES_MAX)
            return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                           "sequence breaker %zu of DRY has %zu bytes: it must have 1 to %d", i + 1,
                           n, AK_SAMPLE_DRY_BREAKER_BYTES_MAX);
    }
    if (p->dry_multiplier == 0.0f)
        return AKUNU_OK;
    if (p->dry_base < 1.0f)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "dry_base is %g: it must be 1 or more",
                       (double)p->dry_base);
    if (p->dry_allowed_length < 0)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "dry_allowed_length is %d: it must be 0 or more",
                       (int)p->dry_allowed_length);
    return AKUNU_OK;
}

static ak_status check_bias(const struct akunu_sampling_params *p, struct ak_error *error)
{
    if (p->n_logit_bias > 0 && !p->logit_bias)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "logit_bias is NULL, and n_logit_bias says that it has %zu",
                       p->n_logit_bias);
    for (size_t i = 0; i < p->n_logit_bias; i++)
        if (isnan(p->logit_bias[i].bias))
            return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                           "the logit bias of token %d is not a number",
                           (int)p->logit_bias[i].token);
    return AKUNU_OK;
}

ak_status ak_sample_check_params(const struct akunu_sampling_params *sampling,
                                 struct ak_error *error)
{
    struct ak_sample_chain chain;
    AK_TRY(check_numbers(sampling, error));
    AK_TRY(check_ranges(sampling, error));
    AK_TRY(check_dry(sampling, error));
    AK_TRY(check_bias(sampling, error));
    return ak_sample_parse_chain(sampling, &chain, error);
}
