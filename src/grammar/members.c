/* The members of an object: which may come next, given those that are there.
 *
 * A state is words: the number of members, the first that may come next where they are in
 * order, and whether a comma was written; then a bit for each member where they are not. */
#include <string.h>

#include "grammar/machine.h"

struct view {
    const struct ak_members *m;
    const struct ak_member *list;
    const struct ak_part *parts;
    const uint64_t *bits; /* NULL: none is set */
    uint32_t n, next;
    bool comma;
};

static struct view look(const struct ak_machine *m, const struct ak_frame *f)
{
    const struct ak_grammar *g = m->g;
    const struct ak_members *members = &g->members[g->parts[f->part].a];
    struct view v = { .m = members, .list = g->member + members->first, .parts = g->parts };
    if (f->at > 0) {
        const uint64_t *words = m->words + m->seen[f->at].first;
        v.n = (uint32_t)words[0];
        v.next = (uint32_t)(words[0] >> 32) & 0x7fffffff;
        v.comma = words[0] >> 63;
        v.bits = members->ordered ? NULL : words + 1;
    }
    return v;
}

static bool has(const struct view *v, uint32_t i)
{
    return v->m->ordered ? i < v->next : v->bits && (v->bits[i / 64] >> (i % 64) & 1);
}

/* Required ones that are not there. */
static uint32_t n_missing(const struct view *v)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < v->m->n; i++)
        n += v->list[i].required && !has(v, i);
    return n;
}

/* In order, may member i follow, with all that is required before it there and enough
 * left after it? */
static bool in_order(const struct view *v, uint32_t i)
{
    uint64_t n = (uint64_t)v->n + 1;
    for (uint32_t j = v->next; j < i; j++)
        if (v->list[j].required)
            return false;
    if (n >= v->m->low || v->list[i].many)
        return true;
    for (uint32_t j = i + 1; j < v->m->n; j++) {
        if (!v->parts[v->list[j].part].possible)
            continue;
        if (v->list[j].many)
            return true;
        n++;
    }
    return n >= v->m->low;
}

static bool may_come(const struct view *v, uint32_t i, uint32_t missing)
{
    const struct ak_member *member = &v->list[i];
    if (!v->parts[member->part].possible || (!member->many && has(v, i)) || v->n >= v->m->high)
        return false;
    if (!member->required && missing > v->m->high - v->n - 1)
        return false;
    return !v->m->ordered || (i >= v->next && in_order(v, i));
}

/* The state after member i (i = n: after a comma). A number of members that no bound
 * looks at any more stays as it is. */
static uint32_t after(struct ak_machine *m, const struct view *v, uint32_t i)
{
    uint64_t *words = m->word_scratch;
    uint32_t n_words = v->m->ordered ? 1 : 2 + v->m->n / 64;
    uint32_t n = v->n, next = v->next;
    memset(words, 0, n_words * sizeof *words);
    if (v->bits)
        memcpy(words + 1, v->bits, (n_words - 1) * sizeof *words);
    if (i < v->m->n) {
        uint32_t enough = v->m->low > 1 ? v->m->low : 1;
        n += v->m->high != AK_MANY || n < enough;
        if (v->m->ordered)
            next = v->list[i].many ? i : i + 1;
        else if (!v->list[i].many)
            words[1 + i / 64] |= UINT64_C(1) << (i % 64);
    }
    words[0] = n | (uint64_t)next << 32 | (uint64_t)(i == v->m->n) << 63;
    return ak_machine_see(m, words, n_words);
}

void ak_machine_enter_members(struct ak_machine *m, uint32_t frame)
{
    struct ak_frame f = m->frames[frame];
    struct view v = look(m, &f);
    uint32_t missing = n_missing(&v);
    bool more = false;

    if (!v.comma && missing == 0 && v.n >= v.m->low)
        ak_machine_enter(m, f.rest);
    for (uint32_t i = 0; i < v.m->n; i++) {
        v = look(m, &f); /* states may have moved */
        if (!may_come(&v, i, missing))
            continue;
        more = true;
        if (v.n > 0 && !v.comma)
            break;
        uint32_t state = after(m, &v, i);
        ak_machine_enter(
            m, ak_machine_frame(m, v.list[i].part, 0, ak_machine_frame(m, f.part, state, f.rest)));
    }
    if (more && v.n > 0 && !v.comma) {
        uint32_t state = after(m, &v, v.m->n);
        ak_machine_enter(
            m, ak_machine_frame(m, v.m->comma, 0, ak_machine_frame(m, f.part, state, f.rest)));
    }
}

uint32_t ak_machine_see(struct ak_machine *m, const uint64_t *words, uint32_t n)
{
    uint32_t hash = n;
    for (uint32_t i = 0; i < n; i++)
        hash = (hash ^ (uint32_t)(words[i] * UINT64_C(0x9e3779b97f4a7c15) >> 32)) * 0x85ebca6bu;
    uint32_t *head = &m->seen_heads[hash & m->seen_mask];
    for (uint32_t i = *head; i; i = m->seen[i].next)
        if (m->seen[i].hash == hash && m->seen[i].n == n &&
            memcmp(m->words + m->seen[i].first, words, n * sizeof *words) == 0)
            return i;
    if (!ak_machine_room(m, &m->seen, &m->room_seen, m->n_seen, 1, sizeof *m->seen) ||
        !ak_machine_room(m, &m->words, &m->room_words, m->n_words, n, sizeof *m->words))
        return 0; /* the closure failed */
    memcpy(m->words + m->n_words, words, n * sizeof *words);
    m->seen[m->n_seen] =
        (struct ak_seen){ .first = m->n_words, .n = n, .hash = hash, .next = *head };
    m->n_words += n;
    *head = m->n_seen;
    return m->n_seen++;
}
