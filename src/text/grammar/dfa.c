/* Construction, product, trimming and representatives of DFAs. The edges of a state are sorted and
 * contiguous, so a lookup is a binary search and a product merges two lists. */
#include "text/grammar/dfa.h"

#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "base/array.h"

enum { DEAD = UINT32_MAX };

bool ak_grammar_dfa_add_state(struct ak_grammar_dfa *d, bool accepting)
{
    if (d->n_states == AK_GRAMMAR_DFA_STATES_MAX ||
        !ak_reserve(&d->states, &d->states_capacity, d->n_states, 1))
        return false;
    d->states[d->n_states++] =
        (struct ak_grammar_dfa_state){ .first = d->n_edges, .accepting = accepting };
    return true;
}

bool ak_grammar_dfa_add_edge(struct ak_grammar_dfa *d, uint32_t low, uint32_t high, uint32_t to)
{
    struct ak_grammar_dfa_state *s = &d->states[d->n_states - 1];
    struct ak_grammar_dfa_edge *last = s->n > 0 ? &d->edges[s->first + s->n - 1] : NULL;
    if (last && last->to == to && last->high + 1 == low) {
        last->high = high;
        return true;
    }
    if (d->n_edges == AK_GRAMMAR_DFA_EDGES_MAX ||
        !ak_reserve(&d->edges, &d->edges_capacity, d->n_edges, 1))
        return false;
    d->edges[d->n_edges++] = (struct ak_grammar_dfa_edge){ low, high, to };
    s->n++;
    return true;
}

ak_status ak_grammar_dfa_fail(const struct ak_grammar_dfa *d, struct ak_error *error)
{
    if (d->n_states == AK_GRAMMAR_DFA_STATES_MAX || d->n_edges == AK_GRAMMAR_DFA_EDGES_MAX)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "needs more than %d states",
                       AK_GRAMMAR_DFA_STATES_MAX);
    return ak_fail_memory(error, "a pattern", 0);
}

void ak_grammar_dfa_free(struct ak_grammar_dfa *d)
{
    ak_free(d->states);
    ak_free(d->edges);
    *d = (struct ak_grammar_dfa){ 0 };
}

ak_status ak_grammar_dfa_make_all(struct ak_grammar_dfa *out, struct ak_error *error)
{
    return ak_grammar_dfa_make_lengths(0, AK_GRAMMAR_UNBOUNDED, out, error);
}

ak_status ak_grammar_dfa_make_lengths(uint32_t low, uint32_t high, struct ak_grammar_dfa *out,
                                      struct ak_error *error)
{
    uint32_t last = high == AK_GRAMMAR_UNBOUNDED ? low : high;
    *out = (struct ak_grammar_dfa){ 0 };
    if (low > high) /* the empty set */
        return ak_grammar_dfa_add_state(out, false) ? AKUNU_OK : ak_grammar_dfa_fail(out, error);
    for (uint32_t i = 0; i <= last; i++) {
        if (!ak_grammar_dfa_add_state(out, i >= low))
            return ak_grammar_dfa_fail(out, error);
        if ((i < last && !ak_grammar_dfa_add_edge(out, 0, AK_GRAMMAR_CODE_POINT_MAX, i + 1)) ||
            (i == last && high == AK_GRAMMAR_UNBOUNDED &&
             !ak_grammar_dfa_add_edge(out, 0, AK_GRAMMAR_CODE_POINT_MAX, i)))
            return ak_grammar_dfa_fail(out, error);
    }
    return AKUNU_OK;
}

ak_status ak_grammar_dfa_make_string(const char *text, size_t n, struct ak_grammar_dfa *out,
                                     struct ak_error *error)
{
    *out = (struct ak_grammar_dfa){ 0 };
    for (size_t at = 0; at < n;) {
        struct ak_utf8 c = ak_utf8_next(text + at, n - at);
        at += c.bytes;
        if (!ak_grammar_dfa_add_state(out, false) ||
            !ak_grammar_dfa_add_edge(out, c.code, c.code, out->n_states))
            return ak_grammar_dfa_fail(out, error);
    }
    return ak_grammar_dfa_add_state(out, true) ? AKUNU_OK : ak_grammar_dfa_fail(out, error);
}

/* State after character c; DEAD: no edge. */
static uint32_t find_target(const struct ak_grammar_dfa *d, uint32_t state, uint32_t c)
{
    uint32_t low = 0, high = d->states[state].n;
    if (high == 0)
        return DEAD;
    const struct ak_grammar_dfa_edge *edges = ak_grammar_dfa_get_edges(d, state);
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (edges[middle].high < c)
            low = middle + 1;
        else
            high = middle;
    }
    return low < d->states[state].n && edges[low].low <= c ? edges[low].to : DEAD;
}

bool ak_grammar_dfa_accepts(const struct ak_grammar_dfa *d, const char *text, size_t n)
{
    uint32_t state = 0;
    for (size_t at = 0; at < n;) {
        struct ak_utf8 c = ak_utf8_next(text + at, n - at);
        state = c.valid ? find_target(d, state, c.code) : DEAD;
        if (state == DEAD)
            return false;
        at += c.bytes;
    }
    return d->states[state].accepting;
}

bool ak_grammar_dfa_is_empty(const struct ak_grammar_dfa *d)
{
    return d->n_states == 1 && !d->states[0].accepting && d->states[0].n == 0;
}

/* ---- product ------------------------------------------------------------ */
struct product {
    const struct ak_grammar_dfa *a, *b;
    struct {
        uint32_t a, b;
    } * pairs; /* [n], the two states that each new state stands for; b: may be DEAD */
    uint32_t capacity;
    uint32_t *heads, *links; /* pairs by hash */
    uint32_t links_capacity;
    struct ak_grammar_dfa *out;
};

enum { HEADS = 4096 };

/* State of a pair, created when first asked for. DEAD: out of memory, or too many states. */
static uint32_t find_or_add_pair(struct product *p, uint32_t *n, uint32_t a, uint32_t b)
{
    uint32_t *head = &p->heads[(a * 0x9e3779b1u ^ b * 0x85ebca6bu) >> 7 & (HEADS - 1)];
    for (uint32_t i = *head; i; i = p->links[i - 1])
        if (p->pairs[i - 1].a == a && p->pairs[i - 1].b == b)
            return i - 1;
    if (*n == AK_GRAMMAR_DFA_STATES_MAX || !ak_reserve(&p->pairs, &p->capacity, *n, 1) ||
        !ak_reserve(&p->links, &p->links_capacity, *n, 1))
        return DEAD;
    p->pairs[*n].a = a;
    p->pairs[*n].b = b;
    p->links[*n] = *head;
    *head = ++*n;
    return *n - 1;
}

/* Adds the edges of a pair: those of a, split where edges of b begin and end. */
static bool add_product_edges(struct product *p, uint32_t *n, uint32_t a, uint32_t b, bool not_b)
{
    const struct ak_grammar_dfa_state *sa = &p->a->states[a],
                                      *sb = b == DEAD ? NULL : &p->b->states[b];
    uint32_t j = 0, n_b = sb ? sb->n : 0;
    for (uint32_t i = 0; i < sa->n; i++) {
        struct ak_grammar_dfa_edge e = p->a->edges[sa->first + i];
        while (e.low <= e.high) {
            while (j < n_b && p->b->edges[sb->first + j].high < e.low)
                j++;
            const struct ak_grammar_dfa_edge *f = j < n_b ? &p->b->edges[sb->first + j] : NULL;
            uint32_t high = e.high, to_b = DEAD;
            if (f && f->low <= e.low) {
                to_b = f->to;
                high = f->high < high ? f->high : high;
            } else if (f && f->low <= high) {
                high = f->low - 1;
            }
            if (to_b != DEAD || not_b) {
                uint32_t to = find_or_add_pair(p, n, e.to, to_b);
                if (to == DEAD || !ak_grammar_dfa_add_edge(p->out, e.low, high, to))
                    return false;
            }
            e.low = high + 1;
        }
    }
    return true;
}

ak_status ak_grammar_dfa_intersect(const struct ak_grammar_dfa *a, const struct ak_grammar_dfa *b,
                                   bool not_b, struct ak_grammar_dfa *out, struct ak_error *error)
{
    *out = (struct ak_grammar_dfa){ 0 };
    struct product p = { .a = a, .b = b, .out = out };
    uint32_t n = 0;
    p.heads = ak_alloc(HEADS, sizeof *p.heads);
    bool ok = p.heads && find_or_add_pair(&p, &n, 0, 0) != DEAD;
    for (uint32_t i = 0; ok && i < n; i++) {
        uint32_t sa = p.pairs[i].a, sb = p.pairs[i].b;
        bool in_b = sb != DEAD && b->states[sb].accepting;
        ok = ak_grammar_dfa_add_state(out, a->states[sa].accepting && in_b != not_b) &&
             add_product_edges(&p, &n, sa, sb, not_b);
    }
    bool many = n == AK_GRAMMAR_DFA_STATES_MAX;
    ak_free(p.heads);
    ak_free(p.pairs);
    ak_free(p.links);
    if (!ok && many)
        return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "needs more than %d states",
                       AK_GRAMMAR_DFA_STATES_MAX);
    return ok ? ak_grammar_dfa_trim(out, error) : ak_grammar_dfa_fail(out, error);
}

/* ---- trimming ----------------------------------------------------------- */
/* Marks the states from which an accepting state can be reached, walking backwards through lists of
 * each state's predecessors. */
static bool mark_useful(const struct ak_grammar_dfa *d, bool *useful)
{
    uint32_t *first = ak_alloc((size_t)d->n_states + 2, sizeof *first),
             *from = ak_alloc(d->n_edges, sizeof *from);
    uint32_t *queue = ak_alloc(d->n_states, sizeof *queue), n = 0;
    bool ok = first && from && queue;
    for (uint32_t i = 0; ok && i < d->n_edges; i++)
        first[d->edges[i].to + 2]++;
    for (uint32_t i = 0; ok && i < d->n_states; i++)
        first[i + 2] += first[i + 1];
    for (uint32_t s = 0; ok && s < d->n_states; s++) {
        for (uint32_t i = 0; i < d->states[s].n; i++)
            from[first[d->edges[d->states[s].first + i].to + 1]++] = s;
        if (d->states[s].accepting) {
            useful[s] = true;
            queue[n++] = s;
        }
    }
    for (uint32_t head = 0; ok && head < n; head++)
        for (uint32_t i = first[queue[head]]; i < first[queue[head] + 1]; i++)
            if (!useful[from[i]]) {
                useful[from[i]] = true;
                queue[n++] = from[i];
            }
    ak_free(first);
    ak_free(from);
    ak_free(queue);
    return ok;
}

ak_status ak_grammar_dfa_trim(struct ak_grammar_dfa *d, struct ak_error *error)
{
    struct ak_grammar_dfa out = { 0 };
    bool *useful = ak_alloc(d->n_states, sizeof *useful);
    uint32_t *number = ak_alloc(d->n_states, sizeof *number), n = 0;
    bool ok = useful && number && mark_useful(d, useful);
    for (uint32_t s = 0; ok && s < d->n_states; s++)
        number[s] = useful[s] || s == 0 ? n++ : DEAD;
    for (uint32_t s = 0; ok && s < d->n_states; s++) {
        if (number[s] == DEAD)
            continue;
        ok = ak_grammar_dfa_add_state(&out, d->states[s].accepting);
        for (uint32_t i = 0; ok && i < d->states[s].n; i++) {
            const struct ak_grammar_dfa_edge *e = &d->edges[d->states[s].first + i];
            if (useful[e->to])
                ok = ak_grammar_dfa_add_edge(&out, e->low, e->high, number[e->to]);
        }
    }
    ak_free(useful);
    ak_free(number);
    if (!ok) {
        ak_grammar_dfa_free(&out);
        return ak_fail_memory(error, "a pattern", 0);
    }
    ak_grammar_dfa_free(d);
    *d = out;
    return AKUNU_OK;
}

/* ---- representatives ---------------------------------------------------- */
static bool edges_equal(const struct ak_grammar_dfa *d, const uint32_t *representatives, uint32_t a,
                        uint32_t b)
{
    const struct ak_grammar_dfa_state *x = &d->states[a], *y = &d->states[b];
    bool same = x->n == y->n && x->accepting == y->accepting;
    for (uint32_t i = 0; same && i < x->n; i++) {
        const struct ak_grammar_dfa_edge *e = &d->edges[x->first + i], *f = &d->edges[y->first + i];
        same = e->low == f->low && e->high == f->high &&
               representatives[e->to] == representatives[f->to];
    }
    return same;
}

static uint32_t hash_edges(const struct ak_grammar_dfa *d, const uint32_t *representatives,
                           uint32_t state)
{
    const struct ak_grammar_dfa_state *s = &d->states[state];
    uint32_t hash = s->accepting;
    for (uint32_t i = 0; i < s->n; i++)
        hash =
            (hash ^ d->edges[s->first + i].low ^ representatives[d->edges[s->first + i].to] << 11) *
            0x9e3779b1u;
    return hash >> 7 & (HEADS - 1);
}

/* One refinement step: separates states with edges to different representatives. Returns the number
 * of classes. */
static uint32_t refine_classes(const struct ak_grammar_dfa *d, const uint32_t *representatives,
                               uint32_t *next, uint32_t *heads, uint32_t *links)
{
    uint32_t n = 0;
    memset(heads, 0, HEADS * sizeof *heads);
    for (uint32_t s = 0; s < d->n_states; s++) {
        uint32_t *head = &heads[hash_edges(d, representatives, s)], i = *head;
        while (i && !edges_equal(d, representatives, s, i - 1))
            i = links[i - 1];
        next[s] = i ? i - 1 : s;
        if (i == 0) {
            links[s] = *head;
            *head = s + 1;
            n++;
        }
    }
    return n;
}

bool ak_grammar_dfa_find_representatives(const struct ak_grammar_dfa *d, uint32_t steps,
                                         uint32_t *representatives)
{
    uint32_t *next = ak_alloc(d->n_states, sizeof *next),
             *links = ak_alloc(d->n_states, sizeof *links);
    uint32_t *heads = ak_alloc(HEADS, sizeof *heads), first[2] = { DEAD, DEAD }, n = 0,
             n_previous = 0;
    bool ok = next && links && heads;
    for (uint32_t s = 0; s < d->n_states; s++) {
        uint32_t *one = &first[d->states[s].accepting];
        *one = *one == DEAD ? s : *one;
        representatives[s] = *one;
    }
    for (uint32_t i = 0; ok && i < steps && (i == 0 || n != n_previous); i++) {
        n_previous = n;
        n = refine_classes(d, representatives, next, heads, links);
        memcpy(representatives, next, d->n_states * sizeof *representatives);
    }
    ak_free(next);
    ak_free(links);
    ak_free(heads);
    return ok;
}
