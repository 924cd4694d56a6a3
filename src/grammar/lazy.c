/* Construction of a lazy grammar, which constrains the text only after a trigger. The grammar of
 * the continuation is copied into a builder, and a rule that searches for the triggers becomes the
 * root. */
#include <string.h>

#include "base/mem.h"
#include "grammar/builder.h"

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

ak_status ak_grammar_make_lazy(const struct ak_grammar *continuation,
                               const struct ak_grammar_trigger *triggers, size_t n, bool again,
                               struct ak_grammar **out, struct ak_error *error)
{
    struct ak_grammar_builder b = { .error = error };
    *out = NULL;
    b.g = ak_alloc(1, sizeof *b.g);
    if (!b.g || !copy_plain(b.g, continuation) || !copy_owned(b.g, continuation)) {
        ak_gb_drop(&b);
        return ak_fail_memory(error, "a grammar", 0);
    }
    b.exprs_capacity = b.g->n_exprs;
    b.bytes_capacity = b.g->n_bytes;
    b.lists_capacity = b.g->n_lists;
    b.rules_capacity = b.g->n_rules;
    b.tokens_capacity = b.g->n_tokens;
    b.automata_capacity = b.g->n_automata;
    uint32_t rule = ak_gb_declare_rule(&b, "lazy", strlen("lazy"));
    uint32_t rest =
        again ? ak_gb_concat(&b, continuation->root, ak_gb_rule_ref(&b, rule)) : continuation->root;
    struct ak_gb_keyword *keywords = ak_alloc(n, sizeof *keywords);
    for (size_t i = 0; keywords && i < n; i++)
        keywords[i] = (struct ak_gb_keyword){ .text = triggers[i].text,
                                              .n = triggers[i].n,
                                              .continuation = rest };
    if (!keywords)
        ak_gb_fail(&b, AKUNU_ERROR_MEMORY, "no memory for the triggers");
    else
        ak_gb_define_rule(&b, rule, ak_gb_until(&b, keywords, n, true));
    ak_free(keywords);
    return ak_gb_finish(&b, ak_gb_rule_ref(&b, rule), out);
}
