/* Samplers behind handles, for programs that run passes themselves: sample, accept, clone, reset,
 * log-probabilities. */
#include <string.h>

#include "api/handles.h"
#include "base/buffer.h"
#include "base/mem.h"
#include "engine/sample/sampler.h"
#include "engine/session/constraint.h"

struct akunu_sampler {
    struct ak_sampler *inner;
    struct ak_session_constraint constraint;
    struct ak_grammar *grammar; /* the constraint's, which keeps it alive; NULL: none */
    struct ak_buffer
        tokens; /* int32 each, with a grammar: those sampled, from which clones catch up */
};

void akunu_sampling_params_default(struct akunu_sampling_params *sampling, size_t size)
{
#define AKUNU_SAMPLING(type, member, initial, ...) .member = initial,
    static const struct akunu_sampling_params full = {
#include "akunu/sampling.def"
        .seed = UINT64_MAX,
    };
    ak_api_give_default(sampling, size, &full, sizeof full);
}

static ak_status read_sampling(const struct akunu_sampling_params *given,
                               struct akunu_sampling_params *sampling, struct ak_error *error)
{
    akunu_sampling_params_default(sampling, sizeof *sampling);
    return ak_api_copy_in(sampling, sizeof *sampling, given, "akunu_sampling_params", error);
}

enum akunu_status akunu_sampling_check(const struct akunu_sampling_params *given)
{
    struct akunu_sampling_params sampling;
    struct ak_error error = { 0 };
    if (read_sampling(given, &sampling, &error) == AKUNU_OK)
        ak_sample_check_params(&sampling, &error);
    return ak_api_finish(&error);
}

static ak_status create_sampler(const struct akunu_model *model,
                                const struct akunu_sampling_params *given,
                                struct akunu_sampler *sampler, struct ak_error *error)
{
    struct akunu_sampling_params sampling;
    if (!model)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "the model is NULL");
    AK_TRY(read_sampling(given, &sampling, error));
    if (sampling.grammar)
        AK_TRY(ak_session_constraint_begin(model->inner, sampling.grammar->inner,
                                           &sampler->constraint, error));
    sampler->grammar = sampling.grammar ? sampling.grammar->inner : NULL;
    return ak_sample_create(&sampling, model->inner->spec.config.vocab_size,
                            model->inner->tokenizer, &sampler->inner, error);
}

struct akunu_sampler *akunu_sampler_new(const struct akunu_model *model,
                                        const struct akunu_sampling_params *sampling)
{
    struct ak_error error = { 0 };
    struct akunu_sampler *sampler = ak_alloc(1, sizeof *sampler);
    if (!sampler)
        ak_fail_memory(&error, "a sampler", sizeof *sampler);
    else
        create_sampler(model, sampling, sampler, &error);
    if (error.status == AKUNU_OK)
        return sampler;
    ak_api_finish(&error);
    akunu_sampler_free(sampler);
    return NULL;
}

void akunu_sampler_free(struct akunu_sampler *sampler)
{
    if (!sampler)
        return;
    ak_session_constraint_end(&sampler->constraint);
    ak_buffer_free(&sampler->tokens);
    ak_sample_free(sampler->inner);
    ak_free(sampler);
}

/* Adds a token to the text that the grammar has seen. */
static ak_status accept_text(struct akunu_sampler *sampler, int32_t token, struct ak_error *error)
{
    bool allowed;
    if (!sampler->grammar)
        return AKUNU_OK;
    AK_TRY(ak_buffer_add(&sampler->tokens, (const char *)&token, sizeof token, error));
    return ak_grammar_matcher_accept_token(sampler->constraint.matcher, token, &allowed, error);
}

static ak_status copy_sampler(const struct akunu_sampler *sampler, struct akunu_sampler *out,
                              struct ak_error *error)
{
    AK_TRY(ak_sample_clone(sampler->inner, &out->inner, error));
    out->grammar = sampler->grammar;
    if (out->grammar)
        AK_TRY(ak_session_constraint_begin(sampler->constraint.model, out->grammar,
                                           &out->constraint, error));
    for (size_t at = 0; at < sampler->tokens.n; at += sizeof(int32_t)) {
        int32_t token;
        memcpy(&token, sampler->tokens.bytes + at, sizeof token);
        AK_TRY(accept_text(out, token, error));
    }
    return AKUNU_OK;
}

struct akunu_sampler *akunu_sampler_clone(const struct akunu_sampler *sampler)
{
    struct ak_error error = { 0 };
    struct akunu_sampler *out = ak_alloc(1, sizeof *out);
    if (!out)
        ak_fail_memory(&error, "a sampler", sizeof *out);
    else if (!sampler)
        ak_fail(&error, AKUNU_ERROR_ARGUMENT, "the sampler is NULL");
    else
        copy_sampler(sampler, out, &error);
    if (error.status == AKUNU_OK)
        return out;
    ak_api_finish(&error);
    akunu_sampler_free(out);
    return NULL;
}

enum akunu_status akunu_sampler_reset(struct akunu_sampler *sampler)
{
    struct ak_error error = { 0 };
    if (!sampler) {
        ak_fail(&error, AKUNU_ERROR_ARGUMENT, "the sampler is NULL");
        return ak_api_finish(&error);
    }
    ak_sample_reset(sampler->inner);
    sampler->tokens.n = 0;
    if (sampler->grammar)
        ak_grammar_matcher_reset(sampler->constraint.matcher, &error);
    return ak_api_finish(&error);
}

uint64_t akunu_sampler_seed(const struct akunu_sampler *sampler)
{
    return sampler ? ak_sample_seed(sampler->inner) : 0;
}

void akunu_sampler_accept(struct akunu_sampler *sampler, akunu_token token)
{
    if (sampler)
        ak_sample_accept(sampler->inner, token);
}

static ak_status sample(struct akunu_sampler *sampler, const float *logits, int32_t *token,
                        struct ak_error *error)
{
    AK_TRY(
        ak_session_constraint_sample(&sampler->constraint, sampler->inner, logits, token, error));
    return accept_text(sampler, *token, error);
}

akunu_token akunu_sampler_sample(struct akunu_sampler *sampler, const float *logits)
{
    struct ak_error error;
    int32_t token = -1;
    error.status = AKUNU_OK;
    if (!sampler || !logits)
        ak_fail(&error, AKUNU_ERROR_ARGUMENT, "the sampler or the logits are NULL");
    else
        sample(sampler, logits, &token, &error);
    if (error.status == AKUNU_OK)
        return token;
    ak_api_finish(&error);
    return -1;
}

static ak_status compute_logprobs(const float *logits, size_t vocab_size, akunu_token token,
                                  float *logprob, struct akunu_logprob *top, size_t n_top,
                                  struct ak_error *error)
{
    struct ak_sample_logprobs l = { 0 };
    if (!logits || !logprob || (!top && n_top > 0))
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "the logits, or where log-probabilities go, are NULL");
    if (vocab_size > INT32_MAX || token < 0 || (size_t)token >= vocab_size || n_top > vocab_size)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "token %d and the %zu most likely ones: the vocabulary has %zu", (int)token,
                       n_top, vocab_size);
    ak_status status = ak_sample_logprobs_init(&l, (uint32_t)n_top, (uint32_t)vocab_size, error);
    if (status == AKUNU_OK) {
        *logprob = ak_sample_logprobs_compute(&l, logits, (uint32_t)vocab_size, token);
        if (n_top > 0)
            memcpy(top, l.top, n_top * sizeof *top);
    }
    ak_sample_logprobs_release(&l);
    return status;
}

enum akunu_status akunu_logprobs_compute(const float *logits, size_t vocab_size, akunu_token token,
                                         float *logprob, struct akunu_logprob *top, size_t n_top)
{
    struct ak_error error = { 0 };
    compute_logprobs(logits, vocab_size, token, logprob, top, n_top, &error);
    return ak_api_finish(&error);
}
