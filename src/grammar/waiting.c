/* A grammar that begins when a word was written. */
#include <string.h>

#include "base/mem.h"
#include "grammar/build.h"

/* *to becomes a copy of n elements. */
static bool copy(void *to, const void *from, uint32_t n, size_t size)
{
    void **at = to;
    *at = ak_alloc(n, size);
    if (*at && n > 0)
        memcpy(*at, from, n * size);
    return *at != NULL;
}

/* Lists of the grammar whose elements own nothing. */
static bool copy_plain(struct ak_grammar *g, const struct ak_grammar *from)
{
    g->n_parts = from->n_parts;
    g->n_sets = from->n_sets;
    g->n_bytes = from->n_bytes;
    g->n_lists = from->n_lists;
    g->n_member = from->n_member;
    g->n_members = from->n_members;
    return copy(&g->parts, from->parts, from->n_parts, sizeof *g->parts) &&
           copy(&g->sets, from->sets, from->n_sets, sizeof *g->sets) &&
           copy(&g->bytes, from->bytes, from->n_bytes, 1) &&
           copy(&g->lists, from->lists, from->n_lists, sizeof *g->lists) &&
           copy(&g->member, from->member, from->n_member, sizeof *g->member) &&
           copy(&g->members, from->members, from->n_members, sizeof *g->members);
}

/* Those whose elements own memory; their number counts what was copied. */
static bool copy_owned(struct ak_grammar *g, const struct ak_grammar *from)
{
    g->rules = ak_alloc(from->n_rules, sizeof *g->rules);
    g->tokens = ak_alloc(from->n_tokens, sizeof *g->tokens);
    g->words = ak_alloc(from->n_words, sizeof *g->words);
    if (!g->rules || !g->tokens || !g->words)
        return false;
    for (; g->n_rules < from->n_rules; g->n_rules++) {
        g->rules[g->n_rules] = from->rules[g->n_rules];
        g->rules[g->n_rules].name =
            ak_strndup(from->rules[g->n_rules].name, strlen(from->rules[g->n_rules].name));
        if (!g->rules[g->n_rules].name)
            return false;
    }
    for (; g->n_tokens < from->n_tokens; g->n_tokens++) {
        struct ak_token_name *t = &g->tokens[g->n_tokens];
        *t = from->tokens[g->n_tokens];
        if (t->text && !(t->text = ak_strndup(t->text, t->n)))
            return false;
    }
    for (; g->n_words < from->n_words; g->n_words++) {
        struct ak_words *w = &g->words[g->n_words];
        *w = from->words[g->n_words];
        if (!copy(&w->next, from->words[g->n_words].next, w->n, sizeof *w->next))
            return false;
    }
    return true;
}

ak_status ak_grammar_waiting(const struct ak_grammar *then, const struct ak_word *words, size_t n,
                             bool again, struct ak_grammar **out, struct ak_error *error)
{
    struct ak_build b = { .error = error };
    *out = NULL;
    b.g = ak_alloc(1, sizeof *b.g);
    if (!b.g || !copy_plain(b.g, then) || !copy_owned(b.g, then)) {
        ak_build_drop(&b);
        return ak_fail_memory(error, "a grammar", 0);
    }
    b.parts = b.g->n_parts;
    b.bytes = b.g->n_bytes;
    b.lists = b.g->n_lists;
    b.rules = b.g->n_rules;
    b.tokens = b.g->n_tokens;
    b.words = b.g->n_words;
    uint32_t rule = ak_build_rule(&b, "waiting", strlen("waiting"));
    uint32_t rest = again ? ak_build_two(&b, then->root, ak_build_call(&b, rule)) : then->root;
    struct ak_ending *endings = ak_alloc(n, sizeof *endings);
    for (size_t i = 0; endings && i < n; i++)
        endings[i] = (struct ak_ending){ .text = words[i].text, .n = words[i].n, .then = rest };
    if (!endings)
        ak_build_fail(&b, AKUNU_ERROR_MEMORY, "no memory for trigger words");
    else
        ak_build_define(&b, rule, ak_build_until(&b, endings, n, true));
    ak_free(endings);
    return ak_build_finish(&b, ak_build_call(&b, rule), out);
}
