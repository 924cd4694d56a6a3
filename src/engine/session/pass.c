/* One pass: checks the caller's tokens, orders them for the backend, reserves pages, runs the
 * table. Nothing changes before everything is known to fit. Also the pass cost model. */
#include <string.h>

#include "engine/session/session.h"

/* Whether the window that the text attends to is still there. */
static bool has_window(const struct ak_session *s, int32_t sequence)
{
    const struct ak_session_kv_sequence *window =
        ak_session_kv_sequence(&s->kv, (int32_t)s->cross_sequences[sequence]);
    return window && window->length == s->cross_lengths[sequence];
}

static ak_status check_token(const struct ak_session *s, size_t i, int32_t token, int32_t sequence,
                             struct ak_error *error)
{
    uint32_t n_vocab = s->model->spec.config.vocab_size;
    if (token < 0 || (uint32_t)token >= n_vocab)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "token %zu is %d, and the vocabulary has %u", i,
                       (int)token, (unsigned)n_vocab);
    if (!ak_session_kv_sequence(&s->kv, sequence))
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "token %zu belongs to sequence %d, which does not exist", i, (int)sequence);
    if (s->cross_sequences && !has_window(s, sequence))
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "sequence %d attends to no window: encode one, and let it attend",
                       (int)sequence);
    return AKUNU_OK;
}

/* Counts each sequence's tokens and lists the sequences. *n_order is set on failure too. */
static ak_status count_tokens(struct ak_session *s, const struct akunu_batch_token *tokens,
                              size_t n, uint32_t *n_order, struct ak_error *error)
{
    *n_order = 0;
    for (size_t i = 0; i < n; i++) {
        AK_TRY(check_token(s, i, tokens[i].token, tokens[i].sequence, error));
        uint32_t sequence = (uint32_t)tokens[i].sequence;
        if (s->counts[sequence]++ == 0)
            s->order[(*n_order)++] = sequence;
    }
    return AKUNU_OK;
}

static ak_status check_capacity(const struct ak_session *s, uint32_t n_order, size_t n,
                                struct ak_error *error)
{
    uint64_t wanted = 0, used = 0;
    for (uint32_t i = 0; i < n_order; i++) {
        uint32_t sequence = s->order[i], length = s->kv.sequences[sequence].length;
        if (s->counts[sequence] > s->options.context - length)
            return ak_fail(error, AKUNU_ERROR_CONTEXT,
                           "the context is full: the sequence has %u tokens, %u more were given, "
                           "and the context holds %u",
                           (unsigned)length, (unsigned)s->counts[sequence],
                           (unsigned)s->options.context);
        wanted += ak_session_kv_count_new_pages(&s->kv, (int32_t)sequence, s->counts[sequence]);
    }
    if (wanted <= s->kv.n_free)
        return AKUNU_OK;
    for (uint32_t i = 0; i < s->kv.n_sequences; i++)
        used += s->kv.sequences[i].used ? s->kv.sequences[i].length : 0;
    return ak_fail(error, AKUNU_ERROR_CONTEXT,
                   "the context is full: all sequences have %llu tokens, %zu more were given, and "
                   "the context holds %u",
                   (unsigned long long)used, n, (unsigned)s->options.context);
}

/* Groups the tokens by sequence, positions ascending. Logits rows follow that order. Returns their
 * number. */
static uint32_t arrange_tokens(struct ak_session *s, const struct akunu_batch_token *tokens,
                               size_t n, uint32_t n_order)
{
    uint32_t at = 0, n_logits = 0;
    for (uint32_t i = 0; i < n_order; i++) {
        s->next_rows[s->order[i]] = at;
        at += s->counts[s->order[i]];
    }
    for (size_t i = 0; i < n; i++) {
        uint32_t row = s->next_rows[tokens[i].sequence]++;
        s->tokens[row] = tokens[i].token;
        s->sequences[row] = (uint32_t)tokens[i].sequence;
        s->caller_index[row] = (uint32_t)i;
    }
    at = 0;
    for (uint32_t i = 0; i < n_order; i++) {
        uint32_t position = s->kv.sequences[s->order[i]].length;
        for (uint32_t j = 0; j < s->counts[s->order[i]]; j++)
            s->positions[at++] = position++;
    }
    for (uint32_t row = 0; row < n; row++) {
        uint32_t i = s->caller_index[row];
        s->caller_rows[i] = tokens[i].logits ? n_logits : AK_OP_NONE;
        if (tokens[i].logits)
            s->logit_rows[n_logits++] = row;
    }
    return n_logits;
}

/* Recomputes a sequence's recurrent state by running all its tokens again. Its pages are rewritten
 * with identical bits. */
static ak_status restore_state(struct ak_session *s, uint32_t sequence, struct ak_error *error)
{
    struct ak_session_kv_sequence *target = &s->kv.sequences[sequence];
    for (uint32_t first = 0, n; first < target->length; first += n) {
        n = target->length - first < s->batch ? target->length - first : s->batch;
        for (uint32_t i = 0; i < n; i++) {
            s->tokens[i] = target->tokens[first + i];
            s->positions[i] = first + i;
            s->sequences[i] = sequence;
        }
        struct ak_batch batch = { .n = n,
                                  .tokens = s->tokens,
                                  .positions = s->positions,
                                  .sequences = s->sequences,
                                  .pages = s->kv.tables };
        s->backend->ops->run(s->logits, &batch);
        AK_TRY(s->backend->ops->sync(s->logits, error));
        s->n_passes++;
        s->n_tokens += n;
    }
    target->state_length = target->length;
    return AKUNU_OK;
}

/* After a failure of a device: restores the sequences' lengths and drops the logits. */
static void undo_pass(struct ak_session *s, uint32_t n_order)
{
    for (uint32_t i = 0; i < n_order; i++)
        ak_session_kv_rewind(&s->kv, (int32_t)s->order[i],
                             s->kv.sequences[s->order[i]].length - s->counts[s->order[i]]);
    s->n_last = 0;
}

static ak_status run_tokens(struct ak_session *s, struct ak_backend_table *prepared,
                            const struct akunu_batch_token *tokens, size_t n, uint32_t n_order,
                            struct ak_gumbel_params gumbel, struct ak_error *error)
{
    AK_TRY(check_capacity(s, n_order, n, error));
    for (uint32_t i = 0; i < n_order; i++)
        if (ak_session_kv_state_is_stale(&s->kv, (int32_t)s->order[i]))
            AK_TRY(restore_state(s, s->order[i], error));
    struct ak_batch batch = {
        .n = (uint32_t)n,
        .tokens = s->tokens,
        .positions = s->positions,
        .sequences = s->sequences,
        .type_starts = s->type_starts,
        .pages = s->kv.tables,
        .cross_sequences = s->cross_sequences,
        .cross_lengths = s->cross_lengths,
        .scores = s->scores,
        .n_logits = arrange_tokens(s, tokens, n, n_order),
        .logit_rows = s->logit_rows,
        .n_best = s->n_best,
        .gumbel = gumbel,
    };
    uint32_t at = 0;
    for (uint32_t i = 0; i < n_order; i++) {
        ak_session_kv_extend(&s->kv, (int32_t)s->order[i], s->tokens + at, s->counts[s->order[i]]);
        at += s->counts[s->order[i]];
    }
    s->backend->ops->run(prepared, &batch);
    s->n_passes++;
    s->n_tokens += n;
    ak_status status = s->backend->ops->sync(prepared, error);
    if (status != AKUNU_OK)
        undo_pass(s, n_order);
    return status;
}

ak_status ak_session_run_pass(struct ak_session *s, struct ak_backend_table *prepared,
                              const struct akunu_batch_token *tokens, size_t n,
                              struct ak_gumbel_params gumbel, struct ak_error *error)
{
    uint32_t n_order;
    ak_status status = count_tokens(s, tokens, n, &n_order, error);
    if (status == AKUNU_OK)
        status = run_tokens(s, prepared, tokens, n, n_order, gumbel, error);
    for (uint32_t i = 0; i < n_order; i++)
        s->counts[s->order[i]] = 0;
    return status;
}

ak_status ak_session_needs_logits(const struct ak_session *s, struct ak_error *error)
{
    const struct ak_text *architecture = &s->model->spec.config.architecture;
    if (s->model->binding.lacks_output)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "the model makes embeddings (akunu_session_embed), and no text: "
                       "tie_word_embeddings is false, and lm_head.weight is missing");
    if (!s->model->spec.descriptor.encoder)
        return AKUNU_OK;
    return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                   "the architecture \"%.*s\" is an encoder: it makes embeddings "
                   "(akunu_session_embed), and no text",
                   (int)(architecture->n < 64 ? architecture->n : 64), architecture->bytes);
}

ak_status ak_session_needs_text(const struct ak_session *s, struct ak_error *error)
{
    const struct ak_text *architecture = &s->model->spec.config.architecture;
    if (!s->cross_sequences)
        return ak_session_needs_logits(s, error);
    return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                   "the architecture \"%.*s\" writes down speech (akunu_session_encode), and "
                   "continues no text",
                   (int)(architecture->n < 64 ? architecture->n : 64), architecture->bytes);
}

ak_status ak_session_decode(struct ak_session *s, const struct akunu_batch_token *tokens, size_t n,
                            struct ak_error *error)
{
    if (n == 0 || n > s->batch)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "%zu tokens were given for one pass, which takes 1 to %u", n,
                       (unsigned)s->batch);
    AK_TRY(ak_session_needs_logits(s, error));
    AK_TRY(ak_session_run_pass(s, s->logits, tokens, n, (struct ak_gumbel_params){ 0 }, error));
    s->n_last = (uint32_t)n;
    return AKUNU_OK;
}

ak_status ak_session_decode_scores(struct ak_session *s, const struct akunu_batch_token *tokens,
                                   size_t n, const struct ak_batch_scores *scores,
                                   struct ak_error *error)
{
    s->scores = scores;
    ak_status status = ak_session_decode(s, tokens, n, error);
    s->scores = NULL;
    return status;
}

void ak_session_want_best(struct ak_session *s, uint32_t n_best)
{
    if (s->n_best != n_best)
        s->n_last = 0;
    s->n_best = n_best;
}

const float *ak_session_logits(const struct ak_session *s, size_t i)
{
    if (i >= s->n_last || s->caller_rows[i] == AK_OP_NONE)
        return NULL;
    return s->backend->ops->logits(s->logits, s->caller_rows[i]);
}

/* Checks the whole prompt, so that a bad id or too long a prompt fails before the first pass. */
static ak_status check_prompt(const struct ak_session *s, int32_t sequence, const int32_t *ids,
                              size_t n, struct ak_error *error)
{
    const struct ak_session_kv_sequence *found;
    if (n == 0)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "the prompt has no tokens");
    AK_TRY(ak_session_find(s, sequence, &found, error));
    for (size_t i = 0; i < n; i++)
        AK_TRY(check_token(s, i, ids[i], sequence, error));
    if (n > s->options.context - found->length ||
        ak_session_kv_count_new_pages(&s->kv, sequence, (uint32_t)n) > s->kv.n_free)
        return ak_fail(error, AKUNU_ERROR_CONTEXT,
                       "the prompt is too long: it has %zu tokens, the sequence has %u, and the "
                       "context holds %u",
                       n, (unsigned)found->length, (unsigned)s->options.context);
    return AKUNU_OK;
}

ak_status ak_session_prefill(struct ak_session *s, int32_t sequence, const int32_t *ids, size_t n,
                             akunu_cancel_fn *cancel, void *user, size_t *last,
                             struct ak_error *error)
{
    AK_TRY(ak_session_needs_logits(s, error));
    AK_TRY(check_prompt(s, sequence, ids, n, error));
    size_t n_chunk = 0;
    for (size_t first = 0; first < n; first += n_chunk) {
        if (cancel && cancel(user))
            return ak_fail(error, AKUNU_ERROR_CANCELLED,
                           "cancelled after %zu of %zu tokens of the prompt", first, n);
        n_chunk = n - first < s->batch ? n - first : s->batch;
        for (size_t i = 0; i < n_chunk; i++)
            s->chunk[i] = (struct akunu_batch_token){ .token = ids[first + i],
                                                      .sequence = sequence,
                                                      .logits = first + i + 1 == n };
        AK_TRY(ak_session_decode(s, s->chunk, n_chunk, error));
    }
    *last = n_chunk - 1;
    if (!ak_session_evicts(s, s->kv.sequences[sequence].length))
        return AKUNU_OK;
    AK_TRY(ak_session_evict(s, sequence, s->kv_keep, s->kv_choice, error));
    *last = s->n_last - 1;
    return AKUNU_OK;
}

ak_status ak_session_sample(struct ak_session *s, const struct akunu_batch_token *tokens, size_t n,
                            struct ak_gumbel_params gumbel, int32_t *next, struct ak_error *error)
{
    AK_TRY(ak_session_run_pass(s, s->sampled, tokens, n, gumbel, error));
    s->n_last = 0; /* the last pass was not one of the logits table */
    memcpy(next, s->backend->ops->sampled(s->sampled), n * sizeof *next);
    return AKUNU_OK;
}

/* ---- Pass cost model ---------------------------------------------------- */
/* Other programs make passes slower, and nothing makes them faster. So a shorter time counts five
 * times as much as a longer one, and no time counts as more than twice the estimate. */
void ak_session_cost_update(struct ak_session_cost_model *c, uint32_t n, double seconds)
{
    double before = ak_session_cost_estimate(c, n), *own = &c->seconds[n];
    if (before <= 0.0) {
        *own = seconds;
        return;
    }
    double first = *own > 0.0 ? 1.0 : 8.0; /* an estimate weighs less than a measurement */
    double bounded = seconds < 2.0 * before ? seconds : 2.0 * before;
    *own = before + (bounded < before ? 0.25 : 0.05 * first) * (bounded - before);
}

/* Relative cost of a pass of n tokens that was not measured. */
static double relative_cost(const struct ak_session_cost_model *c, uint32_t n)
{
    return 1.0 + c->token_price * (double)(n - 1);
}

/* Interpolates linearly between measured sizes; beyond them scales by the price of a token. */
double ak_session_cost_estimate(const struct ak_session_cost_model *c, uint32_t n)
{
    uint32_t below = n, above = n;
    while (below > 0 && c->seconds[below] <= 0.0)
        below--;
    while (above <= AK_SKINNY_MAX && c->seconds[above] <= 0.0)
        above++;
    if (below == n)
        return c->seconds[n];
    if (below > 0 && above <= AK_SKINNY_MAX)
        return c->seconds[below] + (c->seconds[above] - c->seconds[below]) * (double)(n - below) /
                                       (double)(above - below);
    if (below > 0)
        return c->seconds[below] * relative_cost(c, n) / relative_cost(c, below);
    return above <= AK_SKINNY_MAX ?
               c->seconds[above] * relative_cost(c, n) / relative_cost(c, above) :
               0.0;
}
