/* Holding a model's text to a grammar. */
#ifndef AK_SESSION_CONSTRAINT_H
#define AK_SESSION_CONSTRAINT_H

#include "text/grammar/matcher.h"

struct ak_model;

/* What the model's vocabulary gives all of its matchers: made when the first one is, by any
 * thread. */
struct ak_constraints;
ak_status ak_constraints_create(struct ak_constraints **out, struct ak_error *error);
void ak_constraints_free(struct ak_constraints *c); /* NULL allowed */

/* A matcher for a text of the model. AKUNU_ERROR_UNSUPPORTED: it has no vocabulary;
 * AKUNU_ERROR_ARGUMENT: the grammar has no text, or names tokens that the model lacks. */
ak_status ak_constraint_begin(const struct ak_model *model, const struct ak_grammar *grammar, struct ak_grammar_matcher **out,
                              struct ak_error *error);

#endif
