#include "generate/generate.h"

#include "base/system.h"
#include "generate/choice.h"
#include "generate/speculate.h"

/* One call. */
struct generation {
    const struct ak_request *request;
    struct ak_session *session;
    int32_t sequence;
    struct ak_choice choice;
    struct ak_draft draft;
    struct ak_speculation speculation;
    bool speculates;
    bool runs_ahead; /* tokens that a grammar forces may be run before they are chosen */
};

/* ---- Before the text ---------------------------------------------------- */
static ak_status find_draft(struct generation *g, struct ak_error *error)
{
    const struct ak_kv_sequence *found;
    g->draft = (struct ak_draft){ .session = g->request->draft,
                                  .sequence = g->request->generation->draft_sequence,
                                  .n_vocab = g->session->model->spec.config.vocab_size };
    AK_TRY(ak_draft_check(g->session, g->draft.session, error));
    return ak_session_find(g->draft.session, g->draft.sequence, &found, error);
}

/* Where speculation was not asked for, that it is not possible is no error. */
static ak_status begin_speculation(struct generation *g, const struct ak_kv_sequence *sequence,
                                   struct ak_error *error)
{
    const struct akunu_generation *asked = g->request->generation;
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
    ak_status possible = ak_speculation_is_possible(g->session, automatic ? NULL : error);
    if (possible != AKUNU_OK)
        return automatic ? AKUNU_OK : possible;
    AK_TRY(ak_speculation_begin(g->session, asked, g->request->draft ? &g->draft : NULL,
                                &g->speculation, error));
    ak_speculation_see(&g->speculation, sequence->tokens, sequence->length, false);
    ak_speculation_see(&g->speculation, g->request->ids, g->request->n_ids, false);
    g->speculates = true;
    return AKUNU_OK;
}

static ak_status begin(struct generation *g, struct ak_error *error)
{
    const struct ak_kv_sequence *sequence;
    AK_TRY(ak_session_find(g->session, g->sequence, &sequence, error));
    AK_TRY(ak_choice_begin(&g->choice, g->request->generation, error));
    if (g->choice.on_backend)
        AK_TRY(ak_session_prepare_sampled(g->session, error));
    ak_choice_see(&g->choice, sequence->tokens, sequence->length);
    ak_choice_see(&g->choice, g->request->ids, g->request->n_ids);
    g->runs_ahead =
        g->choice.constraint.matcher && ak_speculation_is_possible(g->session, NULL) == AKUNU_OK;
    return begin_speculation(g, sequence, error);
}

static ak_status prompt(struct generation *g, int32_t *first, struct ak_error *error)
{
    const struct ak_kv_sequence *sequence = ak_kv_sequence(&g->session->kv, g->sequence);
    uint32_t before = sequence->length;
    double started = ak_seconds();
    size_t last;
    ak_status status =
        ak_session_prefill(g->session, g->sequence, g->request->ids, g->request->n_ids,
                           g->request->cancel, g->request->user, &last, error);
    if (status == AKUNU_OK && g->speculates && g->speculation.draft)
        status = ak_draft_follow(&g->draft, g->speculation.text.tokens, g->speculation.text.n,
                                 g->request->cancel, g->request->user, error);
    if (status == AKUNU_OK && g->choice.limit > 0)
        status = ak_choice_choose(&g->choice, ak_session_logits(g->session, last), first, error);
    g->choice.result->n_prompt = sequence->length - before;
    g->choice.result->prompt_seconds = ak_seconds() - started;
    return status;
}

/* ---- The text ----------------------------------------------------------- */
static ak_status take(struct generation *g, int32_t token, struct ak_error *error)
{
    AK_TRY(ak_choice_take(&g->choice, token, error));
    if (g->speculates)
        ak_speculation_see(&g->speculation, &token, 1, true);
    return AKUNU_OK;
}

/* Guesses that the text, the context and the pool have room for. */
static uint32_t room_for_guesses(const struct generation *g)
{
    const struct ak_kv *kv = &g->session->kv;
    /* each pass gives a token beside them */
    uint64_t left = g->choice.limit - g->choice.result->n_generated - 1;
    uint32_t room = kv->context - ak_kv_sequence(kv, g->sequence)->length - 1;
    uint32_t most = left < room ? (uint32_t)left : room;
    most = most < AK_GUESS_MOST ? most : AK_GUESS_MOST;
    while (most > 0 && ak_kv_wanted(kv, g->sequence, most + 1) > kv->n_free)
        most--;
    return most;
}

/* Runs the last token and the guesses after it: chosen[i], where the backend draws, follows
 * the token and i guesses. */
static ak_status run(struct generation *g, const struct ak_guess *guess, int32_t *chosen,
                     struct ak_error *error)
{
    struct akunu_batch_token tokens[AK_FEW_TOKENS];
    for (uint32_t i = 0; i <= guess->n; i++)
        tokens[i] =
            (struct akunu_batch_token){ .token = i == 0 ? g->choice.token : guess->tokens[i - 1],
                                        .sequence = g->sequence,
                                        .logits = true };
    if (g->choice.on_backend)
        return ak_session_draw(g->session, tokens, guess->n + 1, g->choice.draw, chosen, error);
    return ak_session_decode(g->session, tokens, guess->n + 1, error);
}

/* What follows token i of the pass, which is at `position`. */
static ak_status choose(struct generation *g, uint32_t i, uint32_t position, const int32_t *chosen,
                        int32_t *token, struct ak_error *error)
{
    if (!g->choice.on_backend)
        return ak_choice_draw(&g->choice, ak_session_logits(g->session, i), position, token, error);
    *token = chosen[i];
    return *token >= 0 ? AKUNU_OK : ak_sampler_nothing_left(error);
}

/* Takes the token after the last one and, while guesses were right, the ones after them.
 * Those of the guesses that are not in the text leave the sequence again. */
static ak_status take_right_ones(struct generation *g, const struct ak_guess *guess,
                                 const int32_t *chosen, uint32_t length, uint32_t *n_right,
                                 struct ak_error *error)
{
    ak_status status = AKUNU_OK;
    *n_right = 0;
    for (uint32_t i = 0; status == AKUNU_OK && i <= guess->n && !g->choice.ended; i++) {
        int32_t token;
        status = choose(g, i, length++, chosen, &token, error);
        bool right = status == AKUNU_OK && i < guess->n && token == guess->tokens[i];
        if (status == AKUNU_OK)
            status = take(g, token, error);
        if (!right)
            break;
        ++*n_right;
    }
    ak_kv_rewind(&g->session->kv, g->sequence, length);
    return status;
}

static ak_status step(struct generation *g, struct ak_error *error)
{
    uint32_t length = ak_kv_sequence(&g->session->kv, g->sequence)->length, n_right;
    int32_t chosen[AK_FEW_TOKENS], guessed[AK_GUESS_MOST];
    struct ak_guess guess = { .n = 0 };
    bool forced = false;
    if (g->runs_ahead) {
        AK_TRY(ak_choice_forced(&g->choice, room_for_guesses(g), guessed, &guess.n, error));
        forced = guess.n > 0;
    }
    if (g->speculates && !forced)
        AK_TRY(ak_speculation_guess(&g->speculation, room_for_guesses(g), &guess, error));
    for (uint32_t i = 0; i < guess.n && !forced; i++) /* the text grows over them */
        guessed[i] = guess.tokens[i];
    guess.tokens = guessed;

    double started = ak_seconds();
    AK_TRY(run(g, &guess, chosen, error));
    double seconds = ak_seconds() - started;
    AK_TRY(take_right_ones(g, &guess, chosen, length, &n_right, error));
    if (forced)
        return AKUNU_OK;
    if (g->speculates)
        ak_speculation_learn(&g->speculation, &guess, n_right, seconds);
    g->choice.result->n_drafted += guess.n;
    g->choice.result->n_accepted += n_right;
    return AKUNU_OK;
}

/* From the first chosen token until something stops it: the text's end, the host, the
 * length, the context. */
static ak_status text(struct generation *g, int32_t first, struct ak_error *error)
{
    AK_TRY(take(g, first, error));
    while (!g->choice.ended) {
        uint32_t reserved = 0;
        ak_choice_check_room(&g->choice, &reserved);
        if (g->choice.ended)
            break;
        if (g->request->cancel && g->request->cancel(g->request->user))
            return ak_fail(error, AKUNU_ERROR_CANCELLED, "cancelled after %llu tokens",
                           (unsigned long long)g->choice.result->n_generated);
        AK_TRY(step(g, error));
    }
    return ak_choice_finish(&g->choice, error);
}

static ak_status generate(struct generation *g, struct ak_error *error)
{
    int32_t first = -1;
    AK_TRY(begin(g, error));
    AK_TRY(prompt(g, &first, error));
    if (g->choice.limit == 0) {
        g->choice.result->stop = AKUNU_STOP_LENGTH;
        return AKUNU_OK;
    }
    double started = ak_seconds();
    ak_status status = text(g, first, error);
    g->choice.result->generate_seconds = ak_seconds() - started;
    return status;
}

ak_status ak_generate(const struct ak_request *request, struct akunu_result *result,
                      struct ak_error *error)
{
    struct generation g = {
        .request = request,
        .session = request->session,
        .sequence = request->sequence,
        .choice = { .session = request->session,
                    .sequence = request->sequence,
                    .on_piece = request->on_piece,
                    .user = request->user,
                    .logprobs_user = request->user,
                    .result = result },
    };
    *result = (struct akunu_result){ .size = sizeof *result, .stop = AKUNU_STOP_CALLBACK };
    ak_status status = generate(&g, error);
    ak_speculation_clear(&g.speculation);
    ak_choice_clear(&g.choice);
    return status;
}
