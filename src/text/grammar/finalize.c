/* Finalizes a grammar: finds which expressions are productive and which are nullable, and refuses
 * left recursion. Properties spread from expressions to their users through a queue, in time linear
 * in the size of the grammar. */
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "text/grammar/builder.h"

/* Calls fn for each expression that `p` depends on. Optional members do not count; nor do the
 * continuations of keywords if the text may end without one. */
static void visit_needs(const struct ak_grammar *g, const struct ak_grammar_expr *p,
                        void (*fn)(void *data, uint32_t expr), void *data)
{
    const struct ak_grammar_members *m;
    switch ((enum ak_grammar_expr_kind)p->kind) {
    case AK_GRAMMAR_EXPR_SEQUENCE:
    case AK_GRAMMAR_EXPR_ALTERNATION:
        for (uint32_t i = 0; i < p->b; i++)
            fn(data, g->lists[p->a + i]);
        break;
    case AK_GRAMMAR_EXPR_REPEAT: fn(data, p->a); break;
    case AK_GRAMMAR_EXPR_RULE: fn(data, g->rules[p->a].expr); break;
    case AK_GRAMMAR_EXPR_MEMBERS:
        m = &g->members[p->a];
        for (uint32_t i = 0; i < m->n; i++)
            if (g->member[m->first + i].required)
                fn(data, g->member[m->first + i].expr);
        break;
    case AK_GRAMMAR_EXPR_UNTIL:
        for (uint32_t i = 0; !p->b && i < g->automata[p->a].n_continuations; i++)
            fn(data, g->lists[g->automata[p->a].continuations + i]);
        break;
    case AK_GRAMMAR_EXPR_TOKEN:
    case AK_GRAMMAR_EXPR_NOTHING:
    case AK_GRAMMAR_EXPR_EMPTY:
    case AK_GRAMMAR_EXPR_BYTES:
    case AK_GRAMMAR_EXPR_LITERAL: break;
    }
}

/* The reverse: the users of each expression, once per use. */
struct users {
    const struct ak_grammar *g;
    uint32_t *first, *user;
    uint32_t current;
};

static void count_user(void *data, uint32_t expr)
{
    struct users *u = data;
    u->first[expr + 1]++;
}

static void add_user(void *data, uint32_t expr)
{
    struct users *u = data;
    u->user[--u->first[expr + 1]] = u->current;
}

static bool find_users(const struct ak_grammar *g, struct users *u)
{
    u->g = g;
    u->first = ak_alloc(g->n_exprs + 2, sizeof *u->first);
    if (!u->first)
        return false;
    for (uint32_t i = 0; i < g->n_exprs; i++)
        visit_needs(g, &g->exprs[i], count_user, u);
    for (uint32_t i = 0; i < g->n_exprs; i++)
        u->first[i + 1] += u->first[i];
    u->first[g->n_exprs + 1] = u->first[g->n_exprs];
    u->user = ak_alloc(u->first[g->n_exprs], sizeof *u->user);
    if (!u->user)
        return false;
    for (u->current = 0; u->current < g->n_exprs; u->current++)
        visit_needs(g, &g->exprs[u->current], add_user, u);
    /* filling moved each end to its start: the users of expression i are
     * user[first[i + 1]] … user[first[i + 2] − 1] */
    return true;
}

/* Propagates a property from expressions to their users. missing[i]: needs that must still get it
 * before expression i does. queue: the n expressions that have it. */
struct propagation {
    const struct users *users;
    uint32_t *missing, *queue, n;
};

static bool has_text(const struct ak_grammar *g, const struct ak_grammar_expr *p, uint32_t *missing)
{
    *missing = 1;
    switch ((enum ak_grammar_expr_kind)p->kind) {
    case AK_GRAMMAR_EXPR_SEQUENCE: *missing = p->b; return false;
    case AK_GRAMMAR_EXPR_ALTERNATION:
    case AK_GRAMMAR_EXPR_RULE: return false;
    case AK_GRAMMAR_EXPR_REPEAT: return p->b == 0;
    case AK_GRAMMAR_EXPR_MEMBERS:
        *missing = 0;
        for (uint32_t i = 0; i < g->members[p->a].n; i++)
            *missing += g->member[g->members[p->a].first + i].required;
        return *missing == 0;
    case AK_GRAMMAR_EXPR_NOTHING: return false;
    case AK_GRAMMAR_EXPR_EMPTY:
    case AK_GRAMMAR_EXPR_BYTES:
    case AK_GRAMMAR_EXPR_LITERAL:
    case AK_GRAMMAR_EXPR_TOKEN: return true;
    case AK_GRAMMAR_EXPR_UNTIL: return p->b;
    }
    return false;
}

static bool has_empty_text(const struct ak_grammar *g, const struct ak_grammar_expr *p,
                           uint32_t *missing)
{
    bool has = has_text(g, p, missing);
    if (p->kind == AK_GRAMMAR_EXPR_MEMBERS)
        return has && g->members[p->a].low == 0;
    if (p->kind == AK_GRAMMAR_EXPR_UNTIL && !has) /* a keyword is never empty */
        *missing = UINT32_MAX;
    return has && p->kind != AK_GRAMMAR_EXPR_BYTES && p->kind != AK_GRAMMAR_EXPR_LITERAL &&
           p->kind != AK_GRAMMAR_EXPR_TOKEN;
}

static void propagate(struct ak_grammar *g, struct propagation *s,
                      bool (*has)(const struct ak_grammar *, const struct ak_grammar_expr *,
                                  uint32_t *))
{
    s->n = 0;
    for (uint32_t i = 0; i < g->n_exprs; i++)
        if (has(g, &g->exprs[i], &s->missing[i])) {
            s->missing[i] = 0;
            s->queue[s->n++] = i;
        }
    for (uint32_t head = 0; head < s->n; head++) {
        uint32_t expr = s->queue[head];
        for (uint32_t i = s->users->first[expr + 1]; i < s->users->first[expr + 2]; i++) {
            uint32_t user = s->users->user[i];
            if (s->missing[user] > 0 && --s->missing[user] == 0)
                s->queue[s->n++] = user;
        }
    }
}

static bool find_properties(struct ak_grammar *g)
{
    struct users users = { 0 };
    struct propagation s = { .users = &users };
    s.missing = ak_alloc(g->n_exprs, sizeof *s.missing);
    s.queue = ak_alloc(g->n_exprs, sizeof *s.queue);
    bool ok = s.missing && s.queue && find_users(g, &users);
    if (ok) {
        propagate(g, &s, has_text);
        for (uint32_t i = 0; i < s.n; i++)
            g->exprs[s.queue[i]].productive = true;
        propagate(g, &s, has_empty_text);
        for (uint32_t i = 0; i < s.n; i++)
            g->exprs[s.queue[i]].nullable = true;
    }
    ak_free(users.first);
    ak_free(users.user);
    ak_free(s.missing);
    ak_free(s.queue);
    return ok;
}

/* ---- left recursion ----------------------------------------------------- */
enum { NEW, OPEN, DONE };

struct visit {
    uint32_t expr, next; /* index of the next child to visit */
};

/* The i-th child that a text of the expression can begin with; false: there are no more. */
static bool get_beginning(const struct ak_grammar *g, const struct ak_grammar_expr *p, uint32_t i,
                          uint32_t *child)
{
    switch ((enum ak_grammar_expr_kind)p->kind) {
    case AK_GRAMMAR_EXPR_SEQUENCE:
        if (i >= p->b || (i > 0 && !g->exprs[g->lists[p->a + i - 1]].nullable))
            return false;
        *child = g->lists[p->a + i];
        return true;
    case AK_GRAMMAR_EXPR_ALTERNATION:
        if (i >= p->b)
            return false;
        *child = g->lists[p->a + i];
        return true;
    case AK_GRAMMAR_EXPR_REPEAT: *child = p->a; return i == 0;
    case AK_GRAMMAR_EXPR_RULE: *child = g->rules[p->a].expr; return i == 0;
    case AK_GRAMMAR_EXPR_MEMBERS:
        if (i >= g->members[p->a].n)
            return false;
        *child = g->member[g->members[p->a].first + i].expr;
        return true;
    case AK_GRAMMAR_EXPR_UNTIL:
    case AK_GRAMMAR_EXPR_TOKEN:
    case AK_GRAMMAR_EXPR_NOTHING:
    case AK_GRAMMAR_EXPR_EMPTY:
    case AK_GRAMMAR_EXPR_BYTES:
    case AK_GRAMMAR_EXPR_LITERAL: return false;
    }
    return false;
}

static ak_status fail_recursion(const struct ak_grammar *g, const struct visit *stack, uint32_t n,
                                struct ak_error *error)
{
    char shown[AK_SHOW_BYTES];
    for (uint32_t i = n; i-- > 0;) {
        const struct ak_grammar_expr *p = &g->exprs[stack[i].expr];
        if (p->kind != AK_GRAMMAR_EXPR_RULE || !*g->rules[p->a].name)
            continue;
        const struct ak_grammar_rule *r = &g->rules[p->a];
        ak_show(r->name, strlen(r->name), shown);
        if (r->line > 0)
            return ak_fail(error, AKUNU_ERROR_FORMAT,
                           "%u:%u: left recursion: rule \"%s\" can begin with itself", r->line,
                           r->column, shown);
        return ak_fail(error, AKUNU_ERROR_FORMAT, "left recursion: %s can begin with itself",
                       shown);
    }
    return ak_fail(error, AKUNU_ERROR_FORMAT,
                   "left recursion: an expression can begin with itself");
}

static ak_status check_recursion(const struct ak_grammar *g, struct ak_error *error)
{
    uint8_t *color = ak_alloc(g->n_exprs, 1);
    struct visit *stack = ak_alloc(g->n_exprs, sizeof *stack);
    ak_status status = color && stack ? AKUNU_OK : ak_fail_memory(error, "a grammar", 0);
    for (uint32_t start = 0; status == AKUNU_OK && start < g->n_exprs; start++) {
        if (color[start] != NEW)
            continue;
        uint32_t n = 1;
        stack[0] = (struct visit){ start, 0 };
        color[start] = OPEN;
        while (status == AKUNU_OK && n > 0) {
            struct visit *top = &stack[n - 1];
            uint32_t child;
            if (!get_beginning(g, &g->exprs[top->expr], top->next++, &child)) {
                color[top->expr] = DONE;
                n--;
            } else if (color[child] == OPEN) {
                status = fail_recursion(g, stack, n, error);
            } else if (color[child] == NEW) {
                color[child] = OPEN;
                stack[n++] = (struct visit){ child, 0 };
            }
        }
    }
    ak_free(color);
    ak_free(stack);
    return status;
}

ak_status ak_grammar_finalize(struct ak_grammar *g, struct ak_error *error)
{
    if (!find_properties(g))
        return ak_fail_memory(error, "a grammar", 0);
    return check_recursion(g, error);
}
