/* Deterministic finite automata (DFA) over characters, each a set of strings. schema/ uses them for
 * `pattern`, `format` and member names, since it needs intersections, differences and a test for
 * emptiness; subset.c makes them from patterns. */
#ifndef AK_TEXT_GRAMMAR_DFA_H
#define AK_TEXT_GRAMMAR_DFA_H

#include "text/grammar/chars.h"

struct ak_grammar_dfa_edge {
    uint32_t low, high, to;
};

struct ak_grammar_dfa_state {
    uint32_t first, n; /* edges, in rising order of characters */
    bool accepting;
};

/* Starts in state 0. A character without an edge is rejected. */
struct ak_grammar_dfa {
    struct ak_grammar_dfa_state *states;
    struct ak_grammar_dfa_edge *edges;
    uint32_t n_states, n_edges, states_capacity, edges_capacity;
};

/* The edges of a state; NULL if the DFA has none at all. */
static inline const struct ak_grammar_dfa_edge *
ak_grammar_dfa_get_edges(const struct ak_grammar_dfa *d, uint32_t state)
{
    return d->n_edges > 0 ? d->edges + d->states[state].first : NULL;
}

enum { AK_GRAMMAR_DFA_STATES_MAX = 1 << 14, AK_GRAMMAR_DFA_EDGES_MAX = 1 << 20 };

/* Constructors fill *out, which the caller frees even after a failure. Too many states or edges are
 * AKUNU_ERROR_UNSUPPORTED. */
/* All strings. */
ak_status ak_grammar_dfa_make_all(struct ak_grammar_dfa *out, struct ak_error *error);
/* Strings of low to high characters; high = AK_GRAMMAR_UNBOUNDED: no upper limit. */
ak_status ak_grammar_dfa_make_lengths(uint32_t low, uint32_t high, struct ak_grammar_dfa *out,
                                      struct ak_error *error);
/* One string, valid UTF-8. */
ak_status ak_grammar_dfa_make_string(const char *text, size_t n, struct ak_grammar_dfa *out,
                                     struct ak_error *error);
/* Strings in which an ECMAScript regular expression, in Unicode mode, finds a match.
 * AKUNU_ERROR_FORMAT: not a regular expression; AKUNU_ERROR_UNSUPPORTED: lookaround,
 * backreferences, word boundaries, or properties other than general categories. */
ak_status ak_grammar_dfa_make_pattern(const char *text, size_t n, struct ak_grammar_dfa *out,
                                      struct ak_error *error);
/* Strings of `a` that are in `b`, or with `not_b` that are not in `b`. */
ak_status ak_grammar_dfa_intersect(const struct ak_grammar_dfa *a, const struct ak_grammar_dfa *b,
                                   bool not_b, struct ak_grammar_dfa *out, struct ak_error *error);

/* For each of the n_states states its representative: the first state with the same prefixes of up
 * to `steps` characters. false: out of memory. */
bool ak_grammar_dfa_find_representatives(const struct ak_grammar_dfa *d, uint32_t steps,
                                         uint32_t *representatives);

bool ak_grammar_dfa_accepts(const struct ak_grammar_dfa *d, const char *text, size_t n);
/* The DFA must be trimmed, as those of the constructors are. */
bool ak_grammar_dfa_is_empty(const struct ak_grammar_dfa *d);
void ak_grammar_dfa_free(struct ak_grammar_dfa *d);

/* For constructors: add a state, or an edge of the last state. false: out of memory, or over the
 * limit; ak_grammar_dfa_fail then says which. */
bool ak_grammar_dfa_add_state(struct ak_grammar_dfa *d, bool accepting);
bool ak_grammar_dfa_add_edge(struct ak_grammar_dfa *d, uint32_t low, uint32_t high, uint32_t to);
ak_status ak_grammar_dfa_fail(const struct ak_grammar_dfa *d, struct ak_error *error);
/* Removes states from which no accepting state can be reached, except state 0. */
ak_status ak_grammar_dfa_trim(struct ak_grammar_dfa *d, struct ak_error *error);

#endif
