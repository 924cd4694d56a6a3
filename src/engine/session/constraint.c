/* Samples under a grammar. If the sampler looks at a few best tokens only, they are tested one by
 * one, because computing a mask of the whole vocabulary costs more. */
#include "engine/session/constraint.h"

#include <pthread.h>

#include "base/mem.h"
#include "engine/sample/candidates.h"
#include "engine/session/model.h"

struct ak_model_trie {
    pthread_mutex_t lock;
    struct ak_grammar_token_trie *trie; /* NULL: not built yet */
};

ak_status ak_model_trie_create(struct ak_model_trie **out, struct ak_error *error)
{
    *out = ak_alloc(1, sizeof **out);
    if (!*out)
        return ak_fail_memory(error, "a model", sizeof **out);
    pthread_mutex_init(&(*out)->lock, NULL);
    return AKUNU_OK;
}

void ak_model_trie_free(struct ak_model_trie *c)
{
    if (!c)
        return;
    ak_grammar_token_trie_free(c->trie);
    pthread_mutex_destroy(&c->lock);
    ak_free(c);
}

ak_status ak_session_constraint_begin(struct ak_model *model, struct ak_grammar *grammar,
                                      struct ak_session_constraint *c, struct ak_error *error)
{
    struct ak_model_trie *shared = model->token_trie;
    uint32_t n_vocab = model->spec.config.vocab_size;
    ak_status status = AKUNU_OK;
    *c = (struct ak_session_constraint){ 0 };
    c->model = ak_model_ref(model);
    if (!model->tokenizer)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                       "a grammar needs a vocabulary, and the model has none");
    if (!ak_grammar_is_productive(grammar))
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "the grammar allows no text at all");
    pthread_mutex_lock(&shared->lock);
    if (!shared->trie)
        status = ak_grammar_token_trie_create(model->tokenizer, n_vocab, &shared->trie, error);
    pthread_mutex_unlock(&shared->lock);
    AK_TRY(status);
    c->candidate_mask = ak_alloc((n_vocab + 31) / 32, sizeof *c->candidate_mask);
    if (!c->candidate_mask)
        return ak_fail_memory(error, "a mask of tokens", 0);
    return ak_grammar_matcher_create(grammar, shared->trie, &c->matcher, error);
}

void ak_session_constraint_end(struct ak_session_constraint *c)
{
    ak_grammar_matcher_free(c->matcher);
    ak_model_free(c->model);
    ak_free(c->candidate_mask);
    *c = (struct ak_session_constraint){ 0 };
}

/* Most samplers look at the k best tokens only. If k of the 2k best tokens are allowed, they are
 * the k best allowed ones and no mask is needed. A mask is most expensive if nearly everything is
 * allowed, and then this succeeds. */
static ak_status sample_among_best(const struct ak_session_constraint *c, struct ak_sampler *s,
                                   const float *logits, int32_t *token, bool *sampled,
                                   struct ak_error *error)
{
    enum { CANDIDATES_MAX = 64, TRIED_EACH = 2 };
    uint32_t k = ak_sample_n_best(s), n, found = 0;
    int32_t best[CANDIDATES_MAX];
    *sampled = false;
    if (k == 0 || k > CANDIDATES_MAX)
        return AKUNU_OK;
    const struct ak_sample_candidate *candidates =
        ak_sample_find_best(s, logits, k * TRIED_EACH, &n);
    for (uint32_t i = 0; i < n && found < k; i++) {
        bool allowed;
        AK_TRY(ak_grammar_matcher_allows(c->matcher, candidates[i].token, &allowed, error));
        if (allowed)
            best[found++] = candidates[i].token;
        else if (i - found >= k) /* too few would be left */
            return AKUNU_OK;
    }
    if (found < k)
        return AKUNU_OK;
    for (uint32_t i = 0; i < k; i++)
        c->candidate_mask[best[i] / 32] |= UINT32_C(1) << (best[i] % 32);
    ak_status status = ak_sample_token_masked(s, logits, c->candidate_mask, token, error);
    for (uint32_t i = 0; i < k; i++)
        c->candidate_mask[best[i] / 32] = 0;
    *sampled = status == AKUNU_OK;
    return status;
}

ak_status ak_session_constraint_sample(const struct ak_session_constraint *c, struct ak_sampler *s,
                                       const float *logits, int32_t *token, struct ak_error *error)
{
    const uint32_t *allowed;
    bool pays, sampled = false;
    if (!c->matcher)
        return ak_sample_token(s, logits, token, error);
    AK_TRY(ak_grammar_matcher_mask_pays(c->matcher, &pays, error));
    if (!pays)
        AK_TRY(sample_among_best(c, s, logits, token, &sampled, error));
    if (sampled)
        return AKUNU_OK;
    AK_TRY(ak_grammar_matcher_get_mask(c->matcher, &allowed, error));
    return ak_sample_token_masked(s, logits, allowed, token, error);
}
