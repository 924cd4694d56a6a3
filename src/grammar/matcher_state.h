/* The inside of ak_grammar_matcher. */
#ifndef AK_TEXT_GRAMMAR_MATCHER_STATE_H
#define AK_TEXT_GRAMMAR_MATCHER_STATE_H

#include "grammar/machine.h"
#include "grammar/trie.h"

struct ak_kept_mask {
    uint32_t place; /* AK_PLACE_NOWHERE: free */
    uint32_t *bits; /* NULL: never used */
};

struct ak_grammar_matcher {
    const struct ak_grammar *g;
    const struct ak_token_trie *trie; /* NULL: bytes alone */
    struct ak_machine machine;
    int32_t *token_ids;
    uint32_t place;
    uint32_t before[AK_GRAMMAR_MOST_BACK]; /* a ring of the places before the last tokens */
    uint32_t newest, n_before;
    uint32_t walk[AK_TOKEN_MOST_BYTES + 1]; /* places on the way to a node of the trie */
    struct ak_kept_mask *masks;
    uint32_t n_masks, oldest;
};

/* What a step that gave AK_PLACE_UNKNOWN failed of. */
ak_status ak_matcher_failure(const struct ak_grammar_matcher *m, struct ak_error *error);

/* Forgets what is not needed where much was gathered: the first n of m->walk stay. */
void ak_matcher_tidy(struct ak_grammar_matcher *m, uint32_t n);

/* Where a token leads from here; AK_PLACE_UNKNOWN: a failure. */
uint32_t ak_matcher_after(struct ak_grammar_matcher *m, int32_t token);

/* Does a frame that waits for words take a token that no text has, and in which state is it then?
 */
bool ak_matcher_waits(const struct ak_grammar_matcher *m, uint32_t frame, uint32_t token,
                      uint32_t *state);

#endif
