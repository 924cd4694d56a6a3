/* Holding a model's text to a grammar. */
#ifndef AK_SESSION_CONSTRAINT_H
#define AK_SESSION_CONSTRAINT_H

#include "sample/sampler.h"
#include "grammar/matcher.h"

struct ak_model;

/* What the model's vocabulary gives all of its matchers: made when the first one is, by any
 * thread. */
struct ak_model_trie;
ak_status ak_model_trie_create(struct ak_model_trie **out, struct ak_error *error);
void ak_model_trie_free(struct ak_model_trie *c); /* NULL allowed */

/* One text and its grammar. All zero: any text is allowed. */
struct ak_session_constraint {
    struct ak_grammar_matcher *matcher;
    uint32_t *candidate_mask; /* a mask of few tokens; none between calls */
};

/* AKUNU_ERROR_UNSUPPORTED: the model has no vocabulary; AKUNU_ERROR_ARGUMENT: the grammar has
 * no text, or names tokens that the model lacks. To be ended in any case. */
ak_status ak_session_constraint_begin(const struct ak_model *model,
                                      const struct ak_grammar *grammar,
                                      struct ak_session_constraint *c, struct ak_error *error);
void ak_session_constraint_end(struct ak_session_constraint *c);

/* As ak_sample_token, among the tokens that the grammar allows. */
ak_status ak_session_constraint_sample(const struct ak_session_constraint *c, struct ak_sampler *s,
                                       const float *logits, int32_t *token, struct ak_error *error);

#endif
