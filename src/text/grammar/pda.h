/* Pushdown automaton (PDA) behind the matcher: tells which bytes and tokens may follow a text.
 * Implemented by pda*.c, used by matcher.c, token_mask.c and forced.c.
 *
 * A stack node is an expression, the position in it, and the node below. Nodes are hash-consed, so
 * stacks share tails. A state is an interned set of stack tops that wait for a byte or a token. It
 * is all that the matcher knows about the text so far. */
#ifndef AK_TEXT_GRAMMAR_PDA_H
#define AK_TEXT_GRAMMAR_PDA_H

#include "text/grammar/matcher.h"

struct ak_pda_node {
    uint32_t expr;
    /* index in a sequence, bytes matched of a literal, repetitions done, member set, or state of
     * the keyword automaton */
    uint32_t position;
    uint32_t rest;  /* the node below */
    uint32_t depth; /* nodes from here to the bottom */
    uint32_t mark;  /* epoch of the last closure that contains it */
    uint32_t next;  /* next node in the hash chain; 0: none */
    /* per lookahead, the stack node with the same masks; 0: not computed */
    uint32_t representative[2];
};

enum {
    AK_PDA_NODE_NONE = 0,  /* no node: the stack would be too deep */
    AK_PDA_NODE_END = 1,   /* bottom of the stack: the text is complete */
    AK_PDA_STATE_DEAD = 0, /* the text is not allowed */
};
#define AK_PDA_STATE_UNKNOWN UINT32_MAX

struct ak_pda_state {
    uint32_t first, n;   /* its stack nodes in the pool, in rising order */
    uint32_t hash, next; /* next: in the hash chain; 0: none */
    /* transition cache, 256 entries each, AK_PDA_STATE_UNKNOWN: not computed; NULL: no entry
     * computed. `transitions` lead to states, `short_transitions` to their representatives for
     * AK_PDA_LOOKAHEAD_SHORT. */
    uint32_t *transitions, *short_transitions;
    /* representative state per lookahead; AK_PDA_STATE_UNKNOWN: not computed */
    uint32_t representative[2];
    uint32_t closure; /* unclosed set: its state; AK_PDA_STATE_UNKNOWN: not computed */
    uint32_t mask;    /* index of its mask cache entry plus 1; 0: not cached */
    bool accepting;
    bool is_unclosed; /* a set of stack nodes before its epsilon closure, not a state */
    uint8_t visits;   /* requests for its mask; counting stops at VISITS_MIN of token_mask.c */
};

/* Interned set of the members already written: a header word, then one bit per member if the order
 * is free. Set 0: none. */
struct ak_pda_member_set {
    uint32_t first, n;   /* range of `words` */
    uint32_t hash, next; /* next: in the hash chain; 0: none */
};

struct ak_pda {
    const struct ak_grammar *g;
    const int32_t *token_ids; /* token of each g->tokens entry; NULL: no vocabulary */
    uint32_t max_token_bytes; /* length of the longest token: the full lookahead */

    struct ak_pda_node *nodes;
    uint32_t n_nodes, nodes_capacity, *node_heads, node_mask;
    struct ak_pda_state *states;
    uint32_t n_states, states_capacity, *state_heads, state_mask;
    uint32_t *pool, n_pool, pool_capacity; /* stack nodes of all states */
    struct ak_pda_member_set *member_sets;
    uint32_t n_member_sets, member_sets_capacity, *member_set_heads, member_set_mask;
    uint64_t *words, *word_scratch; /* words of all member sets; scratch for one set */
    uint32_t n_words, words_capacity;
    uint32_t n_transition_tables; /* allocated tables, of 256 entries each */

    /* the current closure */
    uint32_t epoch, n_expanded;            /* n_expanded: stack nodes expanded so far */
    uint32_t *work, n_work, work_capacity; /* stack nodes to expand */
    uint32_t *set, n_set, set_capacity;    /* stack nodes that wait for input */
    bool accepting;
    bool failed;     /* out of memory */
    bool over_limit; /* a limit on stack nodes was exceeded */
};

bool ak_pda_init(struct ak_pda *m, const struct ak_grammar *g, const int32_t *token_ids,
                 uint32_t max_token_bytes);
void ak_pda_free(struct ak_pda *m);

/* Interning. AK_PDA_NODE_NONE: the stack would be too deep, or a failure, which the PDA records. */
uint32_t ak_pda_intern_node(struct ak_pda *m, uint32_t expr, uint32_t position, uint32_t rest);
uint32_t ak_pda_intern_member_set(struct ak_pda *m, const uint64_t *words, uint32_t n);

/* Epsilon closure: begin, add stack nodes, finish. finish returns the interned state, or
 * AK_PDA_STATE_UNKNOWN after a failure. */
void ak_pda_closure_begin(struct ak_pda *m);
void ak_pda_closure_add(struct ak_pda *m, uint32_t node);
/* Adds `node`, an UNTIL, in another state of its keyword automaton. States from the automaton's n
 * on mean a complete keyword: then its continuation is added. */
void ak_pda_closure_add_until(struct ak_pda *m, uint32_t node, uint32_t keyword_state);
/* Can the state still lead to a text? */
bool ak_pda_keyword_state_is_live(const struct ak_grammar *g,
                                  const struct ak_grammar_keyword_automaton *w,
                                  uint32_t keyword_state);
/* Adds all stack nodes of a state. */
void ak_pda_closure_add_state(struct ak_pda *m, uint32_t state);
uint32_t ak_pda_closure_finish(struct ak_pda *m);

/* Transition. AK_PDA_STATE_DEAD: byte not allowed; AK_PDA_STATE_UNKNOWN: failure. */
uint32_t ak_pda_compute_transition(struct ak_pda *m, uint32_t state, unsigned char byte);
static inline uint32_t ak_pda_get_transition(struct ak_pda *m, uint32_t state, unsigned char byte)
{
    const uint32_t *transitions = m->states[state].transitions;
    return transitions && transitions[byte] != AK_PDA_STATE_UNKNOWN ?
               transitions[byte] :
               ak_pda_compute_transition(m, state, byte);
}

/* Lookahead that decides equivalence: AK_GRAMMAR_LOOKAHEAD_BYTES, or the longest token. */
enum ak_pda_lookahead { AK_PDA_LOOKAHEAD_SHORT, AK_PDA_LOOKAHEAD_FULL };
/* Representative: the state with the mask that all equivalent states use. Equivalent states differ
 * only beyond the lookahead: in repeat counts or DFA states. */
uint32_t ak_pda_find_representative(struct ak_pda *m, uint32_t state,
                                    enum ak_pda_lookahead lookahead);

/* Transition to the representative for the short lookahead. */
uint32_t ak_pda_compute_short_transition(struct ak_pda *m, uint32_t state, unsigned char byte);
static inline uint32_t ak_pda_get_short_transition(struct ak_pda *m, uint32_t state,
                                                   unsigned char byte)
{
    const uint32_t *transitions = m->states[state].short_transitions;
    return transitions && transitions[byte] != AK_PDA_STATE_UNKNOWN ?
               transitions[byte] :
               ak_pda_compute_short_transition(m, state, byte);
}

/* pda_members.c: adds what may follow in the members of `node`. */
void ak_pda_closure_add_members(struct ak_pda *m, uint32_t node);

/* pda_collect.c: garbage collection, due when the PDA is full. Keeps the n states at `roots` and
 * renumbers them; out of memory: keeps everything. */
bool ak_pda_is_full(const struct ak_pda *m);
void ak_pda_collect_garbage(struct ak_pda *m, uint32_t *const *roots, size_t n);

/* For the files of the PDA: reserves space for `more` elements after the first n. */
bool ak_pda_reserve(struct ak_pda *m, void *array, uint32_t *capacity, uint32_t n, size_t more,
                    size_t size);

#endif
