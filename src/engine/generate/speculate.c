/* Decides how many tokens to draft, and by which drafter. A plan maximizes the expected tokens per
 * second from acceptance rates and pass costs. A running balance limits the time that drafts
 * lose. */
#include "engine/generate/speculate.h"

#include "base/mem.h"

static const double acceptance_decay = 0.97;  /* per drafted token */
static const double loss_fraction_max = 0.01; /* share of all time that drafts may lose */
/* drafts must be this much faster than none */
static const double speedup_min = 1.02;
static const double balance_max = 32.0; /* max. credit, in passes of one token */
enum { RETRY_INTERVAL_MIN = 32, RETRY_INTERVAL_MAX = 1024, TRIAL_MIN = 2 };

static double acceptance_rate(const struct ak_gen_acceptance *c)
{
    return c->accepted / c->drafted;
}

static void update_acceptance(struct ak_gen_acceptance *c, bool accepted)
{
    c->accepted = c->accepted * acceptance_decay + (accepted ? 1.0 : 0.0);
    c->drafted = c->drafted * acceptance_decay + 1.0;
}

/* Prior: as if 4 tokens had been drafted at this acceptance rate. */
static struct ak_gen_acceptance make_prior(double rate)
{
    return (struct ak_gen_acceptance){ .accepted = 4.0 * rate, .drafted = 4.0 };
}

/* Longer matches and surer draft models are accepted more often. */
static void set_priors(struct ak_gen_speculation *s)
{
    static const double priors[AK_GEN_CONFIDENCE_BINS] = {
        0.15, 0.3, 0.4, 0.5, 0.6, 0.7, 0.85, 0.95
    };
    for (int n = 0; n <= AK_DRAFT_LOOKUP_MAX; n++)
        s->lookup_acceptance[n] = make_prior(0.9 - 0.9 / (0.7 * (double)n + 0.3));
    for (int i = 0; i < AK_GEN_CONFIDENCE_BINS; i++)
        s->model_acceptance[i] = make_prior(priors[i]);
    s->model_acceptance_all = make_prior(0.65);
}

static uint8_t find_confidence_bin(float probability)
{
    static const float bounds[AK_GEN_CONFIDENCE_BINS - 1] = { 0.2f, 0.35f, 0.5f, 0.65f,
                                                              0.8f, 0.9f,  0.98f };
    uint8_t bin = 0;
    while (bin < AK_GEN_CONFIDENCE_BINS - 1 && probability >= bounds[bin])
        bin++;
    return bin;
}

ak_status ak_gen_speculation_check(const struct ak_session *s, struct ak_error *error)
{
    if (s->kv.shape.state_elems > 0)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "speculation: the model has recurrent state, which cannot be rolled back "
                       "after a refused draft");
    if (!s->backend->ops->is_batch_invariant || !s->backend->ops->is_batch_invariant(s->backend))
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "speculation: logits depend on the pass here (a device, or relaxed "
                       "rounding), so drafts would change the text");
    return AKUNU_OK;
}

static uint32_t clamp_draft(uint32_t value, uint32_t otherwise)
{
    uint32_t requested = value > 0 ? value : otherwise;
    return requested < AK_GEN_DRAFT_MAX ? requested : AK_GEN_DRAFT_MAX;
}

ak_status ak_gen_speculation_begin(struct ak_session *s,
                                   const struct akunu_generation_params *generation,
                                   struct ak_draft_model *draft, struct ak_gen_speculation *out,
                                   struct ak_error *error)
{
    enum akunu_speculation requested = generation->speculation;
    *out =
        (struct ak_gen_speculation){ .cost_model = &s->cost_model,
                                     .uses_lookup = requested != AKUNU_SPECULATION_DRAFT,
                                     .draft = requested != AKUNU_SPECULATION_NGRAM ? draft : NULL,
                                     .retry_interval = RETRY_INTERVAL_MIN };
    out->draft_max = clamp_draft(generation->draft_max, AK_GEN_DRAFT_MAX);
    out->draft_min = clamp_draft(generation->draft_min, 1);
    out->probability_min = generation->draft_p_min;
    out->draft_max = out->draft_max < s->batch - 1 ? out->draft_max : s->batch - 1;
    set_priors(out);
    return ak_draft_lookup_create(s->kv.context + 1, &out->lookup, error);
}

void ak_gen_speculation_clear(struct ak_gen_speculation *s)
{
    ak_draft_lookup_clear(&s->lookup);
}

void ak_gen_speculation_add_tokens(struct ak_gen_speculation *s, const int32_t *ids, size_t n,
                                   bool sampled)
{
    for (size_t i = 0; i < n; i++) {
        if (sampled && s->match_length != AK_DRAFT_LOOKUP_NONE)
            update_acceptance(&s->lookup_acceptance[s->match_length],
                              s->lookup.tokens[s->match_position] == ids[i]);
        ak_draft_lookup_push(&s->lookup, ids[i]);
        if (s->uses_lookup && (sampled || i + 1 == n))
            s->match_length = ak_draft_lookup_find(&s->lookup, &s->match_position);
    }
}

/* ---- Plans -------------------------------------------------------------- */
/* Expected result of a step. */
struct plan {
    uint32_t n;
    double rate; /* tokens per second */
};

static struct plan plan_no_draft(const struct ak_gen_speculation *s)
{
    double one = ak_session_cost_estimate(s->cost_model, 1);
    return (struct plan){ 0, one > 0.0 ? speedup_min / one : 0.0 };
}

/* Each accepted token makes the match one token longer. */
static struct plan plan_lookup(const struct ak_gen_speculation *s, uint32_t n_max)
{
    struct plan best = plan_no_draft(s);
    double reached = 1.0, tokens = 1.0;
    uint32_t n_match = s->match_length;
    if (!s->uses_lookup || n_match == AK_DRAFT_LOOKUP_NONE)
        return best;
    for (uint32_t n = 1; n <= n_max; n++) {
        reached *= acceptance_rate(&s->lookup_acceptance[n_match]);
        tokens += reached;
        n_match += n_match < AK_DRAFT_LOOKUP_MAX;
        double rate = tokens / ak_session_cost_estimate(s->cost_model, n + 1);
        if (n >= s->draft_min && rate > best.rate)
            best = (struct plan){ n, rate };
    }
    return best;
}

/* Estimated seconds of the draft model for its next token. */
static double estimate_draft_seconds(const struct ak_gen_speculation *s, uint32_t n_unseen)
{
    const struct ak_session_cost_model *costs = &s->draft->session->cost_model;
    uint32_t n_skinny = n_unseen < AK_SKINNY_MAX ? n_unseen : AK_SKINNY_MAX;
    return ak_session_cost_estimate(costs, n_skinny) * (double)n_unseen / (double)n_skinny;
}

static struct plan plan_draft(const struct ak_gen_speculation *s, uint32_t n_max)
{
    struct plan best = plan_no_draft(s);
    double reached = 1.0, tokens = 1.0, acceptance = acceptance_rate(&s->model_acceptance_all);
    double seconds = estimate_draft_seconds(
        s, ak_draft_model_count_unseen(s->draft, s->lookup.tokens, s->lookup.n));
    for (uint32_t n = 1; n <= n_max; n++) {
        reached *= acceptance;
        tokens += reached;
        double rate = tokens / (seconds + ak_session_cost_estimate(s->cost_model, n + 1));
        if (n >= s->draft_min && rate > best.rate)
            best = (struct plan){ n, rate };
        seconds += estimate_draft_seconds(s, 1);
    }
    return best;
}

/* ---- Drafts ------------------------------------------------------------- */
static void draft_from_lookup(struct ak_gen_speculation *s, uint32_t n, struct ak_gen_draft *out)
{
    int32_t *tokens = s->lookup.tokens + s->lookup.n;
    ak_draft_lookup_copy(&s->lookup, s->match_position, n, tokens);
    *out = (struct ak_gen_draft){ .n = n, .tokens = tokens };
}

/* Drafts token by token, while the next one pays: its time in the draft model and in the pass
 * against its probability of saving a pass. */
static ak_status draft_from_model(struct ak_gen_speculation *s, uint32_t n_max, bool trial,
                                  struct ak_gen_draft *out, struct ak_error *error)
{
    int32_t *tokens = s->lookup.tokens + s->lookup.n;
    double reached = 1.0, saved = ak_session_cost_estimate(s->cost_model, 1);
    *out = (struct ak_gen_draft){ .tokens = tokens, .from_model = true };
    while (out->n < n_max) {
        float probability;
        double more = ak_session_cost_estimate(s->cost_model, out->n + 2) -
                      ak_session_cost_estimate(s->cost_model, out->n + 1);
        bool tried = trial && out->n < TRIAL_MIN;
        if (!tried && out->n > 0 &&
            reached * acceptance_rate(&s->model_acceptance_all) * saved <=
                more + estimate_draft_seconds(s, 1))
            break;
        AK_TRY(ak_draft_model_propose(s->draft, s->lookup.tokens, s->lookup.n + out->n,
                                      &tokens[out->n], &probability, error));
        if (tokens[out->n] < 0 || probability < s->probability_min)
            break;
        out->confidence[out->n] = find_confidence_bin(probability);
        reached *= acceptance_rate(&s->model_acceptance[out->confidence[out->n]]);
        if (!tried && reached * saved <= more)
            break;
        out->n++;
    }
    if (out->n < s->draft_min)
        out->n = 0;
    return AKUNU_OK;
}

/* Whether the net loss of drafts is below one pass plus loss_fraction_max of the total time. */
static bool may_draft(const struct ak_gen_speculation *s)
{
    return s->balance >
           -(ak_session_cost_estimate(s->cost_model, 1) + loss_fraction_max * s->seconds);
}

ak_status ak_gen_speculation_draft(struct ak_gen_speculation *s, uint32_t n_max,
                                   struct ak_gen_draft *out, struct ak_error *error)
{
    *out = (struct ak_gen_draft){ .n = 0 };
    n_max = n_max < s->draft_max ? n_max : s->draft_max;
    if (n_max == 0 || n_max < s->draft_min || ak_session_cost_estimate(s->cost_model, 1) <= 0.0 ||
        !may_draft(s))
        return AKUNU_OK;
    struct plan lookup = plan_lookup(s, n_max);
    if (s->draft) {
        bool trial = ++s->n_skipped >= s->retry_interval;
        struct plan draft = plan_draft(s, n_max);
        if (draft.n > 0 ? draft.rate > lookup.rate : trial && lookup.n == 0)
            return draft_from_model(s, n_max, trial, out, error);
    }
    if (lookup.n > 0)
        draft_from_lookup(s, lookup.n, out);
    return AKUNU_OK;
}

static void update_model_draft(struct ak_gen_speculation *s, const struct ak_gen_draft *draft,
                               uint32_t n_accepted)
{
    for (uint32_t i = 0; i < draft->n && i <= n_accepted; i++) {
        update_acceptance(&s->model_acceptance[draft->confidence[i]], i < n_accepted);
        update_acceptance(&s->model_acceptance_all, i < n_accepted);
    }
    if (n_accepted > 0)
        s->retry_interval = RETRY_INTERVAL_MIN;
    else if (s->n_skipped >= s->retry_interval && s->retry_interval < RETRY_INTERVAL_MAX)
        s->retry_interval *= 2;
    s->n_skipped = 0;
}

void ak_gen_speculation_update(struct ak_gen_speculation *s, const struct ak_gen_draft *draft,
                               uint32_t n_accepted, double seconds)
{
    ak_session_cost_update(s->cost_model, draft->n + 1, seconds);
    double one = ak_session_cost_estimate(s->cost_model, 1),
           drafted = s->draft ? s->draft->seconds : 0.0;
    if (draft->from_model)
        update_model_draft(s, draft, n_accepted);
    if (s->draft)
        s->draft->seconds = 0.0;
    s->balance += (double)(n_accepted + 1) * one -
                  ak_session_cost_estimate(s->cost_model, draft->n + 1) - drafted;
    if (s->balance > balance_max * one)
        s->balance = balance_max * one;
    s->seconds += seconds + drafted;
}
