/* Garbage collection of the PDA: copies the states that are still needed, with their stack nodes,
 * into a fresh PDA and drops the rest, including all cached transitions. */
#include "base/mem.h"
#include "text/grammar/pda.h"

enum { BYTES_MAX = 64 << 20 };

static uint64_t count_bytes(const struct ak_pda *m)
{
    return (uint64_t)m->n_nodes * sizeof *m->nodes + (uint64_t)m->n_states * sizeof *m->states +
           (uint64_t)m->n_pool * sizeof *m->pool + (uint64_t)m->n_words * sizeof *m->words +
           (uint64_t)m->n_transition_tables * 256 * sizeof(uint32_t);
}

bool ak_pda_is_full(const struct ak_pda *m)
{
    return count_bytes(m) > BYTES_MAX;
}

/* Copies a stack node into the new PDA. The mark of a copied node is its new number. */
static uint32_t move_node(struct ak_pda *from, struct ak_pda *to, uint32_t node)
{
    uint32_t n = 0, cursor = node, moved;
    for (; cursor > AK_PDA_NODE_END && !from->nodes[cursor].mark;
         cursor = from->nodes[cursor].rest) {
        if (!ak_pda_reserve(from, &from->work, &from->work_capacity, n, 1, sizeof *from->work))
            return AK_PDA_NODE_NONE;
        from->work[n++] = cursor;
    }
    moved = cursor > AK_PDA_NODE_END ? from->nodes[cursor].mark : cursor;
    while (n > 0) {
        struct ak_pda_node *f = &from->nodes[from->work[--n]];
        uint32_t position = f->position;
        if (from->g->exprs[f->expr].kind == AK_GRAMMAR_EXPR_MEMBERS && position > 0)
            position = ak_pda_intern_member_set(to, from->words + from->member_sets[position].first,
                                                from->member_sets[position].n);
        moved = f->mark = ak_pda_intern_node(to, f->expr, position, moved);
    }
    return moved;
}

static uint32_t move_state(struct ak_pda *from, struct ak_pda *to, uint32_t state)
{
    const struct ak_pda_state *p = &from->states[state];
    if (state == AK_PDA_STATE_DEAD)
        return state;
    ak_pda_closure_begin(to);
    to->accepting = p->accepting;
    for (uint32_t i = 0; i < p->n; i++) {
        uint32_t node = move_node(from, to, from->pool[p->first + i]);
        if (node == AK_PDA_NODE_NONE ||
            !ak_pda_reserve(to, &to->set, &to->set_capacity, to->n_set, 1, sizeof *to->set))
            return AK_PDA_STATE_UNKNOWN;
        to->set[to->n_set++] = node;
    }
    return ak_pda_closure_finish(to);
}

void ak_pda_collect_garbage(struct ak_pda *m, uint32_t *const *roots, size_t n)
{
    struct ak_pda fresh;
    uint32_t *moved = ak_alloc(n, sizeof *moved);
    bool ok = ak_pda_init(&fresh, m->g, m->token_ids, m->max_token_bytes) && moved;
    for (uint32_t i = 0; i < m->n_nodes; i++)
        m->nodes[i].mark = 0;
    for (size_t i = 0; ok && i < n; i++) {
        moved[i] = move_state(m, &fresh, *roots[i]);
        ok = moved[i] != AK_PDA_STATE_UNKNOWN;
    }
    for (size_t i = 0; ok && i < n; i++)
        *roots[i] = moved[i];
    if (ok) {
        struct ak_pda old = *m;
        *m = fresh;
        fresh = old;
    } else {
        for (uint32_t i = 0; i < m->n_nodes; i++)
            m->nodes[i].mark = 0;
        m->epoch = 0;
    }
    ak_pda_free(&fresh);
    ak_free(moved);
}
