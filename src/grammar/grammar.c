#include "grammar/grammar.h"

#include "base/mem.h"

void ak_grammar_free(struct ak_grammar *g)
{
    if (!g)
        return;
    for (uint32_t i = 0; i < g->n_rules; i++)
        ak_free(g->rules[i].name);
    for (uint32_t i = 0; i < g->n_tokens; i++)
        ak_free(g->tokens[i].text);
    for (uint32_t i = 0; i < g->n_automata; i++)
        ak_free(g->automata[i].next);
    ak_free(g->exprs);
    ak_free(g->sets);
    ak_free(g->bytes);
    ak_free(g->lists);
    ak_free(g->rules);
    ak_free(g->tokens);
    ak_free(g->member);
    ak_free(g->members);
    ak_free(g->automata);
    ak_free(g);
}
