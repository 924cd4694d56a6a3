#include "session/sampler.h"

#include <float.h>
#include <math.h>
#include <sys/random.h>

#include "base/math.h"
#include "base/mem.h"
#include "session/candidates.h"
#include "session/random.h"

struct ak_sampler {
    struct akunu_sampling params;
    float log_min_p;
    uint32_t n_vocab;
    struct ak_random random;

    float *logits; /* as changed by penalties and forbidden ends */
    struct ak_candidates candidates;
    int32_t *ends; /* forbidden tokens */
    uint32_t n_ends;

    /* the tokens that penalties look at */
    bool penalised;
    uint32_t *counts;    /* of each token in the window */
    int32_t *window;     /* a ring; NULL: the whole context is looked at */
    uint32_t window_size, window_next, window_filled;
};

static ak_status check(const struct akunu_sampling *p, struct ak_error *error)
{
    const struct { const char *name; float value; } numbers[] = {
        { "temperature", p->temperature },         { "top_p", p->top_p },
        { "min_p", p->min_p },                     { "repeat_penalty", p->repeat_penalty },
        { "presence_penalty", p->presence_penalty }, { "frequency_penalty", p->frequency_penalty },
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!isfinite(numbers[i].value))
            return ak_fail(error, AKUNU_ERROR_ARGUMENT, "%s is not a finite number", numbers[i].name);
    if (p->repeat_penalty <= 0.0f)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "repeat_penalty is %g: it must be above 0 (1 switches it off)",
                       (double)p->repeat_penalty);
    if (p->repeat_last_n < -1)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "repeat_last_n is %d: it must be -1 (all tokens) or more", (int)p->repeat_last_n);
    return AKUNU_OK;
}

static ak_status seed(struct ak_sampler *s, struct ak_error *error)
{
    uint64_t *value = &s->params.seed;
    if (*value == UINT64_MAX && getrandom(value, sizeof *value, 0) != (ssize_t)sizeof *value)
        return ak_fail(error, AKUNU_ERROR_SYSTEM, "the system gave no random seed");
    ak_random_seed(&s->random, *value);
    return AKUNU_OK;
}

static ak_status find_ends(struct ak_sampler *s, const struct ak_tokenizer *tokenizer, struct ak_error *error)
{
    size_t n = ak_min_size(ak_tokenizer_n_tokens(tokenizer), s->n_vocab);
    for (size_t i = 0; i < n; i++)
        s->n_ends += ak_tokenizer_is_end(tokenizer, (int32_t)i);
    s->ends = ak_alloc(s->n_ends, sizeof *s->ends);
    if (!s->ends)
        return ak_fail_memory(error, "the sampler", 0);
    uint32_t found = 0;
    for (size_t i = 0; i < n; i++)
        if (ak_tokenizer_is_end(tokenizer, (int32_t)i))
            s->ends[found++] = (int32_t)i;
    return AKUNU_OK;
}

static ak_status allocate(struct ak_sampler *s, const struct ak_tokenizer *tokenizer, struct ak_error *error)
{
    const struct akunu_sampling *p = &s->params;
    s->penalised = p->repeat_last_n != 0 &&
                   (p->repeat_penalty != 1.0f || p->presence_penalty != 0.0f || p->frequency_penalty != 0.0f);
    s->logits = ak_alloc(s->n_vocab, sizeof *s->logits);
    s->candidates.items = ak_alloc(s->n_vocab, sizeof *s->candidates.items);
    s->candidates.weights = ak_alloc(s->n_vocab, sizeof *s->candidates.weights);
    bool ok = s->logits && s->candidates.items && s->candidates.weights;
    if (s->penalised) {
        s->counts = ak_alloc(s->n_vocab, sizeof *s->counts);
        ok = ok && s->counts;
        if (p->repeat_last_n > 0) {
            s->window_size = (uint32_t)p->repeat_last_n;
            s->window = ak_alloc(s->window_size, sizeof *s->window);
            ok = ok && s->window;
        }
    }
    if (!ok)
        return ak_fail_memory(error, "the sampler", 0);
    return p->ignore_end && tokenizer ? find_ends(s, tokenizer, error) : AKUNU_OK;
}

ak_status ak_sampler_create(const struct akunu_sampling *sampling, uint32_t n_vocab, const struct ak_tokenizer *tokenizer,
                            struct ak_sampler **out, struct ak_error *error)
{
    *out = NULL;
    AK_TRY(check(sampling, error));
    struct ak_sampler *s = ak_alloc(1, sizeof *s);
    if (!s)
        return ak_fail_memory(error, "the sampler", sizeof *s);
    s->params = *sampling;
    s->n_vocab = n_vocab;
    if (sampling->min_p > 0.0f)
        s->log_min_p = (float)ak_log((double)sampling->min_p);
    ak_status status = seed(s, error);
    if (status == AKUNU_OK)
        status = allocate(s, tokenizer, error);
    if (status != AKUNU_OK) {
        ak_sampler_free(s);
        return status;
    }
    *out = s;
    return AKUNU_OK;
}

void ak_sampler_free(struct ak_sampler *s)
{
    if (!s)
        return;
    ak_free(s->logits);
    ak_free(s->candidates.items);
    ak_free(s->candidates.weights);
    ak_free(s->ends);
    ak_free(s->counts);
    ak_free(s->window);
    ak_free(s);
}

uint64_t ak_sampler_seed(const struct ak_sampler *s)
{
    return s->params.seed;
}

uint64_t ak_sampler_bits(struct ak_sampler *s)
{
    return ak_random_bits(&s->random);
}

bool ak_sampler_is_plain(const struct ak_sampler *s)
{
    const struct akunu_sampling *p = &s->params;
    bool filtered = (p->top_k > 0 && (uint32_t)p->top_k < s->n_vocab) || p->top_p < 1.0f || p->min_p > 0.0f;
    return (p->temperature <= 0.0f || !filtered) && !s->penalised && s->n_ends == 0;
}

void ak_sampler_accept(struct ak_sampler *s, int32_t token)
{
    if (!s->penalised || token < 0 || (uint32_t)token >= s->n_vocab)
        return;
    if (s->window) {
        if (s->window_filled == s->window_size)
            s->counts[s->window[s->window_next]]--;
        else
            s->window_filled++;
        s->window[s->window_next] = token;
        s->window_next = (s->window_next + 1) % s->window_size;
    }
    s->counts[token]++;
}

/* Dividing lowers a positive logit; a negative one is lowered by multiplying. */
static float penalise(const struct akunu_sampling *p, float logit, uint32_t count)
{
    float repeated = logit > 0.0f ? logit / p->repeat_penalty : logit * p->repeat_penalty;
    return repeated - ((float)count * p->frequency_penalty + p->presence_penalty);
}

/* Penalties and forbidden ends on a copy in which every value can be compared and
 * subtracted. */
static const float *prepare(struct ak_sampler *s, const float *logits)
{
    for (uint32_t i = 0; i < s->n_vocab; i++) {
        float x = logits[i];
        if (s->penalised && s->counts[i] > 0)
            x = penalise(&s->params, x, s->counts[i]);
        x = x > -INFINITY ? x : -INFINITY; /* NaN */
        s->logits[i] = x < FLT_MAX ? x : FLT_MAX;
    }
    for (uint32_t i = 0; i < s->n_ends; i++)
        s->logits[s->ends[i]] = -INFINITY;
    return s->logits;
}

/* The first of the largest values; n where none is above minus infinity. The
 * maxima of separate lanes come first, because compilers can vectorise them. */
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

ak_status ak_sampler_nothing_left(struct ak_error *error)
{
    return ak_fail(error, AKUNU_ERROR_NUMERIC, "no token can be chosen: the model gave no logit that is a number");
}

ak_status ak_sampler_choose(struct ak_sampler *s, const float *logits, int32_t *token, struct ak_error *error)
{
    const struct akunu_sampling *p = &s->params;
    struct ak_candidates *c = &s->candidates;
    if (p->temperature <= 0.0f) {
        uint32_t best = argmax(s->penalised || s->n_ends ? prepare(s, logits) : logits, s->n_vocab);
        if (best == s->n_vocab)
            return ak_sampler_nothing_left(error);
        *token = (int32_t)best;
        return AKUNU_OK;
    }
    ak_candidates_collect(c, prepare(s, logits), s->n_vocab, p->top_k > 0 ? (uint32_t)p->top_k : 0);
    if (c->n == 0)
        return ak_sampler_nothing_left(error);
    if (p->top_p < 1.0f)
        ak_candidates_top_p(c, p->top_p);
    if (p->min_p > 0.0f)
        ak_candidates_min_p(c, s->log_min_p);
    *token = ak_candidates_draw(c, p->temperature, ak_random_unit(&s->random));
    return AKUNU_OK;
}
