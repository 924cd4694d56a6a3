#include "session/sampler.h"

#include <math.h>
#include <string.h>
#include <sys/random.h>

#include "base/math.h"
#include "base/mem.h"
#include "session/candidates.h"
#include "session/penalties.h"
#include "session/random.h"
#include "session/sampling_order.h"

struct ak_sampler {
    struct akunu_sampling params;
    float log_min_p;
    uint32_t n_vocab;
    struct ak_random random;

    /* The samplers that have something to do. The first n_leading ones change logits
     * token by token, and so does the bias before them: on a copy of all logits, from
     * which candidates are gathered after that. */
    struct ak_sampling_order order;
    uint32_t n_leading;
    bool greedy; /* the likeliest token: every sampler in the order is a leading one */

    float *logits; /* that copy */
    struct ak_candidates candidates;
    int32_t *ends; /* forbidden tokens */
    uint32_t n_ends;
    struct ak_history history;
    struct ak_penalties penalties;
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

/* True where the parameters give the sampler something to do. */
static bool is_active(const struct ak_sampler *s, enum ak_sampling_step step)
{
    const struct akunu_sampling *p = &s->params;
    switch (step) {
    case AK_SAMPLING_PENALTIES: return ak_penalties_wanted(p);
    case AK_SAMPLING_TOP_K: return p->top_k > 0 && (uint32_t)p->top_k < s->n_vocab;
    case AK_SAMPLING_TOP_P: return p->top_p < 1.0f;
    case AK_SAMPLING_MIN_P: return p->min_p > 0.0f;
    case AK_SAMPLING_TEMPERATURE: return p->temperature != 1.0f;
    }
    return false;
}

/* True for samplers that change each token's logit for itself. */
static bool edits_logits(enum ak_sampling_step step)
{
    return step == AK_SAMPLING_PENALTIES;
}

static ak_status settle_order(struct ak_sampler *s, struct ak_error *error)
{
    struct ak_sampling_order wanted;
    AK_TRY(ak_sampling_order(&s->params, &wanted, error));
    for (uint32_t i = 0; i < wanted.n; i++)
        s->greedy = s->greedy || (wanted.steps[i] == AK_SAMPLING_TEMPERATURE && s->params.temperature <= 0.0f);
    for (uint32_t i = 0; i < wanted.n; i++)
        if (is_active(s, wanted.steps[i]) && (!s->greedy || edits_logits(wanted.steps[i])))
            s->order.steps[s->order.n++] = wanted.steps[i];
    while (s->n_leading < s->order.n && edits_logits(s->order.steps[s->n_leading]))
        s->n_leading++;
    return AKUNU_OK;
}

static bool has_step(const struct ak_sampler *s, enum ak_sampling_step step)
{
    for (uint32_t i = 0; i < s->order.n; i++)
        if (s->order.steps[i] == step)
            return true;
    return false;
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
    s->logits = ak_alloc(s->n_vocab, sizeof *s->logits);
    s->candidates.items = ak_alloc(s->n_vocab, sizeof *s->candidates.items);
    s->candidates.weights = ak_alloc(s->n_vocab, sizeof *s->candidates.weights);
    if (!s->logits || !s->candidates.items || !s->candidates.weights)
        return ak_fail_memory(error, "the sampler", 0);
    if (has_step(s, AK_SAMPLING_PENALTIES)) {
        AK_TRY(ak_penalties_init(&s->penalties, &s->params, s->n_vocab, error));
        s->history.size = s->penalties.window;
    }
    s->history.ring = ak_alloc(s->history.size, sizeof *s->history.ring);
    if (!s->history.ring)
        return ak_fail_memory(error, "the sampler's history", 0);
    return s->params.ignore_end && tokenizer ? find_ends(s, tokenizer, error) : AKUNU_OK;
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
        status = settle_order(s, error);
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
    ak_free(s->history.ring);
    ak_penalties_release(&s->penalties);
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
    bool tempered = s->order.n == 1 && s->order.steps[0] == AK_SAMPLING_TEMPERATURE;
    return s->n_ends == 0 && (s->order.n == 0 || tempered) && (s->greedy || tempered || s->params.temperature == 1.0f);
}

void ak_sampler_accept(struct ak_sampler *s, int32_t token)
{
    if (token < 0 || (uint32_t)token >= s->n_vocab)
        return;
    if (s->penalties.counts)
        ak_penalties_accept(&s->penalties, &s->history, token);
    ak_history_push(&s->history, token);
}

/* A sampler of those that edit logits, on `logits` by token. */
static void edit(struct ak_sampler *s, enum ak_sampling_step step, float *logits)
{
    if (step == AK_SAMPLING_PENALTIES)
        ak_penalties_apply(&s->penalties, logits);
}

/* Bias and leading samplers; the logits themselves where there is nothing to change. */
static const float *edit_all(struct ak_sampler *s, const float *logits)
{
    if (s->n_leading == 0 && s->n_ends == 0)
        return logits;
    memcpy(s->logits, logits, s->n_vocab * sizeof *s->logits);
    for (uint32_t i = 0; i < s->n_ends; i++)
        s->logits[s->ends[i]] = -INFINITY;
    for (uint32_t i = 0; i < s->n_leading; i++)
        edit(s, s->order.steps[i], s->logits);
    return s->logits;
}

/* The same behind others, for the candidates that are left. */
static void edit_candidates(struct ak_sampler *s, enum ak_sampling_step step)
{
    struct ak_candidates *c = &s->candidates;
    for (uint32_t i = 0; i < c->n; i++)
        s->logits[c->items[i].token] = c->items[i].logit;
    edit(s, step, s->logits);
    ak_candidates_refresh(c, s->logits);
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
    return ak_fail(error, AKUNU_ERROR_NUMERIC, "no token can be chosen: of those that are allowed the model gave none a logit that is a number");
}

static ak_status choose_best(struct ak_sampler *s, const float *logits, const uint32_t *allowed, int32_t *token, struct ak_error *error)
{
    const float *edited = edit_all(s, logits);
    if (allowed) {
        ak_candidates_collect_allowed(&s->candidates, edited, allowed, s->n_vocab, 1);
        if (s->candidates.n == 0)
            return ak_sampler_nothing_left(error);
        *token = s->candidates.items[0].token;
        return AKUNU_OK;
    }
    uint32_t best = argmax(edited, s->n_vocab);
    if (best == s->n_vocab)
        return ak_sampler_nothing_left(error);
    *token = (int32_t)best;
    return AKUNU_OK;
}

/* A sampler behind the leading ones, on the candidates. */
static void narrow(struct ak_sampler *s, enum ak_sampling_step step)
{
    const struct akunu_sampling *p = &s->params;
    struct ak_candidates *c = &s->candidates;
    switch (step) {
    case AK_SAMPLING_PENALTIES: edit_candidates(s, step); break;
    case AK_SAMPLING_TOP_K: ak_candidates_top_k(c, (uint32_t)p->top_k); break;
    case AK_SAMPLING_TOP_P: ak_candidates_top_p(c, p->top_p); break;
    case AK_SAMPLING_MIN_P: ak_candidates_min_p(c, s->log_min_p); break;
    case AK_SAMPLING_TEMPERATURE: ak_candidates_divide(c, p->temperature); break;
    }
}

/* The candidates after all samplers but a temperature at the end, which is given back. */
static float gather(struct ak_sampler *s, const float *logits, const uint32_t *allowed)
{
    struct ak_candidates *c = &s->candidates;
    const struct ak_sampling_order *o = &s->order;
    uint32_t i = s->n_leading, n = o->n;
    bool tempered = n > i && o->steps[n - 1] == AK_SAMPLING_TEMPERATURE;
    bool top_k = n > i && o->steps[i] == AK_SAMPLING_TOP_K;
    uint32_t k = top_k ? (uint32_t)s->params.top_k : 0;
    const float *edited = edit_all(s, logits);
    if (allowed)
        ak_candidates_collect_allowed(c, edited, allowed, s->n_vocab, k);
    else
        ak_candidates_collect(c, edited, s->n_vocab, k);
    for (i += top_k, n -= tempered; i < n && c->n > 0; i++)
        narrow(s, o->steps[i]);
    return tempered ? s->params.temperature : 1.0f;
}

ak_status ak_sampler_choose_allowed(struct ak_sampler *s, const float *logits, const uint32_t *allowed, int32_t *token,
                                    struct ak_error *error)
{
    if (s->greedy)
        return choose_best(s, logits, allowed, token, error);
    float temperature = gather(s, logits, allowed);
    if (s->candidates.n == 0)
        return ak_sampler_nothing_left(error);
    *token = ak_candidates_draw(&s->candidates, temperature, ak_random_unit(&s->random));
    return AKUNU_OK;
}

ak_status ak_sampler_choose(struct ak_sampler *s, const float *logits, int32_t *token, struct ak_error *error)
{
    return ak_sampler_choose_allowed(s, logits, NULL, token, error);
}
