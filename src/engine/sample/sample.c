/* Samples a token: bias and leading samplers edit a copy of the logits, candidates are collected,
 * the rest of the chain filters them, and one is sampled. Greedy sampling skips the candidates. */
#include <math.h>
#include <string.h>

#include "engine/sample/sampler_state.h"

/* Applies a sampler that edits logits. */
static void edit_logits(struct ak_sampler *s, enum ak_sample_kind kind, float *logits)
{
    if (kind == AK_SAMPLE_PENALTIES)
        ak_sample_penalties_apply(&s->penalties, logits);
    else
        ak_sample_dry_apply(&s->dry, &s->history, logits);
}

/* Applies bias and leading samplers. Returns `logits` itself if there is nothing to change. */
static const float *edit_all_logits(struct ak_sampler *s, const float *logits)
{
    if (s->n_leading == 0 && s->n_bias == 0)
        return logits;
    memcpy(s->logits, logits, s->n_vocab * sizeof *s->logits);
    for (size_t i = 0; i < s->n_bias; i++)
        s->logits[s->bias[i].token] += s->bias[i].bias;
    for (uint32_t i = 0; i < s->n_leading; i++)
        edit_logits(s, s->chain.kinds[i], s->logits);
    return s->logits;
}

/* The same later in the chain, for the remaining candidates. */
static void edit_candidates(struct ak_sampler *s, enum ak_sample_kind kind)
{
    struct ak_sample_candidates *c = &s->candidates;
    for (uint32_t i = 0; i < c->n; i++)
        s->logits[c->items[i].token] = c->items[i].logit;
    edit_logits(s, kind, s->logits);
    ak_sample_refresh(c, s->logits);
}

/* Index of the first largest value; n if none is above minus infinity. Maxima per lane come first,
 * because compilers vectorize them. */
static uint32_t argmax(const float *x, uint32_t n)
{
    enum { LANES = 16 };
    float lane[LANES], best = -INFINITY;
    uint32_t i = 0;
    for (int j = 0; j < LANES; j++)
        lane[j] = -INFINITY;
    for (; n - i >= LANES; i += LANES)
        for (uint32_t j = 0; j < LANES; j++)
            lane[j] = x[i + j] > lane[j] ? x[i + j] : lane[j];
    for (; i < n; i++)
        lane[0] = x[i] > lane[0] ? x[i] : lane[0];
    for (int j = 0; j < LANES; j++)
        best = lane[j] > best ? lane[j] : best;
    if (best == -INFINITY)
        return n;
    for (i = 0; x[i] != best; i++)
        ;
    return i;
}

ak_status ak_sample_fail_empty(struct ak_error *error)
{
    return ak_fail(
        error, AKUNU_ERROR_NUMERIC,
        "no token can be sampled: every allowed token has a logit of NaN or minus infinity");
}

static ak_status sample_greedy(struct ak_sampler *s, const float *logits, const uint32_t *allowed,
                               int32_t *token, struct ak_error *error)
{
    const float *edited = edit_all_logits(s, logits);
    uint32_t best;
    if (allowed) {
        ak_sample_collect_masked(&s->candidates, edited, allowed, s->n_vocab, 1);
        best = s->candidates.n > 0 ? (uint32_t)s->candidates.items[0].token : s->n_vocab;
    } else {
        best = argmax(edited, s->n_vocab);
    }
    if (best == s->n_vocab)
        return ak_sample_fail_empty(error);
    *token = (int32_t)best;
    return AKUNU_OK;
}

uint32_t ak_sample_n_best(const struct ak_sampler *s)
{
    if (s->greedy)
        return 1;
    bool top_k = s->n_leading < s->chain.n && s->chain.kinds[s->n_leading] == AK_SAMPLE_TOP_K;
    return top_k ? (uint32_t)s->params.top_k : 0;
}

/* If no bias lifts a token, the best ones were among as many more as have a bias. */
uint32_t ak_sample_n_best_unedited(const struct ak_sampler *s)
{
    uint32_t n = s->n_leading == 0 ? ak_sample_n_best(s) : 0;
    for (size_t i = 0; i < s->n_bias; i++)
        if (!(s->bias[i].bias <= 0.0f))
            return 0;
    return n && s->n_bias <= UINT32_MAX - n ? n + (uint32_t)s->n_bias : 0;
}

const struct ak_sample_candidate *ak_sample_find_best(struct ak_sampler *s, const float *logits,
                                                      uint32_t n, uint32_t *n_found)
{
    ak_sample_collect(&s->candidates, edit_all_logits(s, logits), s->n_vocab, n);
    *n_found = s->candidates.n;
    return s->candidates.items;
}

/* A random number is used only if XTC could drop a candidate. */
static void exclude_top_choices(struct ak_sampler *s)
{
    if (s->candidates.n > 1 && ak_random_unit(&s->random) < (double)s->params.xtc_probability)
        ak_sample_xtc(&s->candidates, s->params.xtc_threshold);
}

static float compute_temperature(struct ak_sampler *s)
{
    const struct akunu_sampling_params *p = &s->params;
    return p->dynatemp_range > 0.0f ?
               ak_sample_dynamic_temperature(&s->candidates, p->temperature, p->dynatemp_range,
                                             p->dynatemp_exponent) :
               p->temperature;
}

/* Applies a sampler after the leading ones to the candidates. */
static void apply_sampler(struct ak_sampler *s, enum ak_sample_kind kind)
{
    const struct akunu_sampling_params *p = &s->params;
    struct ak_sample_candidates *c = &s->candidates;
    switch (kind) {
    case AK_SAMPLE_PENALTIES: edit_candidates(s, kind); break;
    case AK_SAMPLE_DRY: edit_candidates(s, kind); break;
    case AK_SAMPLE_TOP_N_SIGMA: ak_sample_top_n_sigma(c, p->top_n_sigma); break;
    case AK_SAMPLE_TOP_K: ak_sample_top_k(c, (uint32_t)p->top_k); break;
    case AK_SAMPLE_TYPICAL: ak_sample_typical(c, p->typical_p, s->logits); break;
    case AK_SAMPLE_TOP_P: ak_sample_top_p(c, p->top_p); break;
    case AK_SAMPLE_MIN_P: ak_sample_min_p(c, s->log_min_p); break;
    case AK_SAMPLE_XTC: exclude_top_choices(s); break;
    case AK_SAMPLE_TEMPERATURE: ak_sample_apply_temperature(c, compute_temperature(s)); break;
    case AK_SAMPLE_ADAPTIVE_P: break;
    }
}

/* Collects candidates and applies the chain after the leading samplers, up to index `end`. A top-k
 * that comes first is part of the collecting. */
static void gather_candidates(struct ak_sampler *s, const float *logits, const uint32_t *allowed,
                              uint32_t end)
{
    struct ak_sample_candidates *c = &s->candidates;
    uint32_t i = s->n_leading;
    bool top_k = i < end && s->chain.kinds[i] == AK_SAMPLE_TOP_K;
    uint32_t k = top_k ? (uint32_t)s->params.top_k : 0;
    const float *edited = edit_all_logits(s, logits);
    ak_sample_collect_masked(c, edited, allowed, s->n_vocab, k);
    for (i += top_k; i < end && c->n > 0; i++)
        apply_sampler(s, s->chain.kinds[i]);
}

/* Index of the sampled candidate. If the chain ends in a temperature, it is applied to the weights
 * here and not to the logits. */
static uint32_t sample_candidate(struct ak_sampler *s, bool ends_in_temperature)
{
    struct ak_sample_candidates *c = &s->candidates;
    float t = ends_in_temperature ? compute_temperature(s) : 1.0f;
    if (t <= 0.0f || s->mirostat.version != 0) {
        ak_sample_apply_temperature(c, t);
        t = 1.0f;
    }
    double unit = ak_random_unit(&s->random);
    if (s->mirostat.version != 0)
        return ak_sample_with_mirostat(&s->mirostat, c, unit);
    if (s->uses_adaptive_p)
        return ak_sample_with_adaptive_p(&s->adaptive_p, c, t, unit, s->logits);
    return ak_sample_invert_cdf(c, ak_sample_weigh(c, t), unit);
}

ak_status ak_sample_token_masked(struct ak_sampler *s, const float *logits, const uint32_t *allowed,
                                 int32_t *token, struct ak_error *error)
{
    if (s->greedy)
        return sample_greedy(s, logits, allowed, token, error);
    uint32_t n = s->chain.n;
    bool ends_in_temperature = n > 0 && s->chain.kinds[n - 1] == AK_SAMPLE_TEMPERATURE;
    gather_candidates(s, logits, allowed, n - ends_in_temperature);
    if (s->candidates.n == 0)
        return ak_sample_fail_empty(error);
    *token = s->candidates.items[sample_candidate(s, ends_in_temperature)].token;
    return AKUNU_OK;
}

ak_status ak_sample_token(struct ak_sampler *s, const float *logits, int32_t *token,
                          struct ak_error *error)
{
    return ak_sample_token_masked(s, logits, NULL, token, error);
}
