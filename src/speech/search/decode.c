/* Greedy search, sampling and beam search over the tokens of one window. */
#include "speech/search/decode.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/gumbel.h"
#include "base/math.h"
#include "base/mem.h"

/* A text that grows, or one that is complete. */
struct text {
    int32_t *tokens;  /* [max_tokens + 1] */
    float *log_probs; /* of the tokens */
    uint32_t n;
    float sum; /* float32, as torch adds */
};

/* A token that may follow a text. */
struct candidate {
    uint32_t from;
    int32_t token;
    float log_prob, sum;
};

struct decoder {
    const struct ak_speech_model *model;
    const struct ak_speech_search *search;
    struct ak_error *error;
    ak_status status; /* of the constraint */
    /* of `texts`, `done` and `candidates`. n_beams is smaller than the number that is searched if
     * a grammar leaves too few continuations. */
    uint32_t n_beams, n_done, n_candidates;
    struct text *texts, *next, *done;
    struct candidate *candidates; /* [n_texts · (n_texts + 1)] */
    float *logits;                /* [vocabulary]: a row, filtered */
    uint32_t *from;
    int32_t *tokens;
};

static uint32_t count_texts(const struct ak_speech_search *s)
{
    return s->beams || s->temperature > 0.0f ? s->n_texts : 1;
}

static uint32_t count_done_max(const struct ak_speech_search *s)
{
    return s->beams ? (uint32_t)lrintf((float)s->n_texts * s->patience) : s->n_texts;
}

/* ---- Probabilities ------------------------------------------------------ */
static double log_sum_exp(const float *logits, int32_t n)
{
    float max = -INFINITY;
    for (int32_t i = 0; i < n; i++)
        max = logits[i] > max ? logits[i] : max;
    return (double)max + ak_log_sum_exp(logits, (size_t)n, max);
}

/* Filters a row; returns the log of the sum of what is left. */
static double filter(struct decoder *d, const struct ak_speech_rules *rules,
                     const struct ak_speech_allowed *allowed, const float *row,
                     const struct text *text)
{
    memcpy(d->logits, row, (size_t)rules->tokens->n * sizeof *row);
    ak_speech_rules_apply(rules, allowed, text->tokens, text->n, d->logits);
    return log_sum_exp(d->logits, rules->tokens->n);
}

/* Filters a row by a grammar too. If nothing is left, the grammar wants a symbol that is suppressed
 * otherwise; if it still is nothing, the text ends. */
static double constrain(struct decoder *d, const float *row, const struct text *text)
{
    const struct ak_speech_constraint *constraint = d->search->constraint;
    struct ak_speech_rules rules = *d->search->rules;
    struct ak_speech_allowed allowed = { .tokens = NULL, .end = true, .more = true };
    if (d->status == AKUNU_OK)
        d->status = constraint->find(constraint->user, text->tokens, text->n, &allowed, d->error);
    double log_sum = filter(d, &rules, &allowed, row, text);
    if (log_sum > -INFINITY)
        return log_sum;
    rules.n_suppressed = 0;
    rules.blank = -1;
    log_sum = filter(d, &rules, &allowed, row, text);
    if (log_sum > -INFINITY)
        return log_sum;
    d->logits[rules.tokens->end] = 0.0f;
    return 0.0;
}

/* Filters a row, and makes log-probabilities of it. */
static void normalize(struct decoder *d, const float *row, const struct text *text)
{
    const struct ak_speech_rules *rules = d->search->rules;
    int32_t n = rules->tokens->n;
    double log_sum =
        d->search->constraint ? constrain(d, row, text) : filter(d, rules, NULL, row, text);
    for (int32_t i = 0; i < n; i++)
        d->logits[i] = (float)((double)d->logits[i] - log_sum);
}

double ak_speech_probability(const float *logits, int32_t n, int32_t token)
{
    return ak_exp((double)logits[token] - log_sum_exp(logits, n));
}

/* ---- Greedy search and sampling ----------------------------------------- */
/* The most probable token. Above a temperature of 0 one by chance: the argmax of logit /
 * temperature plus Gumbel noise is a sample of softmax(logits / temperature). The noise of most
 * tokens is not computed, because its bound shows that they lose. */
static int32_t choose_token(const struct decoder *d, uint32_t text, uint32_t at)
{
    const struct ak_speech_search *s = d->search;
    int32_t best = 0;
    double best_value = -INFINITY;
    uint64_t seed = ak_gumbel_stream(s->seed, text);
    for (int32_t i = 0; i < s->rules->tokens->n; i++) {
        double value = (double)d->logits[i];
        if (s->temperature > 0.0f) {
            double uniform = ak_gumbel_uniform(seed, at, (uint32_t)i);
            value /= (double)s->temperature;
            if (value + ak_gumbel_bound(uniform) <= best_value)
                continue;
            value -= ak_ln(-ak_ln(uniform));
        }
        if (value > best_value) {
            best_value = value;
            best = i;
        }
    }
    return best;
}

/* Adds a token to each text that has not ended; true: all have ended. */
static bool extend_texts(struct decoder *d, uint32_t n, const float *const *rows, uint32_t at)
{
    int32_t end = d->search->rules->tokens->end;
    bool ended = true;
    for (uint32_t i = 0; i < n; i++) {
        struct text *t = &d->texts[i];
        d->from[i] = i;
        d->tokens[i] = end;
        if (t->n > 0 && t->tokens[t->n - 1] == end)
            continue;
        normalize(d, rows[i], t);
        int32_t token = choose_token(d, i, at);
        t->sum += d->logits[token];
        t->log_probs[t->n] = d->logits[token];
        t->tokens[t->n++] = d->tokens[i] = token;
        ended = ended && token == end;
    }
    return ended;
}

/* ---- Beam search -------------------------------------------------------- */
static bool is_same_text(const struct decoder *d, uint32_t a, uint32_t b)
{
    const struct text *x = &d->texts[a], *y = &d->texts[b];
    return x->n == y->n && memcmp(x->tokens, y->tokens, x->n * sizeof *x->tokens) == 0;
}

/* The n most probable tokens, in falling order; of equal ones the first. */
static void find_best(const float *values, int32_t n_values, uint32_t n, int32_t *out)
{
    uint32_t found = 0;
    for (int32_t i = 0; i < n_values; i++) {
        if (found == n && !(values[i] > values[out[n - 1]]))
            continue;
        uint32_t at = found < n ? found++ : n - 1;
        for (; at > 0 && values[i] > values[out[at - 1]]; at--)
            out[at] = out[at - 1];
        out[at] = i;
    }
}

/* Adds a candidate in its place: larger sums first, of equal ones the earlier. */
static void add_candidate(struct decoder *d, struct candidate new)
{
    uint32_t at = d->n_candidates++;
    for (; at > 0 && new.sum > d->candidates[at - 1].sum; at--)
        d->candidates[at] = d->candidates[at - 1];
    d->candidates[at] = new;
}

/* `n`: beams that are searched. What a grammar rejects is no candidate. */
static void collect_candidates(struct decoder *d, uint32_t n, const float *const *rows)
{
    int32_t best[AK_SPEECH_TEXTS_MAX + 1];
    d->n_candidates = 0;
    for (uint32_t i = 0; i < d->n_beams; i++) {
        bool repeated = false; /* at the beginning all are the same */
        for (uint32_t j = 0; j < i; j++)
            repeated = repeated || is_same_text(d, i, j);
        if (repeated)
            continue;
        normalize(d, rows[i], &d->texts[i]);
        find_best(d->logits, d->search->rules->tokens->n, n + 1, best);
        for (uint32_t k = 0; k <= n; k++)
            if (!d->search->constraint || d->logits[best[k]] > -INFINITY)
                add_candidate(d, (struct candidate){ .from = i,
                                                     .token = best[k],
                                                     .log_prob = d->logits[best[k]],
                                                     .sum = d->texts[i].sum + d->logits[best[k]] });
    }
}

static void copy_text(const struct text *from, struct text *to)
{
    memcpy(to->tokens, from->tokens, from->n * sizeof *to->tokens);
    memcpy(to->log_probs, from->log_probs, from->n * sizeof *to->log_probs);
    to->n = from->n;
    to->sum = from->sum;
}

/* Keeps the best candidates as texts; those that end and are better than the last of these are
 * complete. True: enough are. */
static bool advance_beams(struct decoder *d, uint32_t n, const float *const *rows)
{
    int32_t end = d->search->rules->tokens->end;
    uint32_t kept = 0, done_max = count_done_max(d->search);
    collect_candidates(d, n, rows);
    for (uint32_t i = 0; i < d->n_candidates && kept < n; i++) {
        const struct candidate *c = &d->candidates[i];
        bool complete = c->token == end;
        if (complete && d->n_done == done_max)
            continue;
        struct text *to = complete ? &d->done[d->n_done++] : &d->next[kept];
        copy_text(&d->texts[c->from], to);
        to->sum = c->sum;
        if (complete)
            continue;
        to->log_probs[to->n] = c->log_prob;
        to->tokens[to->n++] = c->token;
        d->from[kept] = c->from;
        d->tokens[kept++] = c->token;
    }
    struct text *texts = d->texts;
    d->texts = d->next;
    d->next = texts;
    d->n_beams = kept;
    return d->n_done >= done_max || kept == 0;
}

/* ---- Searching ---------------------------------------------------------- */
static ak_status search_texts(struct decoder *d, double *no_speech)
{
    const struct ak_speech_search *s = d->search;
    const struct ak_speech_tokens *t = s->rules->tokens;
    uint32_t n = count_texts(s);
    const float *last, *at, *first[AK_SPEECH_TEXTS_MAX];
    const float *const *rows = first;
    AK_TRY(d->model->begin(d->model->user, s->prompt, s->n_prompt, s->start, &last, &at, d->error));
    *no_speech = ak_speech_probability(at, t->n, t->no_speech);
    for (uint32_t i = 0; i < n; i++)
        first[i] = last;
    d->n_beams = n;
    for (uint32_t i = 0;; i++) {
        if (s->beams ? advance_beams(d, n, rows) : extend_texts(d, n, rows, i))
            return d->status;
        if (i + 1 == s->max_tokens || d->status != AKUNU_OK)
            return d->status;
        AK_TRY(d->model->step(d->model->user, d->n_beams, d->from, d->tokens, &rows, d->error));
    }
}

/* Texts that ended take part; if they are too few, those that did not, best first. */
static void complete_beams(struct decoder *d)
{
    uint32_t n = d->n_beams;
    bool taken[AK_SPEECH_TEXTS_MAX] = { false };
    while (d->n_done < count_texts(d->search)) {
        uint32_t best = n;
        for (uint32_t i = 0; i < n; i++) /* of equal ones the last, as numpy's reversed argsort */
            if (!taken[i] && (best == n || d->texts[i].sum >= d->texts[best].sum))
                best = i;
        if (best == n)
            return;
        taken[best] = true;
        copy_text(&d->texts[best], &d->done[d->n_done++]);
    }
}

/* A text's length without the end token. */
static uint32_t length(const struct decoder *d, const struct text *t)
{
    return t->n > 0 && t->tokens[t->n - 1] == d->search->rules->tokens->end ? t->n - 1 : t->n;
}

static const struct text *find_most_probable(const struct decoder *d, const struct text *texts,
                                             uint32_t n)
{
    const struct text *best = texts;
    double best_score = -INFINITY, penalty = (double)d->search->length_penalty;
    for (uint32_t i = 0; i < n; i++) {
        double tokens = (double)length(d, &texts[i]);
        double divisor = penalty < 0.0 ? tokens : ak_pow((5.0 + tokens) / 6.0, penalty);
        double score = (double)texts[i].sum / divisor;
        if (score > best_score) {
            best_score = score;
            best = &texts[i];
        }
    }
    return best;
}

/* ---- The call ----------------------------------------------------------- */
static bool alloc_texts(struct text **out, uint32_t n, uint32_t max_tokens)
{
    *out = ak_alloc(n, sizeof **out);
    for (uint32_t i = 0; *out && i < n; i++) {
        struct text *t = &(*out)[i];
        t->tokens = ak_alloc((size_t)max_tokens + 1, sizeof *t->tokens);
        t->log_probs = ak_alloc((size_t)max_tokens + 1, sizeof *t->log_probs);
        if (!t->tokens || !t->log_probs)
            return false;
    }
    return *out != NULL;
}

static void free_texts(struct text *texts, uint32_t n)
{
    for (uint32_t i = 0; texts && i < n; i++) {
        ak_free(texts[i].tokens);
        ak_free(texts[i].log_probs);
    }
    ak_free(texts);
}

static ak_status check_search(const struct ak_speech_search *s, struct ak_error *error)
{
    if (s->n_texts == 0 || s->n_texts > AK_SPEECH_TEXTS_MAX)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "%u texts at once; expected 1 to %d",
                       (unsigned)s->n_texts, AK_SPEECH_TEXTS_MAX);
    if (s->n_prompt == 0 || s->start >= s->n_prompt || s->max_tokens == 0)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "no prompt, or no room for a token");
    if (s->beams && !(s->patience > 0.0f && s->patience <= 16.0f && count_done_max(s) > 0))
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "patience is %g; expected more than 0, to 16",
                       (double)s->patience);
    return AKUNU_OK;
}

void ak_speech_text_free(struct ak_speech_text *text)
{
    ak_free(text->tokens);
    ak_free(text->probabilities);
    *text = (struct ak_speech_text){ 0 };
}

static ak_status decode_window(struct decoder *d, struct ak_speech_text *out)
{
    AK_TRY(search_texts(d, &out->no_speech));
    if (d->search->beams)
        complete_beams(d);
    const struct text *best = d->search->beams ?
                                  find_most_probable(d, d->done, d->n_done) :
                                  find_most_probable(d, d->texts, count_texts(d->search));
    out->n = length(d, best);
    out->tokens = ak_alloc(out->n, sizeof *out->tokens);
    out->probabilities = ak_alloc(out->n, sizeof *out->probabilities);
    if (!out->tokens || !out->probabilities)
        return ak_fail_memory(d->error, "a text", out->n * sizeof *out->tokens);
    for (size_t i = 0; i < out->n; i++) {
        out->tokens[i] = best->tokens[i];
        out->probabilities[i] = (float)ak_exp((double)best->log_probs[i]);
    }
    out->sum = (double)best->sum;
    out->mean_log_prob = out->sum / (double)(out->n + 1);
    return AKUNU_OK;
}

ak_status ak_speech_decode(const struct ak_speech_model *model,
                           const struct ak_speech_search *search, struct ak_speech_text *out,
                           struct ak_error *error)
{
    *out = (struct ak_speech_text){ 0 };
    AK_TRY(check_search(search, error));
    uint32_t n = count_texts(search), n_done = count_done_max(search);
    n_done = n_done > n ? n_done : n;
    struct decoder d = { .model = model, .search = search, .error = error };
    d.candidates = ak_alloc((size_t)n * (n + 1), sizeof *d.candidates);
    d.logits = ak_alloc((size_t)search->rules->tokens->n, sizeof *d.logits);
    d.from = ak_alloc(n, sizeof *d.from);
    d.tokens = ak_alloc(n, sizeof *d.tokens);
    bool has_memory = d.candidates && d.logits && d.from && d.tokens &&
                      alloc_texts(&d.texts, n, search->max_tokens) &&
                      alloc_texts(&d.next, n, search->max_tokens) &&
                      alloc_texts(&d.done, n_done, search->max_tokens);
    ak_status status = has_memory ? decode_window(&d, out) : ak_fail_memory(error, "a search", 0);
    if (status != AKUNU_OK)
        ak_speech_text_free(out);
    free_texts(d.texts, n);
    free_texts(d.next, n);
    free_texts(d.done, n_done);
    ak_free(d.candidates);
    ak_free(d.logits);
    ak_free(d.from);
    ak_free(d.tokens);
    return status;
}
