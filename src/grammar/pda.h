/* What the matcher is made of: stack nodes, states, and the transition from state to state by a
 * byte.
 *
 * A stack node is an expression, how far it has come, and the stack node of what comes after it;
 * equal ones are the same stack node. A state is a set of stack nodes whose expressions wait for a
 * byte or a token: the only thing that there is to know about the text so far. */
#ifndef AK_GRAMMAR_PDA_H
#define AK_GRAMMAR_PDA_H

#include "grammar/matcher.h"

struct ak_pda_node {
    uint32_t expr;
    /* expressions of a sequence, bytes of a literal, repetitions, state of members or of words */
    uint32_t position;
    uint32_t rest; /* a stack node */
    uint32_t depth;
    uint32_t mark; /* the last closure that it was in */
    uint32_t next; /* of the same hash */
    /* by how far is looked, a stack node with the same masks; 0: not looked for yet */
    uint32_t representative[2];
};

enum {
    AK_PDA_NODE_NONE = 0, /* too deep: nothing comes of it */
    AK_PDA_NODE_END = 1,  /* the text is complete */
    AK_PDA_STATE_DEAD = 0,
};
#define AK_PDA_STATE_UNKNOWN UINT32_MAX

struct ak_pda_state {
    uint32_t first, n; /* its stack nodes in the pool, rising */
    uint32_t hash, next;
    /* Of 256 bytes, AK_PDA_STATE_UNKNOWN where none was looked for; NULL: none was at all. The one
     * to states, the other to their representatives by AK_PDA_LOOKAHEAD_SHORT. */
    uint32_t *transitions, *short_transitions;
    /* by how far is looked, the state that has its mask; AK_PDA_STATE_UNKNOWN: not looked for */
    uint32_t representative[2];
    uint32_t closure; /* of an entry */
    uint32_t mask;    /* its number plus 1; 0: none is kept */
    bool accepting;
    /* no state: stack nodes as they were entered, and in `closure` what state they are then */
    bool is_unclosed;
    uint8_t visits; /* times that its mask was asked for */
};

/* Which of some members are there, as words: a header, then a bit for each member where
 * they may come in any order. State 0 is all zeros: none of them yet. */
struct ak_pda_member_set {
    uint32_t first, n; /* words */
    uint32_t hash, next;
};

struct ak_pda {
    const struct ak_grammar *g;
    const int32_t *token_ids; /* of g->tokens; NULL: no vocabulary */
    uint32_t max_token_bytes; /* bytes of a token: as far as masks look */

    struct ak_pda_node *nodes;
    uint32_t n_nodes, nodes_capacity, *node_heads, node_mask;
    struct ak_pda_state *states;
    uint32_t n_states, states_capacity, *state_heads, state_mask;
    uint32_t *pool, n_pool, pool_capacity;
    struct ak_pda_member_set *member_sets;
    uint32_t n_member_sets, member_sets_capacity, *member_set_heads, member_set_mask;
    uint64_t *words, *word_scratch; /* of `member_sets`; room for one state */
    uint32_t n_words, words_capacity;
    uint32_t n_transition_tables; /* tables of transitions */

    /* the closure in the making */
    uint32_t epoch, n_expanded;
    uint32_t *work, n_work, work_capacity;
    uint32_t *set, n_set, set_capacity;
    bool accepting;
    bool failed;     /* out of memory */
    bool over_limit; /* more stack nodes than there may be */
};

bool ak_pda_init(struct ak_pda *m, const struct ak_grammar *g, const int32_t *token_ids,
                 uint32_t max_token_bytes);
void ak_pda_free(struct ak_pda *m);

/* Interning: AK_PDA_NODE_NONE where it would be too deep, or there is no memory. */
uint32_t ak_pda_intern_node(struct ak_pda *m, uint32_t expr, uint32_t position, uint32_t rest);
uint32_t ak_pda_intern_member_set(struct ak_pda *m, const uint64_t *words, uint32_t n);

/* A state is made by opening a closure, entering stack nodes and closing it. Where that failed,
 * close gives AK_PDA_STATE_UNKNOWN. */
void ak_pda_closure_begin(struct ak_pda *m);
void ak_pda_closure_add(struct ak_pda *m, uint32_t node);
/* A stack node that waits for words, in another state of theirs: one past the states is a complete
 * word.
 */
void ak_pda_closure_add_until(struct ak_pda *m, uint32_t node, uint32_t keyword_state);
/* Is there a text behind the state? */
bool ak_pda_keyword_state_is_live(const struct ak_grammar *g,
                                  const struct ak_grammar_keyword_automaton *w,
                                  uint32_t keyword_state);
void ak_pda_closure_add_state(struct ak_pda *m, uint32_t state); /* all that it has */
uint32_t ak_pda_closure_finish(struct ak_pda *m);

/* Where a byte leads; AK_PDA_STATE_DEAD: it is not allowed; AK_PDA_STATE_UNKNOWN: a failure. */
uint32_t ak_pda_compute_transition(struct ak_pda *m, uint32_t state, unsigned char byte);
static inline uint32_t ak_pda_get_transition(struct ak_pda *m, uint32_t state, unsigned char byte)
{
    const uint32_t *transitions = m->states[state].transitions;
    return transitions && transitions[byte] != AK_PDA_STATE_UNKNOWN ?
               transitions[byte] :
               ak_pda_compute_transition(m, state, byte);
}

/* How far masks look: AK_GRAMMAR_LOOKAHEAD_BYTES, or as far as the longest token. */
enum ak_pda_lookahead { AK_PDA_LOOKAHEAD_SHORT, AK_PDA_LOOKAHEAD_FULL };
/* A state with the same mask, common to all that differ only in what lies further ahead than
 * is looked: in counts, and in states of patterns. */
uint32_t ak_pda_find_representative(struct ak_pda *m, uint32_t state,
                                    enum ak_pda_lookahead lookahead);

/* A transition, and to the representative of its state by AK_PDA_LOOKAHEAD_SHORT. */
uint32_t ak_pda_compute_short_transition(struct ak_pda *m, uint32_t state, unsigned char byte);
static inline uint32_t ak_pda_get_short_transition(struct ak_pda *m, uint32_t state,
                                                   unsigned char byte)
{
    const uint32_t *transitions = m->states[state].short_transitions;
    return transitions && transitions[byte] != AK_PDA_STATE_UNKNOWN ?
               transitions[byte] :
               ak_pda_compute_short_transition(m, state, byte);
}

/* pda_members.c: enters what may follow in members, whose stack node this is. */
void ak_pda_closure_add_members(struct ak_pda *m, uint32_t node);

/* pda_collect.c: is it time? Then forgets all states but the n at `roots`, which get their new
 * numbers; without memory they keep the old ones, and nothing is forgotten. */
bool ak_pda_is_full(const struct ak_pda *m);
void ak_pda_collect_garbage(struct ak_pda *m, uint32_t *const *roots, size_t n);

/* For the files of the PDA: room for more elements. */
bool ak_pda_reserve(struct ak_pda *m, void *array, uint32_t *capacity, uint32_t n, size_t more,
                    size_t size);

#endif
