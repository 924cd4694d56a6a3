/* Stack nodes, epsilon closures, states, transitions and representatives of the PDA. Nodes and
 * states are interned in hash tables with chains, so that equal ones have equal numbers. */
#include "text/grammar/pda.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/array.h"

/* EXPANDED_MAX: stack nodes expanded per closure. The largest object that a schema may have needs
 * three per member. */
enum { INITIAL_HEADS = 1024, NODES_MAX = 1 << 23, EXPANDED_MAX = 1 << 15 };

static uint32_t mix_hash(uint32_t a, uint32_t b)
{
    uint64_t x = ((uint64_t)a << 32 | b) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(x >> 32) ^ (uint32_t)x;
}

bool ak_pda_reserve(struct ak_pda *m, void *array, uint32_t *capacity, uint32_t n, size_t more,
                    size_t size)
{
    if (ak_reserve_u32(array, capacity, n, more, size))
        return true;
    m->failed = true;
    return false;
}

bool ak_pda_init(struct ak_pda *m, const struct ak_grammar *g, const int32_t *token_ids,
                 uint32_t max_token_bytes)
{
    uint32_t n_max = 0;
    for (uint32_t i = 0; i < g->n_members; i++)
        n_max = g->members[i].n > n_max ? g->members[i].n : n_max;
    *m = (struct ak_pda){ .g = g, .token_ids = token_ids, .max_token_bytes = max_token_bytes };
    m->node_mask = m->state_mask = m->member_set_mask = INITIAL_HEADS - 1;
    m->node_heads = ak_alloc(INITIAL_HEADS, sizeof *m->node_heads);
    m->state_heads = ak_alloc(INITIAL_HEADS, sizeof *m->state_heads);
    m->member_set_heads = ak_alloc(INITIAL_HEADS, sizeof *m->member_set_heads);
    m->word_scratch = ak_alloc(2 + n_max / 64, sizeof *m->word_scratch);
    if (!m->node_heads || !m->state_heads || !m->member_set_heads || !m->word_scratch ||
        !ak_pda_reserve(m, &m->nodes, &m->nodes_capacity, 0, 2, sizeof *m->nodes) ||
        !ak_pda_reserve(m, &m->states, &m->states_capacity, 0, 1, sizeof *m->states) ||
        !ak_pda_reserve(m, &m->member_sets, &m->member_sets_capacity, 0, 1, sizeof *m->member_sets))
        return false;
    m->nodes[AK_PDA_NODE_NONE] = m->nodes[AK_PDA_NODE_END] = (struct ak_pda_node){ 0 };
    m->states[AK_PDA_STATE_DEAD] =
        (struct ak_pda_state){ .representative = { AK_PDA_STATE_DEAD, AK_PDA_STATE_DEAD } };
    m->member_sets[0] = (struct ak_pda_member_set){ 0 };
    m->n_nodes = 2;
    m->n_states = m->n_member_sets = 1;
    return true;
}

void ak_pda_free(struct ak_pda *m)
{
    for (uint32_t i = 0; i < m->n_states; i++) {
        ak_free(m->states[i].transitions);
        ak_free(m->states[i].short_transitions);
    }
    ak_free(m->nodes);
    ak_free(m->node_heads);
    ak_free(m->states);
    ak_free(m->state_heads);
    ak_free(m->pool);
    ak_free(m->member_sets);
    ak_free(m->member_set_heads);
    ak_free(m->words);
    ak_free(m->word_scratch);
    ak_free(m->work);
    ak_free(m->set);
    *m = (struct ak_pda){ 0 };
}

/* ---- Stack nodes -------------------------------------------------------- */
static uint32_t hash_node(const struct ak_pda *m, uint32_t expr, uint32_t position, uint32_t rest)
{
    return mix_hash(mix_hash(expr, position), rest) & m->node_mask;
}

static uint32_t find_node(const struct ak_pda *m, uint32_t expr, uint32_t position, uint32_t rest)
{
    uint32_t i = m->node_heads[hash_node(m, expr, position, rest)];
    while (i && (m->nodes[i].expr != expr || m->nodes[i].position != position ||
                 m->nodes[i].rest != rest))
        i = m->nodes[i].next;
    return i;
}

/* Doubles the number of hash chains. Out of memory is harmless: the chains stay longer. */
static void rehash_nodes(struct ak_pda *m)
{
    uint32_t *heads = ak_alloc(((size_t)m->node_mask + 1) * 2, sizeof *heads);
    if (!heads)
        return;
    ak_free(m->node_heads);
    m->node_heads = heads;
    m->node_mask = m->node_mask * 2 + 1;
    for (uint32_t i = 2; i < m->n_nodes; i++) {
        struct ak_pda_node *n = &m->nodes[i];
        uint32_t *head = &heads[hash_node(m, n->expr, n->position, n->rest)];
        n->next = *head;
        *head = i;
    }
}

uint32_t ak_pda_intern_node(struct ak_pda *m, uint32_t expr, uint32_t position, uint32_t rest)
{
    uint32_t found = find_node(m, expr, position, rest);
    if (found || rest == AK_PDA_NODE_NONE)
        return found;
    uint32_t depth = m->nodes[rest].depth + 1;
    if (depth > AK_GRAMMAR_DEPTH_MAX)
        return AK_PDA_NODE_NONE;
    if (m->n_nodes == NODES_MAX) {
        m->over_limit = true;
        return AK_PDA_NODE_NONE;
    }
    if (!ak_pda_reserve(m, &m->nodes, &m->nodes_capacity, m->n_nodes, 1, sizeof *m->nodes))
        return AK_PDA_NODE_NONE;
    if (m->n_nodes > m->node_mask)
        rehash_nodes(m);
    uint32_t *head = &m->node_heads[hash_node(m, expr, position, rest)];
    m->nodes[m->n_nodes] = (struct ak_pda_node){
        .expr = expr, .position = position, .rest = rest, .depth = depth, .next = *head
    };
    *head = m->n_nodes;
    return m->n_nodes++;
}

/* ---- Closures ----------------------------------------------------------- */
void ak_pda_closure_begin(struct ak_pda *m)
{
    if (++m->epoch == 0) { /* after 2^32 closures old marks would match again */
        for (uint32_t i = 0; i < m->n_nodes; i++)
            m->nodes[i].mark = 0;
        m->epoch = 1;
    }
    m->n_set = m->n_work = m->n_expanded = 0;
    m->accepting = m->failed = m->over_limit = false;
}

void ak_pda_closure_add(struct ak_pda *m, uint32_t node)
{
    if (node == AK_PDA_NODE_NONE || m->nodes[node].mark == m->epoch)
        return;
    m->nodes[node].mark = m->epoch;
    if (ak_pda_reserve(m, &m->work, &m->work_capacity, m->n_work, 1, sizeof *m->work))
        m->work[m->n_work++] = node;
}

static void keep_node(struct ak_pda *m, uint32_t node)
{
    if (m->n_set == AK_GRAMMAR_CONFIGURATIONS_MAX)
        m->over_limit = true;
    else if (ak_pda_reserve(m, &m->set, &m->set_capacity, m->n_set, 1, sizeof *m->set))
        m->set[m->n_set++] = node;
}

static void add_expr(struct ak_pda *m, uint32_t expr, uint32_t rest)
{
    if (m->g->exprs[expr].productive)
        ak_pda_closure_add(m, ak_pda_intern_node(m, expr, 0, rest));
}

/* Expands a repeat after `position` iterations. If its expression is nullable, any number of
 * iterations is allowed. An empty iteration is skipped: the node before it is in this closure and
 * allows the same texts. */
static void expand_repeat(struct ak_pda *m, struct ak_pda_node top, const struct ak_grammar_expr *e)
{
    bool nullable = m->g->exprs[e->a].nullable;
    uint32_t low = nullable ? 0 : e->b, position = top.position;
    if (nullable && position > 0) {
        uint32_t previous = find_node(m, top.expr, position - 1, top.rest);
        if (previous && m->nodes[previous].mark == m->epoch)
            return;
    }
    if (position >= low)
        ak_pda_closure_add(m, top.rest);
    if (position >= e->c)
        return;
    uint32_t next_position = e->c == AK_GRAMMAR_UNBOUNDED && position >= low ? low : position + 1;
    if (m->g->exprs[e->a].productive)
        add_expr(m, e->a, ak_pda_intern_node(m, top.expr, next_position, top.rest));
}

/* Stack node after item top.position of a sequence. The last item is a node of its own, so that
 * sequences with equal ends share nodes. */
static uint32_t make_rest_after_item(struct ak_pda *m, struct ak_pda_node top,
                                     const struct ak_grammar_expr *e)
{
    if (top.position + 1 == e->b)
        return top.rest;
    if (top.position + 2 == e->b)
        return ak_pda_intern_node(m, m->g->lists[e->a + top.position + 1], 0, top.rest);
    return ak_pda_intern_node(m, top.expr, top.position + 1, top.rest);
}

static void expand_node(struct ak_pda *m, uint32_t node)
{
    const struct ak_grammar *g = m->g;
    struct ak_pda_node top = m->nodes[node];
    const struct ak_grammar_expr *e = &g->exprs[top.expr];

    if (node == AK_PDA_NODE_END) {
        m->accepting = true;
        return;
    }
    switch ((enum ak_grammar_expr_kind)e->kind) {
    case AK_GRAMMAR_EXPR_NOTHING: break;
    case AK_GRAMMAR_EXPR_EMPTY: ak_pda_closure_add(m, top.rest); break;
    case AK_GRAMMAR_EXPR_BYTES:
    case AK_GRAMMAR_EXPR_LITERAL: keep_node(m, node); break;
    case AK_GRAMMAR_EXPR_TOKEN:
        if (m->token_ids)
            keep_node(m, node);
        else
            add_expr(m, g->tokens[e->a].literal, top.rest);
        break;
    case AK_GRAMMAR_EXPR_UNTIL:
        keep_node(m, node);
        if (e->b)
            ak_pda_closure_add(m, top.rest);
        break;
    case AK_GRAMMAR_EXPR_SEQUENCE:
        if (e->productive)
            add_expr(m, g->lists[e->a + top.position], make_rest_after_item(m, top, e));
        break;
    case AK_GRAMMAR_EXPR_ALTERNATION:
        for (uint32_t i = 0; i < e->b; i++)
            add_expr(m, g->lists[e->a + i], top.rest);
        break;
    case AK_GRAMMAR_EXPR_REPEAT: expand_repeat(m, top, e); break;
    case AK_GRAMMAR_EXPR_RULE: add_expr(m, g->rules[e->a].expr, top.rest); break;
    case AK_GRAMMAR_EXPR_MEMBERS: ak_pda_closure_add_members(m, node); break;
    }
}

void ak_pda_closure_add_state(struct ak_pda *m, uint32_t state)
{
    m->accepting = m->accepting || m->states[state].accepting;
    for (uint32_t i = 0; i < m->states[state].n; i++) {
        uint32_t node = m->pool[m->states[state].first + i];
        if (m->nodes[node].mark != m->epoch) {
            m->nodes[node].mark = m->epoch;
            keep_node(m, node);
        }
    }
}

/* ---- States ------------------------------------------------------------- */
static int compare_u32(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void sort_set(uint32_t *set, uint32_t n)
{
    if (n > 32) {
        qsort(set, n, sizeof *set, compare_u32);
        return;
    }
    for (uint32_t i = 1; i < n; i++) {
        uint32_t x = set[i], j = i;
        for (; j > 0 && set[j - 1] > x; j--)
            set[j] = set[j - 1];
        set[j] = x;
    }
}

static void rehash_states(struct ak_pda *m)
{
    uint32_t *heads = ak_alloc(((size_t)m->state_mask + 1) * 2, sizeof *heads);
    if (!heads)
        return;
    ak_free(m->state_heads);
    m->state_heads = heads;
    m->state_mask = m->state_mask * 2 + 1;
    for (uint32_t i = 1; i < m->n_states; i++) {
        uint32_t *head = &heads[m->states[i].hash & m->state_mask];
        m->states[i].next = *head;
        *head = i;
    }
}

static bool states_equal(const struct ak_pda *m, const struct ak_pda_state *s,
                         const struct ak_pda_state *wanted, const uint32_t *set)
{
    return s->hash == wanted->hash && s->n == wanted->n && s->accepting == wanted->accepting &&
           s->is_unclosed == wanted->is_unclosed &&
           (s->n == 0 || memcmp(m->pool + s->first, set, s->n * sizeof *set) == 0);
}

/* Interns a set of stack nodes as a state, or as an unclosed set. The set may be empty only if
 * `accepting`: without nodes a state is dead. */
static uint32_t intern_state(struct ak_pda *m, const uint32_t *set, uint32_t n, bool accepting,
                             bool is_unclosed)
{
    struct ak_pda_state fresh = { .n = n,
                                  .hash = (uint32_t)accepting | (uint32_t)is_unclosed << 1,
                                  .accepting = accepting,
                                  .is_unclosed = is_unclosed,
                                  .closure = AK_PDA_STATE_UNKNOWN,
                                  .representative = { AK_PDA_STATE_UNKNOWN,
                                                      AK_PDA_STATE_UNKNOWN } };
    for (uint32_t i = 0; i < n; i++)
        fresh.hash = mix_hash(fresh.hash, set[i]);
    for (uint32_t i = m->state_heads[fresh.hash & m->state_mask]; i; i = m->states[i].next)
        if (states_equal(m, &m->states[i], &fresh, set))
            return i;
    if (!ak_pda_reserve(m, &m->states, &m->states_capacity, m->n_states, 1, sizeof *m->states) ||
        !ak_pda_reserve(m, &m->pool, &m->pool_capacity, m->n_pool, n, sizeof *m->pool))
        return AK_PDA_STATE_UNKNOWN;
    if (m->n_states > m->state_mask)
        rehash_states(m);
    uint32_t *head = &m->state_heads[fresh.hash & m->state_mask];
    fresh.first = m->n_pool;
    fresh.next = *head;
    m->states[m->n_states] = fresh;
    if (n > 0)
        memcpy(m->pool + m->n_pool, set, n * sizeof *set);
    m->n_pool += n;
    *head = m->n_states;
    return m->n_states++;
}

/* Expands stack nodes until each waits for input. */
static uint32_t close_set(struct ak_pda *m)
{
    while (m->n_work > 0 && !m->failed && !m->over_limit) {
        m->over_limit = ++m->n_expanded > EXPANDED_MAX;
        expand_node(m, m->work[--m->n_work]);
    }
    if (m->failed || m->over_limit)
        return AK_PDA_STATE_UNKNOWN;
    if (m->n_set == 0 && !m->accepting)
        return AK_PDA_STATE_DEAD;
    sort_set(m->set, m->n_set);
    return intern_state(m, m->set, m->n_set, m->accepting, false);
}

/* Many transitions lead to the same unclosed set, e.g. those of all letters of a class, so the
 * closure is cached per set. */
uint32_t ak_pda_closure_finish(struct ak_pda *m)
{
    if (m->failed || m->over_limit)
        return AK_PDA_STATE_UNKNOWN;
    if (m->n_work == 0 || m->n_set > 0 || m->accepting)
        return close_set(m);
    uint32_t unclosed = intern_state(m, m->work, m->n_work, false, true);
    if (unclosed != AK_PDA_STATE_UNKNOWN && m->states[unclosed].closure == AK_PDA_STATE_UNKNOWN) {
        uint32_t state = close_set(m);
        m->states[unclosed].closure = state;
    }
    return unclosed == AK_PDA_STATE_UNKNOWN ? unclosed : m->states[unclosed].closure;
}

/* ---- Transitions -------------------------------------------------------- */
bool ak_pda_keyword_state_is_live(const struct ak_grammar *g,
                                  const struct ak_grammar_keyword_automaton *a,
                                  uint32_t keyword_state)
{
    return keyword_state < a->n ||
           g->exprs[g->lists[a->continuations + keyword_state - a->n]].productive;
}

void ak_pda_closure_add_until(struct ak_pda *m, uint32_t node, uint32_t keyword_state)
{
    const struct ak_grammar *g = m->g;
    struct ak_pda_node top = m->nodes[node];
    const struct ak_grammar_keyword_automaton *a = &g->automata[g->exprs[top.expr].a];
    if (keyword_state < a->n)
        ak_pda_closure_add(m, ak_pda_intern_node(m, top.expr, keyword_state, top.rest));
    else if (ak_pda_keyword_state_is_live(g, a, keyword_state))
        ak_pda_closure_add(
            m,
            ak_pda_intern_node(m, g->lists[a->continuations + keyword_state - a->n], 0, top.rest));
}

static void advance_node(struct ak_pda *m, uint32_t node, unsigned char byte)
{
    const struct ak_grammar *g = m->g;
    struct ak_pda_node top = m->nodes[node];
    const struct ak_grammar_expr *e = &g->exprs[top.expr];
    if (e->kind == AK_GRAMMAR_EXPR_BYTES) {
        if (ak_grammar_byte_set_has(&g->sets[e->a], byte))
            ak_pda_closure_add(m, top.rest);
    } else if (e->kind == AK_GRAMMAR_EXPR_LITERAL) {
        if ((unsigned char)g->bytes[e->a + top.position] == byte)
            ak_pda_closure_add(m, top.position + 1 < e->b ?
                                      ak_pda_intern_node(m, top.expr, top.position + 1, top.rest) :
                                      top.rest);
    } else if (e->kind == AK_GRAMMAR_EXPR_UNTIL) {
        ak_pda_closure_add_until(m, node, g->automata[e->a].next[top.position][byte]);
    }
}

/* Stores a transition in the transition cache, in `table`, one of the two tables of its state. */
static uint32_t store_transition(struct ak_pda *m, uint32_t **table, unsigned char byte,
                                 uint32_t to)
{
    if (!*table) {
        uint32_t *fresh = ak_alloc(256, sizeof *fresh);
        if (!fresh) {
            m->failed = true;
            return AK_PDA_STATE_UNKNOWN;
        }
        memset(fresh, 0xff, 256 * sizeof *fresh);
        *table = fresh;
        m->n_transition_tables++;
    }
    return (*table)[byte] = to;
}

uint32_t ak_pda_compute_transition(struct ak_pda *m, uint32_t state, unsigned char byte)
{
    ak_pda_closure_begin(m);
    for (uint32_t i = 0; i < m->states[state].n; i++)
        advance_node(m, m->pool[m->states[state].first + i], byte);
    uint32_t to = ak_pda_closure_finish(m);
    return store_transition(m, &m->states[state].transitions, byte, to);
}

uint32_t ak_pda_compute_short_transition(struct ak_pda *m, uint32_t state, unsigned char byte)
{
    uint32_t to = ak_pda_get_transition(m, state, byte);
    if (to != AK_PDA_STATE_UNKNOWN)
        to = ak_pda_find_representative(m, to, AK_PDA_LOOKAHEAD_SHORT);
    return store_transition(m, &m->states[state].short_transitions, byte, to);
}

/* ---- Representatives ---------------------------------------------------- */
/* Representative of a repeat count. Within the lookahead a count grows by less than `distance`, so
 * counts that are further from both bounds are equivalent. */
static uint32_t replace_count(const struct ak_pda *m, const struct ak_grammar_expr *e,
                              uint32_t position, uint32_t distance)
{
    uint32_t low = m->g->exprs[e->a].nullable ? 0 : e->b;
    if (m->g->exprs[e->a].nullable)
        return position;
    if (low > distance && position < low - distance)
        return low - distance;
    if (position >= low && e->c != AK_GRAMMAR_UNBOUNDED && e->c - position >= distance)
        return low;
    return position;
}

/* Replaces the top of the stack by its representative; the rest is unchanged. */
static struct ak_pda_node replace_top(const struct ak_pda *m, struct ak_pda_node top,
                                      enum ak_pda_lookahead lookahead)
{
    const struct ak_grammar_expr *e = &m->g->exprs[top.expr];
    if (e->kind == AK_GRAMMAR_EXPR_REPEAT)
        top.position =
            replace_count(m, e, top.position,
                          1 + (lookahead == AK_PDA_LOOKAHEAD_SHORT ? AK_GRAMMAR_LOOKAHEAD_BYTES :
                                                                     m->max_token_bytes));
    else if (e->kind == AK_GRAMMAR_EXPR_RULE && e->b > 0 && lookahead == AK_PDA_LOOKAHEAD_SHORT)
        top.expr = e->b;
    return top;
}

static uint32_t find_node_representative(struct ak_pda *m, uint32_t node,
                                         enum ak_pda_lookahead lookahead)
{
    /* go down to a node with a known representative, then rebuild the stack upwards */
    m->n_work = 0;
    uint32_t cursor = node;
    for (; cursor > AK_PDA_NODE_END && !m->nodes[cursor].representative[lookahead];
         cursor = m->nodes[cursor].rest) {
        if (!ak_pda_reserve(m, &m->work, &m->work_capacity, m->n_work, 1, sizeof *m->work))
            return AK_PDA_NODE_NONE;
        m->work[m->n_work++] = cursor;
    }
    uint32_t representative =
        cursor > AK_PDA_NODE_END ? m->nodes[cursor].representative[lookahead] : cursor;
    while (m->n_work > 0) {
        uint32_t current = m->work[--m->n_work];
        struct ak_pda_node top = replace_top(m, m->nodes[current], lookahead);
        representative = ak_pda_intern_node(m, top.expr, top.position, representative);
        m->nodes[current].representative[lookahead] = representative;
    }
    return representative;
}

uint32_t ak_pda_find_representative(struct ak_pda *m, uint32_t state,
                                    enum ak_pda_lookahead lookahead)
{
    if (m->states[state].representative[lookahead] != AK_PDA_STATE_UNKNOWN)
        return m->states[state].representative[lookahead];
    ak_pda_closure_begin(m);
    m->accepting = m->states[state].accepting;
    for (uint32_t i = 0; i < m->states[state].n && !m->failed; i++) {
        uint32_t representative =
            find_node_representative(m, m->pool[m->states[state].first + i], lookahead);
        if (representative != AK_PDA_NODE_NONE && m->nodes[representative].mark != m->epoch) {
            m->nodes[representative].mark = m->epoch;
            keep_node(m, representative);
        }
    }
    uint32_t representative = ak_pda_closure_finish(m);
    m->states[state].representative[lookahead] = representative;
    return representative;
}
