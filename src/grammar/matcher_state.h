/* The inside of ak_grammar_matcher. */
#ifndef AK_GRAMMAR_MATCHER_STATE_H
#define AK_GRAMMAR_MATCHER_STATE_H

#include "grammar/pda.h"
#include "grammar/token_trie.h"

struct ak_grammar_mask_entry {
    uint32_t state; /* AK_PDA_STATE_DEAD: free */
    uint32_t *bits; /* NULL: never used */
};

struct ak_grammar_matcher {
    const struct ak_grammar *g;
    const struct ak_grammar_token_trie *trie; /* NULL: bytes alone */
    struct ak_pda pda;
    int32_t *token_ids;
    uint32_t state;
    uint32_t history[AK_GRAMMAR_ROLLBACK_MAX]; /* a ring of the states before the last tokens */
    uint32_t history_newest, n_history;
    uint32_t path[AK_GRAMMAR_TOKEN_BYTES_MAX + 1]; /* states on the way to a node of the trie */
    struct ak_grammar_mask_entry *masks;
    uint32_t n_masks, oldest_mask;
};

/* What a transition that gave AK_PDA_STATE_UNKNOWN failed of. */
ak_status ak_grammar_matcher_fail(const struct ak_grammar_matcher *m, struct ak_error *error);

/* Forgets what is not needed where much was gathered: the first n of m->path stay. */
void ak_grammar_matcher_collect_garbage(struct ak_grammar_matcher *m, uint32_t n);

/* Where a token leads from here; AK_PDA_STATE_UNKNOWN: a failure. */
uint32_t ak_grammar_matcher_find_transition(struct ak_grammar_matcher *m, int32_t token);

/* Does a stack node that waits for words take a token that no text has, and in which state is it
 * then?
 */
bool ak_grammar_matcher_advance_keyword(const struct ak_grammar_matcher *m, uint32_t node,
                                        uint32_t token, uint32_t *keyword_state);

#endif
