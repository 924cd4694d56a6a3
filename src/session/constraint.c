#include "session/constraint.h"

#include <pthread.h>

#include "base/mem.h"
#include "session/model.h"

struct ak_constraints {
    pthread_mutex_t lock;
    struct ak_token_trie *trie; /* NULL: not made yet */
};

ak_status ak_constraints_create(struct ak_constraints **out, struct ak_error *error)
{
    *out = ak_alloc(1, sizeof **out);
    if (!*out)
        return ak_fail_memory(error, "a model", sizeof **out);
    pthread_mutex_init(&(*out)->lock, NULL);
    return AKUNU_OK;
}

void ak_constraints_free(struct ak_constraints *c)
{
    if (!c)
        return;
    ak_token_trie_free(c->trie);
    pthread_mutex_destroy(&c->lock);
    ak_free(c);
}

ak_status ak_constraint_begin(const struct ak_model *model, const struct ak_grammar *grammar, struct ak_grammar_matcher **out,
                              struct ak_error *error)
{
    struct ak_constraints *c = model->constraints;
    ak_status status = AKUNU_OK;
    *out = NULL;
    if (!model->tokenizer)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "a grammar needs a vocabulary, and the model has none");
    if (!ak_grammar_possible(grammar))
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "the grammar allows no text at all");
    pthread_mutex_lock(&c->lock);
    if (!c->trie)
        status = ak_token_trie_create(model->tokenizer, model->spec.config.vocab_size, &c->trie, error);
    pthread_mutex_unlock(&c->lock);
    return status == AKUNU_OK ? ak_grammar_matcher_create(grammar, c->trie, out, error) : status;
}
