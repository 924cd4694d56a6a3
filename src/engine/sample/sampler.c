/* Creates and frees samplers: seeds the generator, decides which samplers of the chain are active,
 * merges the logit bias, and allocates all memory. */
#include <math.h>
#include <string.h>
#include <sys/random.h>

#include "base/math.h"
#include "base/mem.h"
#include "engine/sample/sampler.h"
#include "engine/sample/sampler_state.h"

static ak_status init_random(struct ak_sampler *s, struct ak_error *error)
{
    uint64_t *value = &s->params.seed;
    if (*value == UINT64_MAX && getrandom(value, sizeof *value, 0) != (ssize_t)sizeof *value)
        return ak_fail(error, AKUNU_ERROR_SYSTEM, "the system gave no random seed");
    ak_random_seed(&s->random, *value);
    return AKUNU_OK;
}

/* Whether the parameters give the sampler something to do. */
static bool is_active(const struct ak_sampler *s, enum ak_sample_kind kind)
{
    const struct akunu_sampling_params *p = &s->params;
    switch (kind) {
    case AK_SAMPLE_PENALTIES: return ak_sample_penalties_enabled(p);
    case AK_SAMPLE_DRY: return ak_sample_dry_enabled(p);
    case AK_SAMPLE_TOP_N_SIGMA: return p->top_n_sigma > 0.0f;
    case AK_SAMPLE_TOP_K: return p->top_k > 0 && (uint32_t)p->top_k < s->n_vocab;
    case AK_SAMPLE_TYPICAL: return p->typical_p > 0.0f && p->typical_p < 1.0f;
    case AK_SAMPLE_TOP_P: return p->top_p < 1.0f;
    case AK_SAMPLE_MIN_P: return p->min_p > 0.0f;
    case AK_SAMPLE_XTC: return p->xtc_probability > 0.0f && p->xtc_threshold <= 0.5f;
    case AK_SAMPLE_TEMPERATURE: return p->temperature != 1.0f || p->dynatemp_range > 0.0f;
    case AK_SAMPLE_ADAPTIVE_P: return false; /* it samples, after all others */
    }
    return false;
}

/* Mirostat replaces all samplers except the temperature, which is then never dynamic. */
static ak_status read_chain(struct ak_sampler *s, struct ak_sample_chain *out,
                            struct ak_error *error)
{
    if (s->params.mirostat == 0)
        return ak_sample_parse_chain(&s->params, out, error);
    *out = (struct ak_sample_chain){ .kinds = { AK_SAMPLE_TEMPERATURE }, .n = 1 };
    s->params.dynatemp_range = 0.0f;
    s->mirostat = (struct ak_sample_mirostat){ .version = s->params.mirostat,
                                               .tau = (double)s->params.mirostat_tau,
                                               .eta = (double)s->params.mirostat_eta,
                                               .mu = 2.0 * (double)s->params.mirostat_tau,
                                               .n_vocab = s->n_vocab };
    return AKUNU_OK;
}

static ak_status init_chain(struct ak_sampler *s, struct ak_error *error)
{
    const struct akunu_sampling_params *p = &s->params;
    struct ak_sample_chain wanted;
    AK_TRY(read_chain(s, &wanted, error));
    for (uint32_t i = 0; i < wanted.n; i++) {
        if (wanted.kinds[i] == AK_SAMPLE_TEMPERATURE && p->temperature <= 0.0f &&
            p->dynatemp_range <= 0.0f)
            s->greedy = true;
        if (wanted.kinds[i] == AK_SAMPLE_ADAPTIVE_P)
            s->uses_adaptive_p = true;
    }
    for (uint32_t i = 0; i < wanted.n; i++)
        if (is_active(s, wanted.kinds[i]) &&
            (!s->greedy || ak_sample_edits_logits(wanted.kinds[i])))
            s->chain.kinds[s->chain.n++] = wanted.kinds[i];
    while (s->n_leading < s->chain.n && ak_sample_edits_logits(s->chain.kinds[s->n_leading]))
        s->n_leading++;
    if (s->uses_adaptive_p)
        ak_sample_adaptive_p_init(&s->adaptive_p, p);
    return AKUNU_OK;
}

static bool has_kind(const struct ak_sampler *s, enum ak_sample_kind kind)
{
    for (uint32_t i = 0; i < s->chain.n; i++)
        if (s->chain.kinds[i] == kind)
            return true;
    return false;
}

/* The caller's bias, then minus infinity for every end token if these are forbidden. */
static ak_status make_bias(struct ak_sampler *s, const struct ak_tokenizer *tokenizer,
                           struct ak_error *error)
{
    const struct akunu_sampling_params *p = &s->params;
    size_t n_known =
               p->ignore_end && tokenizer ? ak_min_size(ak_tok_n_tokens(tokenizer), s->n_vocab) : 0,
           n;
    size_t n_ends = 0;
    for (size_t i = 0; i < n_known; i++)
        n_ends += ak_tok_is_end(tokenizer, (int32_t)i);
    if (!ak_add_size(p->n_logit_bias, n_ends, &n) || !(s->bias = ak_alloc(n, sizeof *s->bias)))
        return ak_fail_memory(error, "the logit bias", 0);
    for (size_t i = 0; i < p->n_logit_bias; i++) {
        int32_t token = p->logit_bias[i].token;
        if (token < 0 || (uint32_t)token >= s->n_vocab)
            return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                           "logit bias: %d is not a token of this model, which has 0 to %u",
                           (int)token, s->n_vocab - 1);
        s->bias[s->n_bias++] = p->logit_bias[i];
    }
    for (size_t i = 0; i < n_known; i++)
        if (ak_tok_is_end(tokenizer, (int32_t)i))
            s->bias[s->n_bias++] =
                (struct akunu_logit_bias){ .token = (int32_t)i, .bias = -INFINITY };
    return AKUNU_OK;
}

static ak_status allocate_state(struct ak_sampler *s, const struct ak_tokenizer *tokenizer,
                                struct ak_error *error)
{
    s->logits = ak_alloc(s->n_vocab, sizeof *s->logits);
    s->candidates.items = ak_alloc(s->n_vocab, sizeof *s->candidates.items);
    s->candidates.weights = ak_alloc(s->n_vocab, sizeof *s->candidates.weights);
    if (!s->logits || !s->candidates.items || !s->candidates.weights)
        return ak_fail_memory(error, "the sampler", 0);
    if (has_kind(s, AK_SAMPLE_PENALTIES))
        AK_TRY(ak_sample_penalties_init(&s->penalties, &s->params, s->n_vocab, error));
    if (has_kind(s, AK_SAMPLE_DRY))
        AK_TRY(ak_sample_dry_init(&s->dry, &s->params, tokenizer, s->n_vocab, error));
    s->history.size = s->penalties.window > s->dry.window ? s->penalties.window : s->dry.window;
    s->history.ring = ak_alloc(s->history.size, sizeof *s->history.ring);
    return s->history.ring ? AKUNU_OK : ak_fail_memory(error, "the sampler's history", 0);
}

static ak_status init(struct ak_sampler *s, const struct ak_tokenizer *tokenizer,
                      struct ak_error *error)
{
    if (s->params.min_p > 0.0f)
        s->log_min_p = (float)ak_ln((double)s->params.min_p);
    AK_TRY(init_random(s, error));
    AK_TRY(init_chain(s, error));
    AK_TRY(make_bias(s, tokenizer, error));
    AK_TRY(allocate_state(s, tokenizer, error));
    s->params.samplers = s->params.sampler_seq = NULL;
    s->params.dry_sequence_breakers = NULL;
    s->params.logit_bias = NULL;
    return AKUNU_OK;
}

ak_status ak_sample_create(const struct akunu_sampling_params *sampling, uint32_t n_vocab,
                           const struct ak_tokenizer *tokenizer, struct ak_sampler **out,
                           struct ak_error *error)
{
    *out = NULL;
    AK_TRY(ak_sample_check_params(sampling, error));
    struct ak_sampler *s = ak_alloc(1, sizeof *s);
    if (!s)
        return ak_fail_memory(error, "the sampler", sizeof *s);
    s->params = *sampling;
    s->n_vocab = n_vocab;
    ak_status status = init(s, tokenizer, error);
    if (status != AKUNU_OK) {
        ak_sample_free(s);
        return status;
    }
    *out = s;
    return AKUNU_OK;
}

void ak_sample_free(struct ak_sampler *s)
{
    if (!s)
        return;
    ak_free(s->logits);
    ak_free(s->candidates.items);
    ak_free(s->candidates.weights);
    ak_free(s->bias);
    ak_free(s->history.ring);
    ak_sample_penalties_release(&s->penalties);
    ak_sample_dry_release(&s->dry);
    ak_free(s);
}

uint64_t ak_sample_seed(const struct ak_sampler *s)
{
    return s->params.seed;
}

uint64_t ak_sample_random_bits(struct ak_sampler *s)
{
    return ak_random_bits(&s->random);
}

bool ak_sample_matches_gumbel(const struct ak_sampler *s)
{
    const struct akunu_sampling_params *p = &s->params;
    if (s->n_bias > 0)
        return false;
    if (s->greedy)
        return s->chain.n == 0;
    bool tempered =
        s->chain.n == 1 && s->chain.kinds[0] == AK_SAMPLE_TEMPERATURE && p->dynatemp_range <= 0.0f;
    bool as_it_is = s->chain.n == 0 && p->temperature == 1.0f;
    return (tempered || as_it_is) && !s->uses_adaptive_p && s->mirostat.version == 0;
}

void ak_sample_accept(struct ak_sampler *s, int32_t token)
{
    if (token < 0 || (uint32_t)token >= s->n_vocab)
        return;
    if (s->penalties.counts)
        ak_sample_penalties_accept(&s->penalties, &s->history, token);
    ak_sample_history_push(&s->history, token);
    if (s->uses_adaptive_p)
        ak_sample_adaptive_p_accept(&s->adaptive_p, token);
}
