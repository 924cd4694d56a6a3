/* Drafts by a smaller model: keeps its sequence in step with the text and takes its most likely
 * token. Vocabularies are compared first, because ids must mean the same. */
#include "engine/generate/draft.h"

#include <math.h>
#include <string.h>

#include "base/math.h"
#include "base/system.h"

enum { TEXT_BYTES = 64 };

/* Bytes of a token. Returns their number, which may exceed TEXT_BYTES; only TEXT_BYTES are
 * compared. */
static size_t read_token_bytes(const struct ak_tokenizer *t, int32_t token, char text[TEXT_BYTES])
{
    size_t n = 0;
    if (ak_tok_decode(t, &token, 1, AKUNU_CONTINUE, text, TEXT_BYTES, &n, NULL) != AKUNU_OK)
        return 0;
    return n;
}

static ak_status fail_vocabulary(const char *target, size_t n_target, const char *draft,
                                 size_t n_draft, size_t token, struct ak_error *error)
{
    return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                   "the draft model's vocabulary differs: token %zu is \"%.*s\", and in the model "
                   "it is \"%.*s\"",
                   token, (int)(n_draft < 32 ? n_draft : 32), draft,
                   (int)(n_target < 32 ? n_target : 32), target);
}

/* Compares the common ids. One vocabulary may be longer: rows are often padded and never
 * sampled. */
static ak_status compare_vocabularies(const struct ak_tokenizer *target,
                                      const struct ak_tokenizer *draft, struct ak_error *error)
{
    size_t n = ak_tok_n_tokens(target), n_draft = ak_tok_n_tokens(draft);
    n = n < n_draft ? n : n_draft;
    for (size_t i = 0; i < n; i++) {
        char a[TEXT_BYTES] = "", b[TEXT_BYTES] = "";
        size_t n_a = read_token_bytes(target, (int32_t)i, a),
               n_b = read_token_bytes(draft, (int32_t)i, b);
        if (n_a != n_b || memcmp(a, b, n_a < TEXT_BYTES ? n_a : TEXT_BYTES) != 0)
            return fail_vocabulary(a, n_a, b, n_b, i, error);
        if (ak_tok_is_end(target, (int32_t)i) != ak_tok_is_end(draft, (int32_t)i))
            return ak_fail(
                error, AKUNU_ERROR_ARGUMENT,
                "the draft model's vocabulary differs: token %zu ends a text in one model alone",
                i);
    }
    return AKUNU_OK;
}

ak_status ak_draft_model_check(const struct ak_session *session, const struct ak_session *draft,
                               struct ak_error *error)
{
    const struct ak_tokenizer *own = session->model->tokenizer, *other = draft->model->tokenizer;
    AK_TRY(ak_session_needs_text(draft, error));
    if (draft->kv_keep > 0)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "kv_keep is %u in the draft session: expected 0", (unsigned)draft->kv_keep);
    if (draft->kv.shape.state_elems > 0)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "the draft model has recurrent state, which cannot be rolled back after a "
                       "refused draft");
    if (!own != !other)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "the draft model's vocabulary differs: %s has none",
                       own ? "it" : "the model");
    if (own)
        return compare_vocabularies(own, other, error);
    uint32_t n = session->model->spec.config.vocab_size,
             n_draft = draft->model->spec.config.vocab_size;
    if (n != n_draft)
        return ak_fail(
            error, AKUNU_ERROR_ARGUMENT,
            "the draft model's vocabulary differs: it has %u tokens, and the model has %u",
            (unsigned)n_draft, (unsigned)n);
    return AKUNU_OK;
}

/* Length of the common prefix of the draft model's sequence and the text. The last token of the
 * text never counts, because its logits are needed. */
static uint32_t count_common(const struct ak_draft_model *d, const int32_t *ids, uint32_t n)
{
    const struct ak_session_kv_sequence *own = ak_session_kv_sequence(&d->session->kv, d->sequence);
    uint32_t n_max = own->length < n ? own->length : n - 1, n_common = 0;
    while (n_common < n_max && own->tokens[n_common] == ids[n_common])
        n_common++;
    return n_common;
}

uint32_t ak_draft_model_count_unseen(const struct ak_draft_model *d, const int32_t *ids, uint32_t n)
{
    return n - count_common(d, ids, n);
}

/* Rewinds to the common prefix. False if the rest of the text does not fit. */
static bool rewind_to_common(struct ak_draft_model *d, const int32_t *ids, uint32_t n_common,
                             uint32_t n)
{
    struct ak_session_kv *kv = &d->session->kv;
    ak_session_kv_rewind(kv, d->sequence, n_common);
    for (uint32_t i = n_common; i < n; i++)
        if ((uint32_t)ids[i] >= d->session->model->spec.config.vocab_size)
            return false;
    return n <= kv->context &&
           ak_session_kv_count_new_pages(kv, d->sequence, n - n_common) <= kv->n_free;
}

ak_status ak_draft_model_prefill(struct ak_draft_model *d, const int32_t *ids, uint32_t n,
                                 akunu_cancel_fn *cancel, void *user, struct ak_error *error)
{
    uint32_t n_common = n > 1 ? count_common(d, ids, n) : 0;
    size_t last;
    if (n <= 1 || n_common >= n - 1 || !rewind_to_common(d, ids, n_common, n - 1))
        return AKUNU_OK;
    return ak_session_prefill(d->session, d->sequence, ids + n_common, n - 1 - n_common, cancel,
                              user, &last, error);
}

/* Probability of the best token. Logits more than 16 below it do not matter. */
static float compute_probability(const float *logits, uint32_t n, uint32_t best)
{
    float sum = 0.0f, logit_min = logits[best] - 16.0f;
    for (uint32_t i = 0; i < n; i++)
        if (logits[i] > logit_min)
            sum += ak_expf(logits[i] - logits[best]);
    return 1.0f / sum;
}

ak_status ak_draft_model_propose(struct ak_draft_model *d, const int32_t *ids, uint32_t n,
                                 int32_t *token, float *probability, struct ak_error *error)
{
    struct ak_session *s = d->session;
    uint32_t n_common = count_common(d, ids, n), n_unseen = n - n_common, best = 0,
             n_vocab = s->model->spec.config.vocab_size;
    double started = ak_seconds();
    size_t last;
    *token = -1;
    *probability = 0.0f;
    if (!rewind_to_common(d, ids, n_common, n))
        return AKUNU_OK;
    AK_TRY(ak_session_prefill(s, d->sequence, ids + n_common, n_unseen, NULL, NULL, &last, error));
    const float *logits = ak_session_logits(s, last);
    for (uint32_t i = 1; i < n_vocab; i++)
        best = logits[i] > logits[best] ? i : best;
    double seconds = ak_seconds() - started;
    if (n_unseen <= AK_SKINNY_MAX)
        ak_session_cost_update(&s->cost_model, n_unseen, seconds);
    d->seconds += seconds;
    if (!(logits[best] > -INFINITY) ||
        best >= d->n_vocab) /* no logit is a number, or it is padding */
        return AKUNU_OK;
    *token = (int32_t)best;
    *probability = compute_probability(logits, n_vocab, best);
    return AKUNU_OK;
}
