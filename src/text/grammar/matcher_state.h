/* State of a matcher: current PDA state, states to roll back to, mask cache. Private to matcher.c,
 * token_mask.c and forced.c, which implement matcher.h. */
#ifndef AK_TEXT_GRAMMAR_MATCHER_STATE_H
#define AK_TEXT_GRAMMAR_MATCHER_STATE_H

#include "text/grammar/pda.h"
#include "text/grammar/token_trie.h"

/* Entry of the mask cache. */
struct ak_grammar_mask_entry {
    uint32_t state; /* PDA state; AK_PDA_STATE_DEAD: free */
    uint32_t *bits; /* token mask; NULL: never used */
};

struct ak_grammar_matcher {
    struct ak_grammar *g;                     /* a reference */
    const struct ak_grammar_token_trie *trie; /* NULL: bytes only */
    struct ak_pda pda;
    int32_t *token_ids; /* token of each g->tokens entry; NULL: no trie */
    uint32_t state;     /* current PDA state */
    /* states on the path to a trie node; path[0]: the state at the root */
    uint32_t path[AK_GRAMMAR_TOKEN_BYTES_MAX + 1];
    struct ak_grammar_mask_entry *masks; /* cache, replaced in turn from oldest_mask on */
    uint32_t n_masks, oldest_mask;
};

/* Fails with the reason of an AK_PDA_STATE_UNKNOWN. */
ak_status ak_grammar_matcher_fail(const struct ak_grammar_matcher *m, struct ak_error *error);

/* Collects garbage if the PDA is full; keeps the first n entries of m->path. */
void ak_grammar_matcher_collect_garbage(struct ak_grammar_matcher *m, uint32_t n);

/* State after `token`; AK_PDA_STATE_DEAD: not allowed; AK_PDA_STATE_UNKNOWN: failure. */
uint32_t ak_grammar_matcher_find_transition(struct ak_grammar_matcher *m, int32_t token);

/* Advances the keyword automaton of `node` by the bytes of a non-text token, such as a control
 * token. False: the token cannot follow. */
bool ak_grammar_matcher_advance_keyword(const struct ak_grammar_matcher *m, uint32_t node,
                                        uint32_t token, uint32_t *keyword_state);

#endif
