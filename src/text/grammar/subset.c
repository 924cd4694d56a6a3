/* Compiles a pattern to a DFA: Thompson's construction gives an NFA, subset construction the DFA. A
 * match may start anywhere, so the NFA's start is added before every character. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "text/grammar/pattern.h"
#include "base/array.h"

enum { NFA_STATES_MAX = 1 << 15, STATE_NONE = UINT32_MAX };
/* NFA states visited for one pattern: a limit on time. */
#define WORK_MAX UINT64_C(400000000)

enum kind { CHARS, SPLIT, BEGIN, END, FOUND };

struct state {
    enum kind kind;
    uint32_t set;             /* of CHARS: index in the pattern's sets */
    uint32_t to, alternative; /* next states; alternative: of SPLIT */
};

struct nfa {
    const struct ak_grammar_pattern *p;
    struct state *states;
    uint32_t n, capacity;
    bool failed;
};

static uint32_t add_state(struct nfa *f, struct state s)
{
    if (f->n == NFA_STATES_MAX || !ak_reserve(&f->states, &f->capacity, f->n, 1)) {
        f->failed = true;
        return 0;
    }
    f->states[f->n] = s;
    return f->n++;
}

/* State that matches the node and continues with `to`. */
static uint32_t emit_node(struct nfa *f, uint32_t node, uint32_t to)
{
    struct ak_grammar_pattern_node n = f->p->nodes[node];
    uint32_t first, loop;
    if (f->failed)
        return 0;
    switch (n.kind) {
    case AK_GRAMMAR_PATTERN_CHARS:
        return add_state(f, (struct state){ .kind = CHARS, .set = n.a, .to = to });
    case AK_GRAMMAR_PATTERN_BEGIN: return add_state(f, (struct state){ .kind = BEGIN, .to = to });
    case AK_GRAMMAR_PATTERN_END: return add_state(f, (struct state){ .kind = END, .to = to });
    case AK_GRAMMAR_PATTERN_SEQUENCE:
        for (uint32_t i = n.b; i-- > 0;)
            to = emit_node(f, f->p->lists[n.a + i], to);
        return to;
    case AK_GRAMMAR_PATTERN_ALTERNATION:
        first = emit_node(f, f->p->lists[n.a], to);
        for (uint32_t i = 1; i < n.b; i++)
            first = add_state(
                f, (struct state){ .kind = SPLIT,
                                   .to = first,
                                   .alternative = emit_node(f, f->p->lists[n.a + i], to) });
        return first;
    case AK_GRAMMAR_PATTERN_REPEAT:
        first = to;
        if (n.high == AK_GRAMMAR_UNBOUNDED) {
            loop = first = add_state(f, (struct state){ .kind = SPLIT, .alternative = to });
            uint32_t inner = emit_node(f, n.a, loop);
            if (!f->failed)
                f->states[loop].to = inner;
        } else {
            for (uint32_t i = n.low; i < n.high && !f->failed; i++)
                first = add_state(f, (struct state){ .kind = SPLIT,
                                                     .to = emit_node(f, n.a, first),
                                                     .alternative = to });
        }
        for (uint32_t i = 0; i < n.low && !f->failed; i++) {
            uint32_t n_previous = f->n;
            first = emit_node(f, n.a, first);
            if (f->n == n_previous)
                break; /* matches only the empty text, however often */
        }
        return first;
    }
    return to;
}

/* Interned sets of NFA states, each in rising order. */
struct sets {
    struct {
        uint32_t first, n;
    } * list;
    uint32_t n, list_capacity;
    uint32_t *pool, n_pool, pool_capacity;
    uint32_t *heads, *links, links_capacity;
};

struct subset_builder {
    struct nfa nfa;
    struct sets sets;
    uint8_t *marks;
    uint32_t *work, n_work;
    uint32_t *set, n_set;
    bool found;    /* the closure contains FOUND */
    uint64_t done; /* NFA states visited */
    struct ak_grammar_dfa *out;
};

enum { HEADS = 4096 };

static void push_state(struct subset_builder *m, uint32_t state)
{
    if (!m->marks[state]) {
        m->marks[state] = 1;
        m->work[m->n_work++] = state;
    }
}

/* Epsilon closure of the pushed states, into m->set. `begin`, `end`: at that end of the text. */
static void close_states(struct subset_builder *m, bool begin, bool end)
{
    m->n_set = 0;
    m->found = false;
    for (uint32_t head = 0; head < m->n_work; head++) {
        const struct state *s = &m->nfa.states[m->work[head]];
        if (s->kind == SPLIT) {
            push_state(m, s->to);
            push_state(m, s->alternative);
        } else if ((s->kind == BEGIN && begin) || (s->kind == END && end)) {
            push_state(m, s->to);
        }
        m->found = m->found || s->kind == FOUND;
    }
    m->done += m->n_work;
    for (uint32_t i = 0; i < m->n_work; i++) {
        enum kind kind = m->nfa.states[m->work[i]].kind;
        if (kind == CHARS || kind == END || kind == FOUND)
            m->set[m->n_set++] = m->work[i];
        m->marks[m->work[i]] = 0;
    }
    m->n_work = 0;
}

static int compare_u32(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Number of the set m->set. STATE_NONE: out of memory, or too many sets. */
static uint32_t intern_set(struct subset_builder *m)
{
    struct sets *s = &m->sets;
    uint32_t hash = m->n_set;
    qsort(m->set, m->n_set, sizeof *m->set, compare_u32);
    for (uint32_t i = 0; i < m->n_set; i++)
        hash = (hash ^ m->set[i]) * 16777619u;
    uint32_t *head = &s->heads[(hash ^ hash >> 15) & (HEADS - 1)];
    for (uint32_t i = *head; i; i = s->links[i - 1])
        if (s->list[i - 1].n == m->n_set &&
            memcmp(s->pool + s->list[i - 1].first, m->set, m->n_set * sizeof *m->set) == 0)
            return i - 1;
    if (s->n == AK_GRAMMAR_DFA_STATES_MAX || !ak_reserve(&s->list, &s->list_capacity, s->n, 1) ||
        !ak_reserve(&s->links, &s->links_capacity, s->n, 1) ||
        !ak_reserve(&s->pool, &s->pool_capacity, s->n_pool, m->n_set))
        return STATE_NONE;
    if (m->n_set > 0)
        memcpy(s->pool + s->n_pool, m->set, m->n_set * sizeof *m->set);
    s->list[s->n].first = s->n_pool;
    s->list[s->n].n = m->n_set;
    s->n_pool += m->n_set;
    s->links[s->n] = *head;
    *head = s->n + 1;
    return s->n++;
}

/* Boundaries of the ranges that a state distinguishes, in rising order: all characters from one up
 * to the next have the same transition. */
static bool find_boundaries(const struct subset_builder *m, uint32_t state, uint32_t **out,
                            uint32_t *n)
{
    const uint32_t *members = m->sets.pool + m->sets.list[state].first;
    uint32_t n_max = 1;
    for (uint32_t i = 0; i < m->sets.list[state].n; i++)
        if (m->nfa.states[members[i]].kind == CHARS)
            n_max += 2 * m->nfa.p->sets[m->nfa.states[members[i]].set].n;
    *out = ak_alloc(n_max, sizeof **out);
    if (!*out)
        return false;
    (*out)[0] = 0;
    *n = 1;
    for (uint32_t i = 0; i < m->sets.list[state].n; i++) {
        const struct state *s = &m->nfa.states[members[i]];
        for (uint32_t j = 0; s->kind == CHARS && j < m->nfa.p->sets[s->set].n; j++) {
            (*out)[(*n)++] = m->nfa.p->sets[s->set].ranges[j].low;
            (*out)[(*n)++] = m->nfa.p->sets[s->set].ranges[j].high + 1;
        }
    }
    qsort(*out, *n, sizeof **out, compare_u32);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < *n; i++)
        if ((*out)[i] <= AK_GRAMMAR_CODE_POINT_MAX && (kept == 0 || (*out)[i] != (*out)[kept - 1]))
            (*out)[kept++] = (*out)[i];
    *n = kept;
    return true;
}

/* Adds one state of the DFA with its edges. Once the pattern was found, any text may follow. */
static bool make_state(struct subset_builder *m, uint32_t state, uint32_t root)
{
    uint32_t *at = NULL, n = 0, first = m->sets.list[state].first,
             n_members = m->sets.list[state].n;
    for (uint32_t i = 0; i < n_members; i++)
        push_state(m, m->sets.pool[first + i]);
    if (state == 0)
        push_state(m, root);
    close_states(m, state == 0, true);
    bool found = false, accepting = m->found;
    for (uint32_t i = 0; i < n_members; i++)
        found = found || m->nfa.states[m->sets.pool[first + i]].kind == FOUND;
    if (!ak_grammar_dfa_add_state(m->out, accepting))
        return false;
    if (found)
        return ak_grammar_dfa_add_edge(m->out, 0, AK_GRAMMAR_CODE_POINT_MAX, state);
    if (!find_boundaries(m, state, &at, &n))
        return false;
    bool fine = true;
    for (uint32_t i = 0; fine && i < n; i++) {
        for (uint32_t j = 0; j < n_members; j++) {
            const struct state *s = &m->nfa.states[m->sets.pool[first + j]];
            if (s->kind == CHARS && ak_grammar_char_set_has(&m->nfa.p->sets[s->set], at[i]))
                push_state(m, s->to);
        }
        m->done += n_members;
        push_state(m, root); /* a match may start anywhere */
        close_states(m, false, false);
        uint32_t to = intern_set(m);
        fine = to != STATE_NONE && m->done < WORK_MAX &&
               ak_grammar_dfa_add_edge(m->out, at[i],
                                       i + 1 < n ? at[i + 1] - 1 : AK_GRAMMAR_CODE_POINT_MAX, to);
    }
    ak_free(at);
    return fine;
}

ak_status ak_grammar_pattern_compile(const struct ak_grammar_pattern *p, struct ak_grammar_dfa *out,
                                     struct ak_error *error)
{
    struct subset_builder m = { .nfa = { .p = p }, .out = out };
    *out = (struct ak_grammar_dfa){ 0 };
    uint32_t found = add_state(&m.nfa, (struct state){ .kind = FOUND });
    uint32_t root = emit_node(&m.nfa, p->root, found);
    m.marks = ak_alloc(m.nfa.n, 1);
    m.work = ak_alloc(m.nfa.n, sizeof *m.work);
    m.set = ak_alloc(m.nfa.n, sizeof *m.set);
    m.sets.heads = ak_alloc(HEADS, sizeof *m.sets.heads);
    bool fine = !m.nfa.failed && m.marks && m.work && m.set && m.sets.heads;
    bool many = m.nfa.n == NFA_STATES_MAX;
    if (fine) {
        push_state(&m, root);
        close_states(&m, true, false);
        fine = intern_set(&m) == 0;
        /* no transition may lead back to the first state: only it is at the beginning of the text
         */
        m.sets.links[0] = 0;
        memset(m.sets.heads, 0, HEADS * sizeof *m.sets.heads);
    }
    for (uint32_t i = 0; fine && i < m.sets.n; i++)
        fine = make_state(&m, i, root);
    many = many || m.done >= WORK_MAX || m.sets.n == AK_GRAMMAR_DFA_STATES_MAX ||
           out->n_edges == AK_GRAMMAR_DFA_EDGES_MAX;
    ak_free(m.nfa.states);
    ak_free(m.marks);
    ak_free(m.work);
    ak_free(m.set);
    ak_free(m.sets.list);
    ak_free(m.sets.pool);
    ak_free(m.sets.heads);
    ak_free(m.sets.links);
    if (fine)
        return ak_grammar_dfa_trim(out, error);
    if (many)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "needs more than %d states",
                       AK_GRAMMAR_DFA_STATES_MAX);
    return ak_fail_memory(error, "a pattern", 0);
}
