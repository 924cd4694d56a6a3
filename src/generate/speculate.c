#include "generate/speculate.h"

#include "base/mem.h"

static const double memory = 0.97;    /* of a chance, a guess later */
static const double allowance = 0.01; /* of all time may be lost by guesses … */
/* times the speed without them is what guesses have to bring */
static const double worth = 1.02;
static const double most_won = 32.0; /* … and so many passes of what was won before */
enum { FIRST_PATIENCE = 32, MOST_PATIENCE = 1024, LEAST_TRIED = 2 };

static double chance_of(const struct ak_chance *c)
{
    return c->right / c->all;
}

static void learn(struct ak_chance *c, bool right)
{
    c->right = c->right * memory + (right ? 1.0 : 0.0);
    c->all = c->all * memory + 1.0;
}

/* Before anything was seen: as if four guesses were of this chance. */
static struct ak_chance prior(double chance)
{
    return (struct ak_chance){ .right = 4.0 * chance, .all = 4.0 };
}

/* The more tokens are alike, and the surer the smaller model is, the likelier. */
static void set_priors(struct ak_speculation *s)
{
    static const double sure[AK_SURE_KINDS] = { 0.15, 0.3, 0.4, 0.5, 0.6, 0.7, 0.85, 0.95 };
    for (int n = 0; n <= AK_LOOKUP_MOST; n++)
        s->alike[n] = prior(0.9 - 0.9 / (0.7 * (double)n + 0.3));
    for (int i = 0; i < AK_SURE_KINDS; i++)
        s->sure[i] = prior(sure[i]);
    s->any_draft = prior(0.65);
}

static uint8_t kind_of(float probability)
{
    static const float bounds[AK_SURE_KINDS - 1] = { 0.2f, 0.35f, 0.5f, 0.65f, 0.8f, 0.9f, 0.98f };
    uint8_t kind = 0;
    while (kind < AK_SURE_KINDS - 1 && probability >= bounds[kind])
        kind++;
    return kind;
}

ak_status ak_speculation_is_possible(const struct ak_session *s, struct ak_error *error)
{
    if (s->kv.shape.state_elems > 0)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "speculation: the model keeps a running state, which cannot go back to "
                       "where a guess went wrong");
    if (!s->backend->ops->is_batch_invariant || !s->backend->ops->is_batch_invariant(s->backend))
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "speculation: logits depend on the pass here (a device, or relaxed "
                       "rounding), so guesses would change the text");
    return AKUNU_OK;
}

static uint32_t bounded(uint32_t value, uint32_t otherwise)
{
    uint32_t asked = value > 0 ? value : otherwise;
    return asked < AK_GUESS_MOST ? asked : AK_GUESS_MOST;
}

ak_status ak_speculation_begin(struct ak_session *s, const struct akunu_generation *generation,
                               struct ak_draft *draft, struct ak_speculation *out,
                               struct ak_error *error)
{
    enum akunu_speculation asked = generation->speculation;
    *out = (struct ak_speculation){ .costs = &s->costs,
                                    .uses_lookup = asked != AKUNU_SPECULATION_DRAFT,
                                    .draft = asked != AKUNU_SPECULATION_NGRAM ? draft : NULL,
                                    .patience = FIRST_PATIENCE };
    out->most = bounded(generation->draft_max, AK_GUESS_MOST);
    out->least = bounded(generation->draft_min, 1);
    out->least_probability = generation->draft_p_min;
    out->most = out->most < s->batch - 1 ? out->most : s->batch - 1;
    set_priors(out);
    return ak_lookup_create(s->kv.context + 1, &out->text, error);
}

void ak_speculation_clear(struct ak_speculation *s)
{
    ak_lookup_clear(&s->text);
}

void ak_speculation_see(struct ak_speculation *s, const int32_t *ids, size_t n, bool chosen)
{
    for (size_t i = 0; i < n; i++) {
        if (chosen && s->found != AK_LOOKUP_NONE)
            learn(&s->alike[s->found], s->text.tokens[s->at] == ids[i]);
        ak_lookup_push(&s->text, ids[i]);
        if (s->uses_lookup && (chosen || i + 1 == n))
            s->found = ak_lookup_find(&s->text, &s->at);
    }
}

/* ---- How many ----------------------------------------------------------- */
/* What a step is thought to bring. */
struct plan {
    uint32_t n;
    double rate; /* tokens a second */
};

static struct plan without(const struct ak_speculation *s)
{
    double one = ak_costs_of(s->costs, 1);
    return (struct plan){ 0, one > 0.0 ? worth / one : 0.0 };
}

/* Each guess makes those after it a place more alike. */
static struct plan plan_lookup(const struct ak_speculation *s, uint32_t most)
{
    struct plan best = without(s);
    double reached = 1.0, tokens = 1.0;
    uint32_t alike = s->found;
    if (!s->uses_lookup || alike == AK_LOOKUP_NONE)
        return best;
    for (uint32_t n = 1; n <= most; n++) {
        reached *= chance_of(&s->alike[alike]);
        tokens += reached;
        alike += alike < AK_LOOKUP_MOST;
        double rate = tokens / ak_costs_of(s->costs, n + 1);
        if (n >= s->least && rate > best.rate)
            best = (struct plan){ n, rate };
    }
    return best;
}

/* What the smaller model takes for its next token. */
static double draft_seconds(const struct ak_speculation *s, uint32_t behind)
{
    const struct ak_costs *costs = &s->draft->session->costs;
    uint32_t few = behind < AK_FEW_TOKENS ? behind : AK_FEW_TOKENS;
    return ak_costs_of(costs, few) * (double)behind / (double)few;
}

static struct plan plan_draft(const struct ak_speculation *s, uint32_t most)
{
    struct plan best = without(s);
    double reached = 1.0, tokens = 1.0, chance = chance_of(&s->any_draft);
    double seconds = draft_seconds(s, ak_draft_behind(s->draft, s->text.tokens, s->text.n));
    for (uint32_t n = 1; n <= most; n++) {
        reached *= chance;
        tokens += reached;
        double rate = tokens / (seconds + ak_costs_of(s->costs, n + 1));
        if (n >= s->least && rate > best.rate)
            best = (struct plan){ n, rate };
        seconds += draft_seconds(s, 1);
    }
    return best;
}

/* ---- Guesses ------------------------------------------------------------ */
static void guess_lookup(struct ak_speculation *s, uint32_t n, struct ak_guess *out)
{
    int32_t *tokens = s->text.tokens + s->text.n;
    ak_lookup_copy(&s->text, s->at, n, tokens);
    *out = (struct ak_guess){ .n = n, .tokens = tokens };
}

/* One token after the other, while the next one is worth what it takes: the time that the
 * smaller model and the pass want for it, against the chance that it saves a pass. */
static ak_status guess_draft(struct ak_speculation *s, uint32_t most, bool trial,
                             struct ak_guess *out, struct ak_error *error)
{
    int32_t *tokens = s->text.tokens + s->text.n;
    double reached = 1.0, saved = ak_costs_of(s->costs, 1);
    *out = (struct ak_guess){ .tokens = tokens, .drafted = true };
    while (out->n < most) {
        float probability;
        double more = ak_costs_of(s->costs, out->n + 2) - ak_costs_of(s->costs, out->n + 1);
        bool tried = trial && out->n < LEAST_TRIED;
        if (!tried && out->n > 0 &&
            reached * chance_of(&s->any_draft) * saved <= more + draft_seconds(s, 1))
            break;
        AK_TRY(ak_draft_next(s->draft, s->text.tokens, s->text.n + out->n, &tokens[out->n],
                             &probability, error));
        if (tokens[out->n] < 0 || probability < s->least_probability)
            break;
        out->kinds[out->n] = kind_of(probability);
        reached *= chance_of(&s->sure[out->kinds[out->n]]);
        if (!tried && reached * saved <= more)
            break;
        out->n++;
    }
    if (out->n < s->least)
        out->n = 0;
    return AKUNU_OK;
}

/* Guesses may lose what they won before, and a hundredth of all time. */
static bool may_guess(const struct ak_speculation *s)
{
    return s->balance > -(ak_costs_of(s->costs, 1) + allowance * s->seconds);
}

ak_status ak_speculation_guess(struct ak_speculation *s, uint32_t most, struct ak_guess *out,
                               struct ak_error *error)
{
    *out = (struct ak_guess){ .n = 0 };
    most = most < s->most ? most : s->most;
    if (most == 0 || most < s->least || ak_costs_of(s->costs, 1) <= 0.0 || !may_guess(s))
        return AKUNU_OK;
    struct plan lookup = plan_lookup(s, most);
    if (s->draft) {
        bool trial = ++s->waited >= s->patience;
        struct plan draft = plan_draft(s, most);
        if (draft.n > 0 ? draft.rate > lookup.rate : trial && lookup.n == 0)
            return guess_draft(s, most, trial, out, error);
    }
    if (lookup.n > 0)
        guess_lookup(s, lookup.n, out);
    return AKUNU_OK;
}

static void learn_draft(struct ak_speculation *s, const struct ak_guess *guess, uint32_t n_right)
{
    for (uint32_t i = 0; i < guess->n && i <= n_right; i++) {
        learn(&s->sure[guess->kinds[i]], i < n_right);
        learn(&s->any_draft, i < n_right);
    }
    if (n_right > 0)
        s->patience = FIRST_PATIENCE;
    else if (s->waited >= s->patience && s->patience < MOST_PATIENCE)
        s->patience *= 2;
    s->waited = 0;
}

void ak_speculation_learn(struct ak_speculation *s, const struct ak_guess *guess, uint32_t n_right,
                          double seconds)
{
    ak_costs_learn(s->costs, guess->n + 1, seconds);
    double one = ak_costs_of(s->costs, 1), drafted = s->draft ? s->draft->seconds : 0.0;
    if (guess->drafted)
        learn_draft(s, guess, n_right);
    if (s->draft)
        s->draft->seconds = 0.0;
    s->balance += (double)(n_right + 1) * one - ak_costs_of(s->costs, guess->n + 1) - drafted;
    if (s->balance > most_won * one)
        s->balance = most_won * one;
    s->seconds += seconds + drafted;
}
