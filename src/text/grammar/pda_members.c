/* Members of an object: which may come next, given those already written.
 *
 * A member set is a header word, then one bit per member if the order is free. Header: bits 0 to 31
 * the number of members, bits 32 to 62 the first member that may come next if the order is fixed,
 * bit 63 whether a comma was written. */
#include <string.h>

#include "text/grammar/pda.h"

struct view {
    const struct ak_grammar_members *m;
    const struct ak_grammar_member *list;
    const struct ak_grammar_expr *exprs;
    const uint64_t *bits; /* members written; NULL: fixed order, or none written */
    uint32_t n, next;
    bool comma;
};

static struct view load_view(const struct ak_pda *m, const struct ak_pda_node *f)
{
    const struct ak_grammar *g = m->g;
    const struct ak_grammar_members *members = &g->members[g->exprs[f->expr].a];
    struct view v = { .m = members,
                      .list = members->n > 0 ? g->member + members->first : NULL,
                      .exprs = g->exprs };
    if (f->position > 0) {
        const uint64_t *words = m->words + m->member_sets[f->position].first;
        v.n = (uint32_t)words[0];
        v.next = (uint32_t)(words[0] >> 32) & 0x7fffffff;
        v.comma = words[0] >> 63;
        v.bits = members->ordered ? NULL : words + 1;
    }
    return v;
}

static bool has_member(const struct view *v, uint32_t i)
{
    return v->m->ordered ? i < v->next : v->bits && (v->bits[i / 64] >> (i % 64) & 1);
}

/* Number of required members that are not written yet. */
static uint32_t count_missing(const struct view *v)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < v->m->n; i++)
        n += v->list[i].required && !has_member(v, i);
    return n;
}

/* Fixed order: may member i come next, with no required member skipped and enough members left to
 * reach the minimum? */
static bool is_in_order(const struct view *v, uint32_t i)
{
    uint64_t n = (uint64_t)v->n + 1;
    for (uint32_t j = v->next; j < i; j++)
        if (v->list[j].required)
            return false;
    if (n >= v->m->low || v->list[i].is_repeatable)
        return true;
    for (uint32_t j = i + 1; j < v->m->n; j++) {
        if (!v->exprs[v->list[j].expr].productive)
            continue;
        if (v->list[j].is_repeatable)
            return true;
        n++;
    }
    return n >= v->m->low;
}

static bool is_allowed_next(const struct view *v, uint32_t i, uint32_t missing)
{
    const struct ak_grammar_member *member = &v->list[i];
    if (!v->exprs[member->expr].productive || (!member->is_repeatable && has_member(v, i)) ||
        v->n >= v->m->high)
        return false;
    if (!member->required && missing > v->m->high - v->n - 1)
        return false;
    return !v->m->ordered || (i >= v->next && is_in_order(v, i));
}

/* Member set after member i; i = n: after a comma. The count stops once no bound depends on it, so
 * that more sets are equal. */
static uint32_t intern_after(struct ak_pda *m, const struct view *v, uint32_t i)
{
    uint64_t *words = m->word_scratch;
    uint32_t n_words = v->m->ordered ? 1 : 2 + v->m->n / 64;
    uint32_t n = v->n, next = v->next;
    memset(words, 0, n_words * sizeof *words);
    if (v->bits)
        memcpy(words + 1, v->bits, (n_words - 1) * sizeof *words);
    if (i < v->m->n) {
        uint32_t enough = v->m->low > 1 ? v->m->low : 1;
        n += v->m->high != AK_GRAMMAR_UNBOUNDED || n < enough;
        if (v->m->ordered)
            next = v->list[i].is_repeatable ? i : i + 1;
        else if (!v->list[i].is_repeatable)
            words[1 + i / 64] |= UINT64_C(1) << (i % 64);
    }
    words[0] = n | (uint64_t)next << 32 | (uint64_t)(i == v->m->n) << 63;
    return ak_pda_intern_member_set(m, words, n_words);
}

void ak_pda_closure_add_members(struct ak_pda *m, uint32_t node)
{
    struct ak_pda_node f = m->nodes[node];
    struct view v = load_view(m, &f);
    uint32_t missing = count_missing(&v);
    bool more = false;

    if (!v.comma && missing == 0 && v.n >= v.m->low)
        ak_pda_closure_add(m, f.rest);
    for (uint32_t i = 0; i < v.m->n; i++) {
        v = load_view(m, &f); /* interning may have moved m->words */
        if (!is_allowed_next(&v, i, missing))
            continue;
        more = true;
        if (v.n > 0 && !v.comma)
            break;
        uint32_t member_set = intern_after(m, &v, i);
        ak_pda_closure_add(m,
                           ak_pda_intern_node(m, v.list[i].expr, 0,
                                              ak_pda_intern_node(m, f.expr, member_set, f.rest)));
    }
    if (more && v.n > 0 && !v.comma) {
        uint32_t member_set = intern_after(m, &v, v.m->n);
        ak_pda_closure_add(m,
                           ak_pda_intern_node(m, v.m->comma, 0,
                                              ak_pda_intern_node(m, f.expr, member_set, f.rest)));
    }
}

uint32_t ak_pda_intern_member_set(struct ak_pda *m, const uint64_t *words, uint32_t n)
{
    uint32_t hash = n;
    for (uint32_t i = 0; i < n; i++)
        hash = (hash ^ (uint32_t)(words[i] * UINT64_C(0x9e3779b97f4a7c15) >> 32)) * 0x85ebca6bu;
    uint32_t *head = &m->member_set_heads[hash & m->member_set_mask];
    for (uint32_t i = *head; i; i = m->member_sets[i].next)
        if (m->member_sets[i].hash == hash && m->member_sets[i].n == n &&
            memcmp(m->words + m->member_sets[i].first, words, n * sizeof *words) == 0)
            return i;
    if (!ak_pda_reserve(m, &m->member_sets, &m->member_sets_capacity, m->n_member_sets, 1,
                        sizeof *m->member_sets) ||
        !ak_pda_reserve(m, &m->words, &m->words_capacity, m->n_words, n, sizeof *m->words))
        return 0; /* m->failed is set */
    memcpy(m->words + m->n_words, words, n * sizeof *words);
    m->member_sets[m->n_member_sets] =
        (struct ak_pda_member_set){ .first = m->n_words, .n = n, .hash = hash, .next = *head };
    m->n_words += n;
    *head = m->n_member_sets;
    return m->n_member_sets++;
}
