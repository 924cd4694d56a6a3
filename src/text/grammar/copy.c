/* Copy of a finished grammar into a builder, which goes on from there. */
#include <string.h>

#include "base/mem.h"
#include "text/grammar/builder.h"

/* Sets *to to a copy of n elements. */
static bool copy_array(void *to, const void *from, uint32_t n, size_t size)
{
    void **at = to;
    *at = ak_alloc(n, size);
    if (*at && n > 0)
        memcpy(*at, from, n * size);
    return *at != NULL;
}

/* Copies the arrays with elements that own no memory. */
static bool copy_plain(struct ak_grammar *g, const struct ak_grammar *from)
{
    g->n_exprs = from->n_exprs;
    g->n_sets = from->n_sets;
    g->n_bytes = from->n_bytes;
    g->n_lists = from->n_lists;
    g->n_member = from->n_member;
    g->n_members = from->n_members;
    return copy_array(&g->exprs, from->exprs, from->n_exprs, sizeof *g->exprs) &&
           copy_array(&g->sets, from->sets, from->n_sets, sizeof *g->sets) &&
           copy_array(&g->bytes, from->bytes, from->n_bytes, 1) &&
           copy_array(&g->lists, from->lists, from->n_lists, sizeof *g->lists) &&
           copy_array(&g->member, from->member, from->n_member, sizeof *g->member) &&
           copy_array(&g->members, from->members, from->n_members, sizeof *g->members);
}

/* Copies the arrays with elements that own memory. Counts follow the copies, so that a failure
 * frees exactly what was copied. */
static bool copy_owned(struct ak_grammar *g, const struct ak_grammar *from)
{
    g->rules = ak_alloc(from->n_rules, sizeof *g->rules);
    g->tokens = ak_alloc(from->n_tokens, sizeof *g->tokens);
    g->automata = ak_alloc(from->n_automata, sizeof *g->automata);
    if (!g->rules || !g->tokens || !g->automata)
        return false;
    for (; g->n_rules < from->n_rules; g->n_rules++) {
        g->rules[g->n_rules] = from->rules[g->n_rules];
        g->rules[g->n_rules].name =
            ak_strndup(from->rules[g->n_rules].name, strlen(from->rules[g->n_rules].name));
        if (!g->rules[g->n_rules].name)
            return false;
    }
    for (; g->n_tokens < from->n_tokens; g->n_tokens++) {
        struct ak_grammar_token_ref *t = &g->tokens[g->n_tokens];
        *t = from->tokens[g->n_tokens];
        if (t->text && !(t->text = ak_strndup(t->text, t->n)))
            return false;
    }
    for (; g->n_automata < from->n_automata; g->n_automata++) {
        struct ak_grammar_keyword_automaton *w = &g->automata[g->n_automata];
        *w = from->automata[g->n_automata];
        if (!copy_array(&w->next, from->automata[g->n_automata].next, w->n, sizeof *w->next))
            return false;
    }
    return true;
}

/* Finds the expression of each byte set again: the builder makes each set once. */
static bool find_set_exprs(struct ak_grammar_builder *b)
{
    const struct ak_grammar *g = b->g;
    b->set_exprs = ak_alloc(g->n_sets, sizeof *b->set_exprs);
    if (!b->set_exprs)
        return false;
    for (uint32_t i = 0; i < g->n_exprs; i++)
        if (g->exprs[i].kind == AK_GRAMMAR_EXPR_BYTES)
            b->set_exprs[g->exprs[i].a] = i;
    return true;
}

void ak_gb_begin_copy(struct ak_grammar_builder *b, const struct ak_grammar *from,
                      struct ak_error *error)
{
    *b = (struct ak_grammar_builder){ .error = error };
    b->g = ak_alloc(1, sizeof *b->g);
    if (!b->g || !copy_plain(b->g, from) || !copy_owned(b->g, from) || !find_set_exprs(b)) {
        b->status = ak_fail_memory(error, "a grammar", 0);
        return;
    }
    b->exprs_capacity = b->g->n_exprs;
    b->sets_capacity = b->set_exprs_capacity = b->g->n_sets;
    b->bytes_capacity = b->g->n_bytes;
    b->lists_capacity = b->g->n_lists;
    b->rules_capacity = b->g->n_rules;
    b->tokens_capacity = b->g->n_tokens;
    b->member_capacity = b->g->n_member;
    b->members_capacity = b->g->n_members;
    b->automata_capacity = b->g->n_automata;
}
