/* Generates one text: runs the prompt, then steps of one token plus drafted tokens. Drafts come
 * from speculation or from a grammar with only one continuation; the accepted ones are appended. */
#include "engine/generate/generate.h"

#include "base/system.h"
#include "engine/generate/completion.h"
#include "engine/generate/speculate.h"

/* One call of ak_gen_run. */
struct generation {
    const struct ak_gen_request *request;
    struct ak_session *session;
    int32_t sequence;
    struct ak_gen_completion completion;
    struct ak_draft_model draft;
    struct ak_gen_speculation speculation;
    bool speculates;
    bool drafts_forced; /* tokens forced by the grammar may run as drafts */
};

/* ---- Prompt ------------------------------------------------------------- */
static ak_status find_draft(struct generation *g, struct ak_error *error)
{
    const struct ak_session_kv_sequence *found;
    g->draft = (struct ak_draft_model){ .session = g->request->draft,
                                        .sequence = g->request->generation->draft_sequence,
                                        .n_vocab = g->session->model->spec.config.vocab_size };
    AK_TRY(ak_draft_model_check(g->session, g->draft.session, error));
    return ak_session_find(g->draft.session, g->draft.sequence, &found, error);
}

/* Starts speculation. With AKUNU_SPECULATION_AUTO and no draft model it is skipped if
 * impossible. */
static ak_status begin_speculation(struct generation *g,
                                   const struct ak_session_kv_sequence *sequence,
                                   struct ak_error *error)
{
    const struct akunu_generation_params *asked = g->request->generation;
    bool automatic = asked->speculation == AKUNU_SPECULATION_AUTO && !g->request->draft;
    if (asked->speculation == AKUNU_SPECULATION_NONE)
        return AKUNU_OK;
    if ((unsigned)asked->speculation > AKUNU_SPECULATION_DRAFT)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "speculation is %d, which is none of the kinds that there are",
                       (int)asked->speculation);
    if (asked->speculation == AKUNU_SPECULATION_DRAFT && !g->request->draft)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "speculation is by a draft model, and no draft session is given");
    if (g->request->draft)
        AK_TRY(find_draft(g, error));
    ak_status possible = ak_gen_speculation_check(g->session, automatic ? NULL : error);
    if (possible != AKUNU_OK)
        return automatic ? AKUNU_OK : possible;
    AK_TRY(ak_gen_speculation_begin(g->session, asked, g->request->draft ? &g->draft : NULL,
                                    &g->speculation, error));
    ak_gen_speculation_add_tokens(&g->speculation, sequence->tokens, sequence->length, false);
    ak_gen_speculation_add_tokens(&g->speculation, g->request->ids, g->request->n_ids, false);
    g->speculates = true;
    return AKUNU_OK;
}

static ak_status begin_generation(struct generation *g, struct ak_error *error)
{
    const struct ak_session_kv_sequence *sequence;
    AK_TRY(ak_session_find(g->session, g->sequence, &sequence, error));
    AK_TRY(ak_gen_completion_begin(&g->completion, g->request->generation, error));
    if (g->completion.samples_on_backend)
        AK_TRY(ak_session_prepare_sampled(g->session, error));
    ak_gen_completion_add_context(&g->completion, sequence->tokens, sequence->length);
    ak_gen_completion_add_context(&g->completion, g->request->ids, g->request->n_ids);
    g->drafts_forced =
        g->completion.constraint.matcher && ak_gen_speculation_check(g->session, NULL) == AKUNU_OK;
    return begin_speculation(g, sequence, error);
}

static ak_status run_prompt(struct generation *g, int32_t *first, struct ak_error *error)
{
    const struct akunu_generation_params *asked = g->request->generation;
    const struct ak_session_kv_sequence *sequence =
        ak_session_kv_sequence(&g->session->kv, g->sequence);
    uint32_t before = sequence->length;
    double started = ak_seconds();
    size_t last;
    ak_status status =
        ak_session_prefill(g->session, g->sequence, g->request->ids, g->request->n_ids,
                           asked->cancel, asked->user, &last, error);
    if (status == AKUNU_OK && g->speculates && g->speculation.draft)
        status = ak_draft_model_prefill(&g->draft, g->speculation.lookup.tokens,
                                        g->speculation.lookup.n, asked->cancel, asked->user, error);
    if (status == AKUNU_OK && g->completion.limit > 0)
        status = ak_gen_completion_sample(&g->completion, ak_session_logits(g->session, last),
                                          first, error);
    g->completion.result->n_prompt = sequence->length - before;
    g->completion.result->prompt_seconds = ak_seconds() - started;
    return status;
}

/* ---- Steps -------------------------------------------------------------- */
static ak_status append_token(struct generation *g, int32_t token, struct ak_error *error)
{
    AK_TRY(ak_gen_completion_append(&g->completion, token, error));
    if (g->speculates)
        ak_gen_speculation_add_tokens(&g->speculation, &token, 1, true);
    return AKUNU_OK;
}

/* Most draft tokens that fit in the completion, the context and the pool. */
static uint32_t count_draft_max(const struct generation *g)
{
    const struct ak_session_kv *kv = &g->session->kv;
    /* each pass gives one token besides the drafted ones */
    uint64_t left = g->completion.limit - g->completion.result->n_generated - 1;
    uint32_t capacity = kv->context - ak_session_kv_sequence(kv, g->sequence)->length - 1;
    uint32_t n_max = left < capacity ? (uint32_t)left : capacity;
    n_max = n_max < AK_GEN_DRAFT_MAX ? n_max : AK_GEN_DRAFT_MAX;
    while (n_max > 0 && ak_session_kv_count_new_pages(kv, g->sequence, n_max + 1) > kv->n_free)
        n_max--;
    return n_max;
}

/* Runs the last token and the draft after it. If the backend samples, sampled[i] is the token after
 * the first i draft tokens. */
static ak_status run_draft(struct generation *g, const struct ak_gen_draft *draft, int32_t *sampled,
                           struct ak_error *error)
{
    struct akunu_batch_token tokens[AK_SKINNY_MAX];
    for (uint32_t i = 0; i <= draft->n; i++)
        tokens[i] = (struct akunu_batch_token){ .token = i == 0 ? g->completion.token :
                                                                  draft->tokens[i - 1],
                                                .sequence = g->sequence,
                                                .logits = true };
    if (g->completion.samples_on_backend)
        return ak_session_sample(g->session, tokens, draft->n + 1, g->completion.gumbel, sampled,
                                 error);
    return ak_session_decode(g->session, tokens, draft->n + 1, error);
}

/* Token after token i of the pass, which is at `position`. */
static ak_status sample_token(struct generation *g, uint32_t i, uint32_t position,
                              const int32_t *sampled, int32_t *token, struct ak_error *error)
{
    if (!g->completion.samples_on_backend)
        return ak_gen_completion_sample_at(&g->completion, ak_session_logits(g->session, i),
                                           position, token, error);
    AK_TRY(ak_gen_completion_find_closing(&g->completion, token, error));
    if (*token >= 0)
        return AKUNU_OK;
    *token = sampled[i];
    return *token >= 0 ? AKUNU_OK : ak_sample_fail_empty(error);
}

/* Appends the sampled token and, while the draft agrees, the ones after it. Rewinds the rest of the
 * draft. */
static ak_status accept_draft(struct generation *g, const struct ak_gen_draft *draft,
                              const int32_t *sampled, uint32_t length, uint32_t *n_accepted,
                              struct ak_error *error)
{
    ak_status status = AKUNU_OK;
    *n_accepted = 0;
    for (uint32_t i = 0; status == AKUNU_OK && i <= draft->n && !g->completion.ended; i++) {
        int32_t token;
        status = sample_token(g, i, length++, sampled, &token, error);
        bool accepted = status == AKUNU_OK && i < draft->n && token == draft->tokens[i];
        if (status == AKUNU_OK)
            status = append_token(g, token, error);
        if (!accepted)
            break;
        ++*n_accepted;
    }
    ak_session_kv_rewind(&g->session->kv, g->sequence, length);
    return status;
}

static ak_status run_step(struct generation *g, struct ak_error *error)
{
    uint32_t length = ak_session_kv_sequence(&g->session->kv, g->sequence)->length, n_accepted;
    int32_t sampled[AK_SKINNY_MAX], draft_tokens[AK_GEN_DRAFT_MAX];
    struct ak_gen_draft draft = { .n = 0 };
    bool forced = false;
    if (g->drafts_forced) {
        AK_TRY(ak_gen_completion_find_forced(&g->completion, count_draft_max(g), draft_tokens,
                                             &draft.n, error));
        forced = draft.n > 0;
    }
    if (g->speculates && !forced)
        AK_TRY(ak_gen_speculation_draft(&g->speculation, count_draft_max(g), &draft, error));
    for (uint32_t i = 0; i < draft.n && !forced;
         i++) /* the lookup's buffer is overwritten as the text grows */
        draft_tokens[i] = draft.tokens[i];
    draft.tokens = draft_tokens;

    double started = ak_seconds();
    AK_TRY(run_draft(g, &draft, sampled, error));
    double seconds = ak_seconds() - started;
    AK_TRY(accept_draft(g, &draft, sampled, length, &n_accepted, error));
    if (forced)
        return AKUNU_OK;
    if (g->speculates)
        ak_gen_speculation_update(&g->speculation, &draft, n_accepted, seconds);
    g->completion.result->n_drafted += draft.n;
    g->completion.result->n_accepted += n_accepted;
    return AKUNU_OK;
}

/* From the first sampled token until the end of the text, the host, the length or the context stops
 * it. */
static ak_status generate_text(struct generation *g, int32_t first, struct ak_error *error)
{
    const struct akunu_generation_params *asked = g->request->generation;
    AK_TRY(append_token(g, first, error));
    while (!g->completion.ended) {
        uint32_t reserved = 0;
        ak_gen_completion_reserve_pages(&g->completion, &reserved);
        if (g->completion.ended)
            break;
        if (asked->cancel && asked->cancel(asked->user))
            return ak_fail(error, AKUNU_ERROR_CANCELLED, "cancelled after %llu tokens",
                           (unsigned long long)g->completion.result->n_generated);
        AK_TRY(run_step(g, error));
    }
    return ak_gen_completion_finish(&g->completion, error);
}

static ak_status generate_tokens(struct generation *g, struct ak_error *error)
{
    int32_t first = -1;
    AK_TRY(begin_generation(g, error));
    ak_session_want_best(g->session, ak_gen_completion_n_best(&g->completion));
    AK_TRY(run_prompt(g, &first, error));
    if (g->completion.limit == 0) {
        g->completion.result->stop = AKUNU_STOP_LENGTH;
        return AKUNU_OK;
    }
    double started = ak_seconds();
    ak_status status = generate_text(g, first, error);
    g->completion.result->generate_seconds = ak_seconds() - started;
    return status;
}

ak_status ak_gen_run(const struct ak_gen_request *request, struct akunu_result *result,
                     struct ak_error *error)
{
    struct generation g = {
        .request = request,
        .session = request->session,
        .sequence = request->sequence,
        .completion = { .session = request->session,
                        .sequence = request->sequence,
                        .result = result },
    };
    *result = (struct akunu_result){ .size = sizeof *result, .stop = AKUNU_STOP_CALLBACK };
    ak_status status = generate_tokens(&g, error);
    ak_session_want_best(g.session, 0);
    ak_gen_speculation_clear(&g.speculation);
    ak_gen_completion_clear(&g.completion);
    return status;
}
