/* Sets of strings as deterministic finite automata (DFA) over characters: for `pattern`, formats
 * and the names of members, which must be joined, subtracted and looked into. */
#ifndef AK_GRAMMAR_DFA_H
#define AK_GRAMMAR_DFA_H

#include "grammar/chars.h"

struct ak_grammar_dfa_edge {
    uint32_t low, high, to;
};

struct ak_grammar_dfa_state {
    uint32_t first, n; /* edges, rising */
    bool accepting;
};

/* State 0 is the first. A character without an edge leads nowhere. */
struct ak_grammar_dfa {
    struct ak_grammar_dfa_state *states;
    struct ak_grammar_dfa_edge *edges;
    uint32_t n_states, n_edges, states_capacity, edges_capacity;
};

/* The edges of a state; NULL where the DFA has none. */
static inline const struct ak_grammar_dfa_edge *
ak_grammar_dfa_get_edges(const struct ak_grammar_dfa *d, uint32_t state)
{
    return d->n_edges > 0 ? d->edges + d->states[state].first : NULL;
}

enum { AK_GRAMMAR_DFA_STATES_MAX = 1 << 14, AK_GRAMMAR_DFA_EDGES_MAX = 1 << 20 };

/* All fill *out, which the caller frees, also after a failure. Too many states are
 * AKUNU_ERROR_UNSUPPORTED. */
ak_status ak_grammar_dfa_make_all(struct ak_grammar_dfa *out, struct ak_error *error);
/* Strings of low to high characters; high: AK_GRAMMAR_UNBOUNDED. */
ak_status ak_grammar_dfa_make_lengths(uint32_t low, uint32_t high, struct ak_grammar_dfa *out,
                                      struct ak_error *error);
/* One string, valid UTF-8. */
ak_status ak_grammar_dfa_make_string(const char *text, size_t n, struct ak_grammar_dfa *out,
                                     struct ak_error *error);
/* Strings in which a regular expression of ECMAScript, in its Unicode mode, finds a match.
 * AKUNU_ERROR_FORMAT: it is none; AKUNU_ERROR_UNSUPPORTED: it looks around, refers back, or
 * asks for boundaries of words or for scripts. */
ak_status ak_grammar_dfa_make_pattern(const char *text, size_t n, struct ak_grammar_dfa *out,
                                      struct ak_error *error);
/* Strings of a that are in b; with `not_b`, that are not. */
ak_status ak_grammar_dfa_intersect(const struct ak_grammar_dfa *a, const struct ak_grammar_dfa *b,
                                   bool not_b, struct ak_grammar_dfa *out, struct ak_error *error);

/* For each state the first one with the same beginnings of up to `steps` characters: what
 * differs is further ahead. representatives: n_states; false without memory. */
bool ak_grammar_dfa_find_representatives(const struct ak_grammar_dfa *d, uint32_t steps,
                                         uint32_t *representatives);

bool ak_grammar_dfa_accepts(const struct ak_grammar_dfa *d, const char *text, size_t n);
/* of a trimmed one, as all of the above give */
bool ak_grammar_dfa_is_empty(const struct ak_grammar_dfa *d);
void ak_grammar_dfa_free(struct ak_grammar_dfa *d);

/* For those who make one: adds to it; false without memory or with too many. */
bool ak_grammar_dfa_add_state(struct ak_grammar_dfa *d, bool accepting);
/* of the last state */
bool ak_grammar_dfa_add_edge(struct ak_grammar_dfa *d, uint32_t low, uint32_t high, uint32_t to);
ak_status ak_grammar_dfa_fail(const struct ak_grammar_dfa *d, struct ak_error *error);
/* Takes away the states from which no string is accepted. */
ak_status ak_grammar_dfa_trim(struct ak_grammar_dfa *d, struct ak_error *error);

#endif
