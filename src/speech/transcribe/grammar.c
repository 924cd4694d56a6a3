/* Reads a text's tokens with the matcher of a grammar. */
#include "speech/transcribe/grammar.h"

#include "base/math.h"

/* Reads the text from its beginning, with transitions that are cached. A text that has left the
 * grammar, which a penalty permits, may go on in any way. */
static ak_status find_allowed(void *user, const int32_t *written, size_t n,
                              struct ak_speech_allowed *out, struct ak_error *error)
{
    const struct ak_transcribe_grammar *g = user;
    struct ak_grammar_matcher *m = g->inner.matcher;
    bool allowed = true;
    *out = (struct ak_speech_allowed){ .end = true, .more = true, .penalty = g->penalty };
    AK_TRY(ak_grammar_matcher_reset(m, error));
    for (size_t i = 0; i < n && allowed; i++)
        if (written[i] < g->end)
            AK_TRY(ak_grammar_matcher_accept_token(m, written[i], &allowed, error));
    if (!allowed)
        return AKUNU_OK;
    out->end = ak_grammar_matcher_is_accepting(m);
    out->more = !ak_grammar_matcher_must_end(m);
    return ak_grammar_matcher_get_mask(m, &out->tokens, error);
}

/* May a text begin with a space? */
static ak_status takes_space(struct ak_grammar_matcher *m, bool *out, struct ak_error *error)
{
    size_t taken;
    AK_TRY(ak_grammar_matcher_accept_bytes(m, " ", 1, &taken, error));
    *out = taken == 1;
    return AKUNU_OK;
}

ak_status ak_transcribe_grammar_open(struct ak_model *model, struct ak_grammar *grammar,
                                     float penalty, int32_t end, struct ak_transcribe_grammar *out,
                                     struct ak_error *error)
{
    struct ak_grammar *spaced;
    bool has_space;
    *out = (struct ak_transcribe_grammar){ .end = end, .penalty = penalty };
    out->constraint = (struct ak_speech_constraint){ .user = out, .find = find_allowed };
    if (!(penalty > 0.0f))
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "the penalty of a grammar is %g; expected more than 0", (double)penalty);
    AK_TRY(ak_session_constraint_begin(model, grammar, &out->inner, error));
    AK_TRY(takes_space(out->inner.matcher, &has_space, error));
    if (has_space)
        return AKUNU_OK;
    ak_session_constraint_end(&out->inner);
    AK_TRY(ak_grammar_allow_space(grammar, &spaced, error));
    ak_status status = ak_session_constraint_begin(model, spaced, &out->inner, error);
    ak_grammar_free(spaced);
    return status;
}

void ak_transcribe_grammar_close(struct ak_transcribe_grammar *g)
{
    ak_session_constraint_end(&g->inner);
}
