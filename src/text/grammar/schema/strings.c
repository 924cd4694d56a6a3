/* Strings: lengths, patterns and formats. Patterns and formats become DFAs, which are intersected,
 * with a rule for each state; a length alone is a repeat count. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "text/grammar/schema/compiler.h"
#include "base/utf8.h"
#include "base/array.h"

static const struct ak_grammar_dfa *strings_no_memory(struct ak_schema_compiler *c)
{
    if (ak_schema_ok(c))
        c->builder.status = ak_fail_memory(c->builder.error, "a pattern", 0);
    return NULL;
}

/* Reports a DFA that could not be built as an error of `keyword`. */
static void report_dfa_error(struct ak_schema_compiler *c, const json_t *schema,
                             const char *keyword, const struct ak_error *e)
{
    char why[AK_ERROR_MESSAGE_BYTES];
    if (e->status == AKUNU_ERROR_MEMORY) {
        strings_no_memory(c);
    } else if (e->status == AKUNU_ERROR_FORMAT) {
        snprintf(why, sizeof why, "a regular expression of ECMAScript (%.200s)", e->message);
        ak_schema_fail_invalid(c, schema, keyword, why);
    } else {
        snprintf(why, sizeof why, "%.200s", e->message);
        ak_schema_refuse(c, schema, keyword, why);
    }
}

const struct ak_grammar_dfa *ak_schema_get_pattern_dfa(struct ak_schema_compiler *c,
                                                       const json_t *schema, const char *keyword,
                                                       const char *text, size_t n)
{
    struct ak_error e = { 0 };
    for (uint32_t i = 0; i < c->n_patterns; i++)
        if (c->patterns[i]->n == n && memcmp(c->patterns[i]->text, text, n) == 0)
            return c->patterns[i]->failed ? NULL : &c->patterns[i]->dfa;
    if (!ak_reserve(&c->patterns, &c->patterns_capacity, c->n_patterns, 1))
        return strings_no_memory(c);
    struct ak_schema_cached_pattern *k = ak_alloc(1, sizeof *k);
    if (!k || !(k->text = ak_strndup(text, n))) {
        ak_free(k);
        return strings_no_memory(c);
    }
    k->n = n;
    c->patterns[c->n_patterns++] = k;
    k->failed = ak_grammar_dfa_make_pattern(text, n, &k->dfa, &e) != AKUNU_OK;
    if (k->failed)
        report_dfa_error(c, schema, keyword, &e);
    return k->failed ? NULL : &k->dfa;
}

/* A DFA that is too large is a failure even if lax. */
void ak_schema_intersect_dfa(struct ak_schema_compiler *c, struct ak_grammar_dfa *d,
                             const struct ak_grammar_dfa *other, bool complement)
{
    struct ak_grammar_dfa out;
    struct ak_error e = { 0 };
    if (!ak_schema_ok(c))
        return;
    if (ak_grammar_dfa_intersect(d, other, complement, &out, &e) != AKUNU_OK) {
        ak_grammar_dfa_free(&out);
        ak_gb_fail(&c->builder, e.status,
                   "strings with these patterns, lengths and names together: the DFA %s",
                   e.message);
        return;
    }
    ak_grammar_dfa_free(d);
    *d = out;
}

/* Adds a pattern to the limits. */
static void add_dfa(struct ak_schema_compiler *c, struct ak_schema_string_limits *l,
                    const struct ak_grammar_dfa *d)
{
    struct ak_error e = { 0 };
    if (!d || !ak_schema_ok(c))
        return;
    if (!l->has_dfa && ak_grammar_dfa_make_all(&l->dfa, &e) != AKUNU_OK) {
        strings_no_memory(c);
        return;
    }
    l->has_dfa = true;
    ak_schema_intersect_dfa(c, &l->dfa, d, false);
}

/* ---- limits ------------------------------------------------------------- */
/* Removes the strings of a made schema's list, and those that match its pattern. */
static void remove_strings(struct ak_schema_compiler *c, struct ak_schema_string_limits *l,
                           const json_t *schema)
{
    const json_t *list = json_object_get(schema, AK_SCHEMA_EXCEPT), *one,
                 *pattern = json_object_get(schema, AK_SCHEMA_UNLIKE);
    struct ak_grammar_dfa all = { 0 };
    size_t i;
    if (!list && !pattern)
        return;
    if (ak_grammar_dfa_make_all(&all, NULL) == AKUNU_OK)
        add_dfa(c, l, &all);
    else
        strings_no_memory(c);
    ak_grammar_dfa_free(&all);
    json_array_foreach (list, i, one) {
        struct ak_grammar_dfa word;
        if (ak_grammar_dfa_make_string(json_string_value(one), json_string_length(one), &word,
                                       NULL) == AKUNU_OK)
            ak_schema_intersect_dfa(c, &l->dfa, &word, true);
        else
            strings_no_memory(c);
        ak_grammar_dfa_free(&word);
    }
    const struct ak_grammar_dfa *d = NULL;
    if (json_is_string(pattern))
        d = ak_schema_get_pattern_dfa(c, schema, "pattern", json_string_value(pattern),
                                      json_string_length(pattern));
    else if (pattern)
        ak_schema_fail_invalid(c, pattern, "pattern", "a string");
    if (d)
        ak_schema_intersect_dfa(c, &l->dfa, d, true);
}

bool ak_schema_read_string_limits(struct ak_schema_compiler *c, const struct ak_schema_terms *t,
                                  struct ak_schema_string_limits *l)
{
    *l = (struct ak_schema_string_limits){ .high = AK_GRAMMAR_UNBOUNDED };
    ak_schema_read_counts(c, t, "minLength", "maxLength", &l->low, &l->high);
    for (uint32_t i = 0; i < t->n && ak_schema_ok(c); i++) {
        const json_t *schema = t->items[i].schema, *pattern = json_object_get(schema, "pattern");
        if (pattern && !json_is_string(pattern))
            ak_schema_fail_invalid(c, schema, "pattern", "a string");
        else if (pattern)
            add_dfa(c, l,
                    ak_schema_get_pattern_dfa(c, schema, "pattern", json_string_value(pattern),
                                              json_string_length(pattern)));
        const char *also, *format = ak_schema_get_format_pattern(c, schema, &also);
        if (format)
            add_dfa(c, l, ak_schema_get_pattern_dfa(c, schema, "format", format, strlen(format)));
        if (also)
            add_dfa(c, l, ak_schema_get_pattern_dfa(c, schema, "format", also, strlen(also)));
        remove_strings(c, l, schema);
    }
    return ak_schema_ok(c) && l->low <= l->high &&
           !(l->has_dfa && ak_grammar_dfa_is_empty(&l->dfa));
}

/* Adds the lengths to the DFA. */
static void add_lengths(struct ak_schema_compiler *c, struct ak_schema_string_limits *l)
{
    struct ak_error e = { 0 };
    struct ak_grammar_dfa lengths;
    if (l->low == 0 && l->high == AK_GRAMMAR_UNBOUNDED)
        return;
    if (ak_grammar_dfa_make_lengths(l->low, l->high, &lengths, &e) == AKUNU_OK)
        add_dfa(c, l, &lengths);
    else
        ak_gb_fail(&c->builder, e.status,
                   "strings with a pattern and a length of %u to %u: the DFA %s", l->low, l->high,
                   e.message);
    ak_grammar_dfa_free(&lengths);
}

void ak_schema_build_string_dfa(struct ak_schema_compiler *c, const struct ak_schema_terms *t,
                                struct ak_grammar_dfa *out)
{
    struct ak_schema_string_limits l;
    bool some = ak_schema_read_string_limits(c, t, &l);
    if (some)
        add_lengths(c, &l);
    if (some && !l.has_dfa)
        ak_grammar_dfa_make_all(&l.dfa, NULL);
    if (!some) {
        ak_grammar_dfa_free(&l.dfa);
        ak_grammar_dfa_make_lengths(1, 0, &l.dfa, NULL);
    }
    *out = l.dfa;
    if (!out->states)
        strings_no_memory(c);
}

/* ---- as expressions ----------------------------------------------------- */
/* One character of a set; equal sets share an expression. */
static uint32_t build_char(struct ak_schema_compiler *c, const struct ak_grammar_char_set *s,
                           bool any)
{
    for (uint32_t i = 0; i < c->n_char_exprs; i++)
        if (c->char_sets[i].n == s->n &&
            memcmp(c->char_sets[i].ranges, s->ranges, s->n * sizeof *s->ranges) == 0)
            return c->char_exprs[i];
    uint32_t expr = ak_gb_json_chars(&c->builder, s, any);
    if (c->n_char_exprs == c->char_sets_capacity) {
        struct ak_grammar_char_set *sets =
            ak_realloc(c->char_sets, (size_t)c->char_sets_capacity * 2 + 16, sizeof *sets);
        if (sets)
            c->char_sets = sets;
        uint32_t *exprs =
            ak_realloc(c->char_exprs, (size_t)c->char_sets_capacity * 2 + 16, sizeof *exprs);
        if (exprs)
            c->char_exprs = exprs;
        if (!sets || !exprs)
            return expr;
        c->char_sets_capacity = c->char_sets_capacity * 2 + 16;
    }
    c->char_sets[c->n_char_exprs] = (struct ak_grammar_char_set){ 0 };
    ak_grammar_char_set_copy(&c->builder, &c->char_sets[c->n_char_exprs], s);
    c->char_exprs[c->n_char_exprs++] = expr;
    return expr;
}

static uint32_t build_quote(struct ak_schema_compiler *c)
{
    return ak_gb_text(&c->builder, "\"");
}

/* Declares a rule per state; refs[state] refers to it. */
static void declare_states(struct ak_grammar_builder *b, const struct ak_grammar_dfa *d,
                           uint32_t *refs, const uint32_t *representatives)
{
    uint32_t base = b->g ? b->g->n_rules : 0;
    for (uint32_t i = 0; i < d->n_states; i++)
        ak_gb_declare_rule(b, "", 0);
    for (uint32_t i = 0; i < d->n_states; i++)
        refs[i] = ak_gb_rule_ref(b, base + i);
    for (uint32_t i = 0; i < d->n_states; i++)
        ak_gb_set_representative(b, refs[i], refs[representatives[i]]);
}

/* What may follow in a state: the closing quote, or a character and the rule of the next state.
 * done: flags of all edges, set for those already built. */
static uint32_t build_state(struct ak_schema_compiler *c, const struct ak_grammar_dfa *d,
                            uint32_t state, const uint32_t *refs, uint8_t *done)
{
    struct ak_gb_list list = { 0 };
    struct ak_grammar_char_set s = { 0 };
    const struct ak_grammar_dfa_edge *edges = ak_grammar_dfa_get_edges(d, state);
    uint32_t n = d->states[state].n;
    done += d->states[state].first;
    if (d->states[state].accepting)
        ak_gb_append(&c->builder, &list, build_quote(c));
    for (uint32_t i = 0; i < n; i++) {
        if (done[i])
            continue;
        s.n = 0;
        for (uint32_t j = i; j < n; j++) { /* all edges to the same state */
            if (edges[j].to != edges[i].to)
                continue;
            done[j] = 1;
            ak_grammar_char_set_add(&c->builder, &s, edges[j].low, edges[j].high);
        }
        ak_gb_append(&c->builder, &list,
                     ak_gb_concat(&c->builder, build_char(c, &s, c->reading), refs[edges[i].to]));
    }
    uint32_t expr = ak_gb_alternation(&c->builder, list.items, list.n);
    ak_grammar_char_set_free(&s);
    ak_free(list.items);
    return expr;
}

uint32_t ak_schema_build_quoted_dfa(struct ak_schema_compiler *c, const struct ak_grammar_dfa *d)
{
    struct ak_grammar_builder *b = &c->builder;
    uint8_t *done = ak_alloc(d->n_edges, 1);
    uint32_t *refs = ak_alloc(d->n_states, sizeof *refs),
             *representatives = ak_alloc(d->n_states, sizeof *representatives);
    uint32_t expr = AK_GB_NOTHING;
    if (done && refs && representatives &&
        ak_grammar_dfa_find_representatives(d, AK_GRAMMAR_LOOKAHEAD_BYTES, representatives)) {
        declare_states(b, d, refs, representatives);
        for (uint32_t i = 0; i < d->n_states && ak_schema_ok(c); i++)
            ak_gb_define_rule(b, b->g->exprs[refs[i]].a, build_state(c, d, i, refs, done));
        expr = ak_gb_concat(b, build_quote(c), refs[0]);
    } else {
        ak_gb_fail(b, AKUNU_ERROR_MEMORY, "no memory for a pattern");
    }
    ak_free(done);
    ak_free(refs);
    ak_free(representatives);
    return expr;
}

uint32_t ak_schema_build_quoted(struct ak_schema_compiler *c, const char *text, size_t n)
{
    struct ak_grammar_builder *b = &c->builder;
    struct ak_gb_list list = { 0 };
    struct ak_grammar_char_set one = { 0 };
    size_t plain = 0; /* start of the characters that the next literal takes */
    ak_gb_append(b, &list, build_quote(c));
    for (size_t at = 0; at < n && ak_schema_ok(c);) {
        struct ak_utf8 u = ak_utf8_next(text + at, n - at);
        if (c->reading || u.code < 0x20 || u.code == '"' || u.code == '\\') {
            ak_gb_append(b, &list, ak_gb_literal(b, text + plain, at - plain));
            one.n = 0;
            ak_grammar_char_set_add(b, &one, u.code, u.code);
            ak_gb_append(b, &list, build_char(c, &one, c->reading));
            plain = at + u.bytes;
        }
        at += u.bytes;
    }
    ak_gb_append(b, &list, ak_gb_literal(b, text + plain, n - plain));
    ak_gb_append(b, &list, build_quote(c));
    uint32_t expr = ak_gb_sequence(b, list.items, list.n);
    ak_free(list.items);
    ak_grammar_char_set_free(&one);
    return expr;
}

/* Any character in any spelling, for strings without pattern and format. */
static uint32_t build_any_char(struct ak_schema_compiler *c)
{
    struct ak_grammar_char_set all = { 0 };
    if (c->string_chars == 0 && ak_schema_ok(c)) {
        ak_grammar_char_set_fill(&c->builder, &all);
        c->string_chars = ak_gb_json_chars(&c->builder, &all, true);
        ak_grammar_char_set_free(&all);
    }
    return c->string_chars;
}

uint32_t ak_schema_build_string(struct ak_schema_compiler *c, const struct ak_schema_terms *t)
{
    struct ak_schema_string_limits l;
    uint32_t expr = AK_GB_NOTHING;
    if (ak_schema_read_string_limits(c, t, &l)) {
        if (l.has_dfa) {
            add_lengths(c, &l);
            expr =
                ak_schema_ok(c) ? ak_schema_build_quoted_dfa(c, &l.dfa) : (uint32_t)AK_GB_NOTHING;
        } else {
            uint32_t exprs[] = { build_quote(c),
                                 ak_gb_repeat(&c->builder, build_any_char(c), l.low, l.high),
                                 build_quote(c) };
            expr = ak_gb_sequence(&c->builder, exprs, 3);
        }
    }
    ak_grammar_dfa_free(&l.dfa);
    return expr;
}
