#include "generate/draft.h"

#include <math.h>
#include <string.h>

#include "base/math.h"
#include "base/system.h"

enum { TEXT_BYTES = 64 };

/* A token's bytes; those beyond the room count by their number alone. */
static size_t text_of(const struct ak_tokenizer *t, int32_t token, char text[TEXT_BYTES])
{
    size_t n = 0;
    if (ak_tok_decode(t, &token, 1, AKUNU_CONTINUE, text, TEXT_BYTES, &n, NULL) != AKUNU_OK)
        return 0;
    return n;
}

static ak_status differ(const char *target, size_t n_target, const char *draft, size_t n_draft,
                        size_t token, struct ak_error *error)
{
    return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                   "the draft model's vocabulary differs: token %zu is \"%.*s\", and in the model "
                   "it is \"%.*s\"",
                   token, (int)(n_draft < 32 ? n_draft : 32), draft,
                   (int)(n_target < 32 ? n_target : 32), target);
}

/* One may have more tokens than the other: rows are often padded, and never chosen. */
static ak_status compare(const struct ak_tokenizer *target, const struct ak_tokenizer *draft,
                         struct ak_error *error)
{
    size_t n = ak_tok_n_tokens(target), n_draft = ak_tok_n_tokens(draft);
    n = n < n_draft ? n : n_draft;
    for (size_t i = 0; i < n; i++) {
        char a[TEXT_BYTES] = "", b[TEXT_BYTES] = "";
        size_t n_a = text_of(target, (int32_t)i, a), n_b = text_of(draft, (int32_t)i, b);
        if (n_a != n_b || memcmp(a, b, n_a < TEXT_BYTES ? n_a : TEXT_BYTES) != 0)
            return differ(a, n_a, b, n_b, i, error);
        if (ak_tok_is_end(target, (int32_t)i) != ak_tok_is_end(draft, (int32_t)i))
            return ak_fail(
                error, AKUNU_ERROR_ARGUMENT,
                "the draft model's vocabulary differs: token %zu ends a text in one model alone",
                i);
    }
    return AKUNU_OK;
}

ak_status ak_draft_check(const struct ak_session *session, const struct ak_session *draft,
                         struct ak_error *error)
{
    const struct ak_tokenizer *own = session->model->tokenizer, *other = draft->model->tokenizer;
    AK_TRY(ak_session_needs_logits(draft, error));
    if (draft == session)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "the draft model's session is the one that generates");
    if (draft->kv.shape.state_elems > 0)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "the draft model keeps a running state, which cannot go back to where a "
                       "guess went wrong");
    if (!own != !other)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "the draft model's vocabulary differs: %s has none",
                       own ? "it" : "the model");
    if (own)
        return compare(own, other, error);
    uint32_t n = session->model->spec.config.vocab_size,
             n_draft = draft->model->spec.config.vocab_size;
    if (n != n_draft)
        return ak_fail(
            error, AKUNU_ERROR_ARGUMENT,
            "the draft model's vocabulary differs: it has %u tokens, and the model has %u",
            (unsigned)n_draft, (unsigned)n);
    return AKUNU_OK;
}

/* Tokens of the smaller model's sequence that the text begins with; the last of the text
 * is never one, since what comes after it is wanted. */
static uint32_t agreed(const struct ak_draft *d, const int32_t *ids, uint32_t n)
{
    const struct ak_kv_sequence *own = ak_kv_sequence(&d->session->kv, d->sequence);
    uint32_t most = own->length < n ? own->length : n - 1, same = 0;
    while (same < most && own->tokens[same] == ids[same])
        same++;
    return same;
}

uint32_t ak_draft_behind(const struct ak_draft *d, const int32_t *ids, uint32_t n)
{
    return n - agreed(d, ids, n);
}

/* Goes back to what both texts begin with; whether the rest can follow. */
static bool make_room(struct ak_draft *d, const int32_t *ids, uint32_t same, uint32_t n)
{
    struct ak_kv *kv = &d->session->kv;
    ak_kv_rewind(kv, d->sequence, same);
    for (uint32_t i = same; i < n; i++)
        if ((uint32_t)ids[i] >= d->session->model->spec.config.vocab_size)
            return false;
    return n <= kv->context && ak_kv_wanted(kv, d->sequence, n - same) <= kv->n_free;
}

ak_status ak_draft_follow(struct ak_draft *d, const int32_t *ids, uint32_t n,
                          akunu_cancel_fn *cancel, void *user, struct ak_error *error)
{
    uint32_t same = n > 1 ? agreed(d, ids, n) : 0;
    size_t last;
    if (n <= 1 || same >= n - 1 || !make_room(d, ids, same, n - 1))
        return AKUNU_OK;
    return ak_session_prefill(d->session, d->sequence, ids + same, n - 1 - same, cancel, user,
                              &last, error);
}

/* Probabilities below exp(-16) of the best one add nothing that would be noticed. */
static float probability_of_best(const float *logits, uint32_t n, uint32_t best)
{
    float sum = 0.0f, least = logits[best] - 16.0f;
    for (uint32_t i = 0; i < n; i++)
        if (logits[i] > least)
            sum += ak_expf(logits[i] - logits[best]);
    return 1.0f / sum;
}

ak_status ak_draft_next(struct ak_draft *d, const int32_t *ids, uint32_t n, int32_t *token,
                        float *probability, struct ak_error *error)
{
    struct ak_session *s = d->session;
    uint32_t same = agreed(d, ids, n), behind = n - same, best = 0,
             n_vocab = s->model->spec.config.vocab_size;
    double started = ak_seconds();
    size_t last;
    *token = -1;
    *probability = 0.0f;
    if (!make_room(d, ids, same, n))
        return AKUNU_OK;
    AK_TRY(ak_session_prefill(s, d->sequence, ids + same, behind, NULL, NULL, &last, error));
    const float *logits = ak_session_logits(s, last);
    for (uint32_t i = 1; i < n_vocab; i++)
        best = logits[i] > logits[best] ? i : best;
    double seconds = ak_seconds() - started;
    if (behind <= AK_FEW_TOKENS)
        ak_costs_learn(&s->costs, behind, seconds);
    d->seconds += seconds;
    if (!(logits[best] > -INFINITY) ||
        best >= d->n_vocab) /* not one is a number, or it is padding */
        return AKUNU_OK;
    *token = (int32_t)best;
    *probability = probability_of_best(logits, n_vocab, best);
    return AKUNU_OK;
}
