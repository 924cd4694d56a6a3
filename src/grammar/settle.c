/* What follows from a grammar as a whole: which parts have a text, which have the empty
 * one, and that none begins with itself. */
#include <string.h>

#include "base/mem.h"
#include "base/show.h"
#include "grammar/build.h"

/* Calls fn for each place of a part that its text depends on: optional members are not
 * needed, and a text that waits is there without what it waits for. */
static void each_need(const struct ak_grammar *g, const struct ak_part *p,
                      void (*fn)(void *to, uint32_t part), void *to)
{
    const struct ak_members *m;
    switch ((enum ak_part_kind)p->kind) {
    case AK_PART_SEQUENCE:
    case AK_PART_CHOICE:
        for (uint32_t i = 0; i < p->b; i++)
            fn(to, g->lists[p->a + i]);
        break;
    case AK_PART_REPEAT: fn(to, p->a); break;
    case AK_PART_RULE: fn(to, g->rules[p->a].part); break;
    case AK_PART_MEMBERS:
        m = &g->members[p->a];
        for (uint32_t i = 0; i < m->n; i++)
            if (g->member[m->first + i].required)
                fn(to, g->member[m->first + i].part);
        break;
    case AK_PART_UNTIL:
        for (uint32_t i = 0; !p->b && i < g->words[p->a].n_thens; i++)
            fn(to, g->lists[g->words[p->a].thens + i]);
        break;
    case AK_PART_TOKEN:
    case AK_PART_NOTHING:
    case AK_PART_EMPTY:
    case AK_PART_BYTES:
    case AK_PART_LITERAL: break;
    }
}

/* The other way round: which parts need a part, once for each time. */
struct users {
    const struct ak_grammar *g;
    uint32_t *first, *user;
    uint32_t current;
};

static void count_user(void *to, uint32_t part)
{
    struct users *u = to;
    u->first[part + 1]++;
}

static void add_user(void *to, uint32_t part)
{
    struct users *u = to;
    u->user[--u->first[part + 1]] = u->current;
}

static bool find_users(const struct ak_grammar *g, struct users *u)
{
    u->g = g;
    u->first = ak_alloc(g->n_parts + 2, sizeof *u->first);
    if (!u->first)
        return false;
    for (uint32_t i = 0; i < g->n_parts; i++)
        each_need(g, &g->parts[i], count_user, u);
    for (uint32_t i = 0; i < g->n_parts; i++)
        u->first[i + 1] += u->first[i];
    u->first[g->n_parts + 1] = u->first[g->n_parts];
    u->user = ak_alloc(u->first[g->n_parts], sizeof *u->user);
    if (!u->user)
        return false;
    for (u->current = 0; u->current < g->n_parts; u->current++)
        each_need(g, &g->parts[u->current], add_user, u);
    /* each end is now a beginning: the users of part i are first[i + 1] … first[i + 2] */
    return true;
}

/* Spreads a property from the parts that have it by themselves to those that have it
 * because of others: a part gets it when missing[i] more of its needs have it. */
struct spread {
    const struct users *users;
    uint32_t *missing, *queue, n;
};

static bool has_text(const struct ak_grammar *g, const struct ak_part *p, uint32_t *missing)
{
    *missing = 1;
    switch ((enum ak_part_kind)p->kind) {
    case AK_PART_SEQUENCE: *missing = p->b; return false;
    case AK_PART_CHOICE:
    case AK_PART_RULE: return false;
    case AK_PART_REPEAT: return p->b == 0;
    case AK_PART_MEMBERS:
        *missing = 0;
        for (uint32_t i = 0; i < g->members[p->a].n; i++)
            *missing += g->member[g->members[p->a].first + i].required;
        return *missing == 0;
    case AK_PART_NOTHING: return false;
    case AK_PART_EMPTY:
    case AK_PART_BYTES:
    case AK_PART_LITERAL:
    case AK_PART_TOKEN: return true;
    case AK_PART_UNTIL: return p->b;
    }
    return false;
}

static bool has_empty_text(const struct ak_grammar *g, const struct ak_part *p, uint32_t *missing)
{
    bool has = has_text(g, p, missing);
    if (p->kind == AK_PART_MEMBERS)
        return has && g->members[p->a].low == 0;
    if (p->kind == AK_PART_UNTIL && !has) /* a word is no empty text, whatever follows it */
        *missing = UINT32_MAX;
    return has && p->kind != AK_PART_BYTES && p->kind != AK_PART_LITERAL &&
           p->kind != AK_PART_TOKEN;
}

static void spread(struct ak_grammar *g, struct spread *s,
                   bool (*has)(const struct ak_grammar *, const struct ak_part *, uint32_t *))
{
    s->n = 0;
    for (uint32_t i = 0; i < g->n_parts; i++)
        if (has(g, &g->parts[i], &s->missing[i])) {
            s->missing[i] = 0;
            s->queue[s->n++] = i;
        }
    for (uint32_t head = 0; head < s->n; head++) {
        uint32_t part = s->queue[head];
        for (uint32_t i = s->users->first[part + 1]; i < s->users->first[part + 2]; i++) {
            uint32_t user = s->users->user[i];
            if (s->missing[user] > 0 && --s->missing[user] == 0)
                s->queue[s->n++] = user;
        }
    }
}

static bool find_properties(struct ak_grammar *g)
{
    struct users users = { 0 };
    struct spread s = { .users = &users };
    s.missing = ak_alloc(g->n_parts, sizeof *s.missing);
    s.queue = ak_alloc(g->n_parts, sizeof *s.queue);
    bool ok = s.missing && s.queue && find_users(g, &users);
    if (ok) {
        spread(g, &s, has_text);
        for (uint32_t i = 0; i < s.n; i++)
            g->parts[s.queue[i]].possible = true;
        spread(g, &s, has_empty_text);
        for (uint32_t i = 0; i < s.n; i++)
            g->parts[s.queue[i]].nullable = true;
    }
    ak_free(users.first);
    ak_free(users.user);
    ak_free(s.missing);
    ak_free(s.queue);
    return ok;
}

/* ---- left recursion ----------------------------------------------------- */
enum { NEW, OPEN, DONE };

struct walk {
    uint32_t part, next; /* its next child to look at */
};

/* Child number `i` of those that a text of the part can begin with; false: no more. */
static bool beginning(const struct ak_grammar *g, const struct ak_part *p, uint32_t i,
                      uint32_t *child)
{
    switch ((enum ak_part_kind)p->kind) {
    case AK_PART_SEQUENCE:
        if (i >= p->b || (i > 0 && !g->parts[g->lists[p->a + i - 1]].nullable))
            return false;
        *child = g->lists[p->a + i];
        return true;
    case AK_PART_CHOICE:
        if (i >= p->b)
            return false;
        *child = g->lists[p->a + i];
        return true;
    case AK_PART_REPEAT: *child = p->a; return i == 0;
    case AK_PART_RULE: *child = g->rules[p->a].part; return i == 0;
    case AK_PART_MEMBERS:
        if (i >= g->members[p->a].n)
            return false;
        *child = g->member[g->members[p->a].first + i].part;
        return true;
    case AK_PART_UNTIL:
    case AK_PART_TOKEN:
    case AK_PART_NOTHING:
    case AK_PART_EMPTY:
    case AK_PART_BYTES:
    case AK_PART_LITERAL: return false;
    }
    return false;
}

static ak_status refuse(const struct ak_grammar *g, const struct walk *stack, uint32_t n,
                        struct ak_error *error)
{
    char shown[AK_SHOW_BYTES];
    for (uint32_t i = n; i-- > 0;) {
        const struct ak_part *p = &g->parts[stack[i].part];
        if (p->kind != AK_PART_RULE || !*g->rules[p->a].name)
            continue;
        const struct ak_rule *r = &g->rules[p->a];
        ak_show(r->name, strlen(r->name), shown);
        if (r->line > 0)
            return ak_fail(error, AKUNU_ERROR_FORMAT,
                           "%u:%u: left recursion: rule \"%s\" can begin with itself", r->line,
                           r->column, shown);
        return ak_fail(error, AKUNU_ERROR_FORMAT, "left recursion: %s can begin with itself",
                       shown);
    }
    return ak_fail(error, AKUNU_ERROR_FORMAT, "left recursion: a part can begin with itself");
}

static ak_status check_recursion(const struct ak_grammar *g, struct ak_error *error)
{
    uint8_t *color = ak_alloc(g->n_parts, 1);
    struct walk *stack = ak_alloc(g->n_parts, sizeof *stack);
    ak_status status = color && stack ? AKUNU_OK : ak_fail_memory(error, "a grammar", 0);
    for (uint32_t start = 0; status == AKUNU_OK && start < g->n_parts; start++) {
        if (color[start] != NEW)
            continue;
        uint32_t n = 1;
        stack[0] = (struct walk){ start, 0 };
        color[start] = OPEN;
        while (status == AKUNU_OK && n > 0) {
            struct walk *top = &stack[n - 1];
            uint32_t child;
            if (!beginning(g, &g->parts[top->part], top->next++, &child)) {
                color[top->part] = DONE;
                n--;
            } else if (color[child] == OPEN) {
                status = refuse(g, stack, n, error);
            } else if (color[child] == NEW) {
                color[child] = OPEN;
                stack[n++] = (struct walk){ child, 0 };
            }
        }
    }
    ak_free(color);
    ak_free(stack);
    return status;
}

ak_status ak_grammar_settle(struct ak_grammar *g, struct ak_error *error)
{
    if (!find_properties(g))
        return ak_fail_memory(error, "a grammar", 0);
    return check_recursion(g, error);
}
