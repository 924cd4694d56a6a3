/* Grammar constraint of a model's text: samples among the tokens that the matcher allows. Also the
 * token trie that all matchers of a model share; load.c creates it. */
#ifndef AK_ENGINE_SESSION_CONSTRAINT_H
#define AK_ENGINE_SESSION_CONSTRAINT_H

#include "engine/sample/sampler.h"
#include "text/grammar/matcher.h"

struct ak_model;

/* Token trie shared by all matchers of a model. The first one builds it, in any thread. */
struct ak_model_trie;
ak_status ak_model_trie_create(struct ak_model_trie **out, struct ak_error *error);
void ak_model_trie_free(struct ak_model_trie *c); /* NULL allowed */

/* Matcher of one text. All zero: any text is allowed. */
struct ak_session_constraint {
    struct ak_model *model; /* a reference, for its trie; NULL: none */
    struct ak_grammar_matcher *matcher;
    uint32_t *candidate_mask; /* scratch mask of a few tokens; all bits 0 between calls */
};

/* AKUNU_ERROR_UNSUPPORTED: the model has no vocabulary. AKUNU_ERROR_ARGUMENT: the grammar allows no
 * text, or names tokens that the model lacks. Call ak_session_constraint_end in any case. */
ak_status ak_session_constraint_begin(struct ak_model *model, struct ak_grammar *grammar,
                                      struct ak_session_constraint *c, struct ak_error *error);
void ak_session_constraint_end(struct ak_session_constraint *c);

/* As ak_sample_token among the tokens that the grammar allows. */
ak_status ak_session_constraint_sample(const struct ak_session_constraint *c, struct ak_sampler *s,
                                       const float *logits, int32_t *token, struct ak_error *error);

#endif
