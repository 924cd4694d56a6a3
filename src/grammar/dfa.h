/* Sets of strings as deterministic machines over characters: for `pattern`, formats and the
 * names of members, which must be joined, subtracted and looked into. */
#ifndef AK_TEXT_GRAMMAR_DFA_H
#define AK_TEXT_GRAMMAR_DFA_H

#include "grammar/chars.h"

struct ak_dfa_edge {
    uint32_t low, high, to;
};

struct ak_dfa_state {
    uint32_t first, n; /* edges, rising */
    bool accepts;
};

/* State 0 is the first. A character without an edge leads nowhere. */
struct ak_dfa {
    struct ak_dfa_state *states;
    struct ak_dfa_edge *edges;
    uint32_t n_states, n_edges, room_states, room_edges;
};

/* The edges of a state; NULL where the machine has none. */
static inline const struct ak_dfa_edge *ak_dfa_edges(const struct ak_dfa *d, uint32_t state)
{
    return d->n_edges > 0 ? d->edges + d->states[state].first : NULL;
}

enum { AK_DFA_MOST_STATES = 1 << 14, AK_DFA_MOST_EDGES = 1 << 20 };

/* All fill *out, which the caller frees, also after a failure. Too many states are
 * AKUNU_ERROR_UNSUPPORTED. */
ak_status ak_dfa_all(struct ak_dfa *out, struct ak_error *error);
/* Strings of low to high characters; high: AK_MANY. */
ak_status ak_dfa_lengths(uint32_t low, uint32_t high, struct ak_dfa *out, struct ak_error *error);
/* One string, valid UTF-8. */
ak_status ak_dfa_word(const char *text, size_t n, struct ak_dfa *out, struct ak_error *error);
/* Strings in which a regular expression of ECMAScript, in its Unicode mode, finds a match.
 * AKUNU_ERROR_FORMAT: it is none; AKUNU_ERROR_UNSUPPORTED: it looks around, refers back, or
 * asks for boundaries of words or for scripts. */
ak_status ak_dfa_pattern(const char *text, size_t n, struct ak_dfa *out, struct ak_error *error);
/* Strings of a that are in b; with `not_b`, that are not. */
ak_status ak_dfa_both(const struct ak_dfa *a, const struct ak_dfa *b, bool not_b,
                      struct ak_dfa *out, struct ak_error *error);

/* For each state the first one with the same beginnings of up to `steps` characters: what
 * differs is further ahead. like: n_states; false without memory. */
bool ak_dfa_alike(const struct ak_dfa *d, uint32_t steps, uint32_t *like);

bool ak_dfa_has(const struct ak_dfa *d, const char *text, size_t n);
bool ak_dfa_is_empty(const struct ak_dfa *d); /* of a trimmed one, as all of the above give */
void ak_dfa_free(struct ak_dfa *d);

/* For those who make one: adds to it; false without memory or with too many. */
bool ak_dfa_add_state(struct ak_dfa *d, bool accepts);
/* of the last state */
bool ak_dfa_add_edge(struct ak_dfa *d, uint32_t low, uint32_t high, uint32_t to);
ak_status ak_dfa_failed(const struct ak_dfa *d, struct ak_error *error);
/* Takes away the states from which no string is accepted. */
ak_status ak_dfa_trim(struct ak_dfa *d, struct ak_error *error);

#endif
