/* Compiles terms to expressions: first alternatives, then listed values, then type by type. Whether
 * a listed value satisfies the other keywords is tried, with a grammar of the terms. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "text/grammar/matcher.h"
#include "text/grammar/schema/compiler.h"
#include "base/array.h"

static uint32_t compile_terms(struct ak_schema_compiler *c, const struct ak_schema_terms *t,
                              bool values_done);

uint32_t ak_schema_build_space(struct ak_schema_compiler *c)
{
    struct ak_grammar_builder *b = &c->builder;
    if (c->space != 0 || !ak_schema_ok(c))
        return c->space;
    if (c->reading) {
        struct ak_grammar_byte_set whitespace = { { UINT64_C(1) << ' ' | UINT64_C(1) << '\t' |
                                                    UINT64_C(1) << '\n' | UINT64_C(1) << '\r' } };
        c->space = ak_gb_repeat(b, ak_gb_bytes(b, &whitespace), 0, AK_GRAMMAR_UNBOUNDED);
    } else { /* a space, or newlines and an indent */
        struct ak_grammar_byte_set indent = { { UINT64_C(1) << ' ' | UINT64_C(1) << '\t' } };
        uint32_t line = ak_gb_concat(b, ak_gb_repeat(b, ak_gb_text(b, "\n"), 1, 2),
                                     ak_gb_repeat(b, ak_gb_bytes(b, &indent), 0, 20));
        c->space = ak_gb_repeat(b, ak_gb_either(b, ak_gb_text(b, " "), line), 0, 1);
    }
    return c->space;
}

/* ---- choices ------------------------------------------------------------ */
static void make_alternative(struct ak_schema_compiler *c, const struct ak_schema_terms *t,
                             uint32_t term, const json_t *schema, struct ak_schema_terms *out)
{
    ak_schema_terms_copy(c, out, t);
    if (ak_schema_ok(c))
        out->items[term].n_choices++;
    ak_schema_terms_add(c, out, schema, term + 1);
}

/* Have no two of the alternatives a value in common? */
static bool are_exclusive(struct ak_schema_compiler *c, const struct ak_schema_terms *t,
                          uint32_t term, const json_t *alternatives)
{
    size_t n = json_array_size(alternatives);
    bool is_disjoint = true;
    for (size_t i = 0; i < n && is_disjoint; i++) {
        for (size_t j = i + 1; j < n && is_disjoint; j++) {
            struct ak_schema_terms a = { 0 }, b = { 0 };
            make_alternative(c, t, term, json_array_get(alternatives, i), &a);
            make_alternative(c, t, term, json_array_get(alternatives, j), &b);
            is_disjoint = ak_schema_ok(c) && ak_schema_are_disjoint(c, &a, &b, 0);
            ak_schema_terms_free(&a);
            ak_schema_terms_free(&b);
        }
    }
    return is_disjoint;
}

static uint32_t compile_alternatives(struct ak_schema_compiler *c, const struct ak_schema_terms *t,
                                     uint32_t term, const json_t *alternatives, bool values_done)
{
    struct ak_gb_list list = { 0 };
    const json_t *schema;
    size_t i;
    json_array_foreach (alternatives, i, schema) {
        struct ak_schema_terms some = { 0 };
        make_alternative(c, t, term, schema, &some);
        ak_gb_append(&c->builder, &list, compile_terms(c, &some, values_done));
        ak_schema_terms_free(&some);
        if (!ak_schema_ok(c))
            break;
    }
    uint32_t expr = ak_gb_alternation(&c->builder, list.items, list.n);
    ak_free(list.items);
    return expr;
}

/* ---- values ------------------------------------------------------------- */
static bool matches_text(struct ak_grammar *g, const char *text, struct ak_error *error)
{
    struct ak_grammar_matcher *m = NULL;
    size_t taken = 0, n = strlen(text);
    bool yes = ak_grammar_matcher_create(g, NULL, &m, error) == AKUNU_OK &&
               ak_grammar_matcher_accept_bytes(m, text, n, &taken, error) == AKUNU_OK &&
               taken == n && ak_grammar_matcher_is_accepting(m);
    ak_grammar_matcher_free(m);
    return yes;
}

/* Does a grammar of the terms match the text of the value? `values_done`: without the enum and
 * const of the terms. */
static bool try_value(struct ak_schema_compiler *c, const struct ak_schema_terms *t,
                      const json_t *value, bool values_done)
{
    struct ak_schema_options options = *c->options;
    struct ak_schema_compiler inner = { .root = c->root,
                                        .options = &options,
                                        .reading = true,
                                        .outer = c,
                                        .depth = c->depth + 1,
                                        .trials = c->trials };
    struct ak_grammar *g = NULL;
    bool yes = false;
    if (++*c->trials > AK_SCHEMA_TRIALS_MAX) {
        ak_gb_fail(&c->builder, AKUNU_ERROR_UNSUPPORTED,
                   "the schema has too many values to be tried");
        return false;
    }
    options.form = AK_SCHEMA_READING;
    ak_schema_compiler_begin(&inner, c->builder.error);
    uint32_t root = compile_terms(&inner, t, values_done);
    ak_status status = ak_gb_finish(&inner.builder, root, &g);
    char *text = status == AKUNU_OK ? ak_schema_write_value(value) : NULL;
    if (text)
        yes = matches_text(g, text, NULL);
    else if (ak_schema_ok(c))
        c->builder.status =
            status != AKUNU_OK ? status : ak_fail_memory(c->builder.error, "a schema", 0);
    ak_free(text);
    ak_grammar_free(g);
    ak_schema_compiler_free(&inner);
    return yes;
}

bool ak_schema_allows(struct ak_schema_compiler *c, const struct ak_schema_terms *t,
                      const json_t *value)
{
    json_t *values = ak_schema_collect_values(c, t), *one;
    bool listed = !values;
    size_t i;
    json_array_foreach (values, i, one)
        listed = listed || ak_schema_values_equal(one, value);
    json_decref(values);
    /* alternatives may list values of their own, which the trial must see */
    uint32_t term;
    bool exactly, chosen = !ak_schema_terms_find_alternatives(c, t, &term, &exactly);
    return listed && ak_schema_ok(c) && !t->is_unsatisfiable && try_value(c, t, value, chosen);
}

/* Do the terms have only values, types and annotations? Then values need no trial. */
static bool has_only_values(const struct ak_schema_terms *t)
{
    static const char *const plain[] = { "enum",        "const",   "type", "title",
                                         "description", "default", "$ref", "$defs",
                                         "definitions", "$schema", "$id",  "$comment",
                                         "examples" };
    const char *key;
    json_t *value;
    for (uint32_t i = 0; i < t->n; i++)
        json_object_foreach ((json_t *)(uintptr_t)t->items[i].schema, key, value) {
            bool is = false;
            for (size_t j = 0; j < sizeof plain / sizeof *plain; j++)
                is = is || strcmp(plain[j], key) == 0;
            if (!is)
                return false;
        }
    return true;
}

static unsigned get_type(const json_t *v)
{
    if (ak_schema_is_number(v) && !json_is_number(v))
        return AK_SCHEMA_TYPE_INTEGER;
    switch (json_typeof(v)) {
    case JSON_NULL: return AK_SCHEMA_TYPE_NULL;
    case JSON_TRUE:
    case JSON_FALSE: return AK_SCHEMA_TYPE_BOOLEAN;
    case JSON_INTEGER: return AK_SCHEMA_TYPE_INTEGER;
    case JSON_REAL:
        return json_real_value(v) >= -9e15 && json_real_value(v) <= 9e15 &&
                       (double)(int64_t)json_real_value(v) >= json_real_value(v) &&
                       (double)(int64_t)json_real_value(v) <= json_real_value(v) ?
                   AK_SCHEMA_TYPE_INTEGER :
                   AK_SCHEMA_TYPE_FRACTION;
    case JSON_STRING: return AK_SCHEMA_TYPE_STRING;
    case JSON_ARRAY: return AK_SCHEMA_TYPE_ARRAY;
    case JSON_OBJECT: return AK_SCHEMA_TYPE_OBJECT;
    }
    return 0;
}

static uint32_t build_values(struct ak_schema_compiler *c, const struct ak_schema_terms *t,
                             const json_t *values)
{
    struct ak_gb_list list = { 0 };
    unsigned types = ak_schema_terms_get_types(c, t);
    bool plain = has_only_values(t);
    json_t *value;
    size_t i;
    json_array_foreach (values, i, value) {
        if (!(types & get_type(value)) || (!plain && !try_value(c, t, value, true)))
            continue;
        ak_gb_append(&c->builder, &list, ak_schema_build_literal(c, value));
    }
    uint32_t expr = ak_gb_alternation(&c->builder, list.items, list.n);
    ak_free(list.items);
    return expr;
}

/* ---- types -------------------------------------------------------------- */
static uint32_t build_types(struct ak_schema_compiler *c, const struct ak_schema_terms *t)
{
    struct ak_grammar_builder *b = &c->builder;
    unsigned types = ak_schema_terms_get_types(c, t);
    uint32_t exprs[6] = { 0 };
    if (types & AK_SCHEMA_TYPE_NULL)
        exprs[0] = ak_gb_text(b, "null");
    if (types & AK_SCHEMA_TYPE_BOOLEAN)
        exprs[1] = ak_gb_either(b, ak_gb_text(b, "true"), ak_gb_text(b, "false"));
    if (types & (AK_SCHEMA_TYPE_INTEGER | AK_SCHEMA_TYPE_FRACTION))
        exprs[2] = ak_schema_build_number(c, t, types);
    if (types & AK_SCHEMA_TYPE_STRING)
        exprs[3] = ak_schema_build_string(c, t);
    if (types & AK_SCHEMA_TYPE_ARRAY)
        exprs[4] = ak_schema_build_array(c, t);
    if (types & AK_SCHEMA_TYPE_OBJECT)
        exprs[5] = ak_schema_build_object(c, t);
    return ak_gb_alternation(b, exprs, 6);
}

static uint32_t build_body(struct ak_schema_compiler *c, const struct ak_schema_terms *t,
                           bool values_done)
{
    uint32_t term, expr;
    bool one;
    const json_t *alternatives = ak_schema_terms_find_alternatives(c, t, &term, &one);
    if (alternatives) {
        if (one && !are_exclusive(c, t, term, alternatives) && ak_schema_ok(c))
            alternatives = ak_schema_make_exclusive(c, t->items[term].schema, alternatives);
        return ak_schema_ok(c) ? compile_alternatives(c, t, term, alternatives, values_done) :
                                 (uint32_t)AK_GB_NOTHING;
    }
    json_t *values = values_done ? NULL : ak_schema_collect_values(c, t);
    if (!ak_schema_ok(c))
        expr = AK_GB_NOTHING;
    else if (values)
        expr = build_values(c, t, values);
    else
        expr = build_types(c, t);
    json_decref(values);
    return expr;
}

/* ---- rules -------------------------------------------------------------- */
static int compare_schema(const void *a, const void *b)
{
    const struct ak_schema_rule_term *x = a, *y = b;
    if (x->schema != y->schema)
        return (uintptr_t)x->schema < (uintptr_t)y->schema ? -1 : 1;
    return (x->n_choices > y->n_choices) - (x->n_choices < y->n_choices);
}

static bool rules_equal(const struct ak_schema_rule *r, const struct ak_schema_rule *s)
{
    if (r->hash != s->hash || r->n != s->n || r->values_done != s->values_done)
        return false;
    for (uint32_t i = 0; i < r->n; i++)
        if (r->terms[i].schema != s->terms[i].schema || r->terms[i].origin != s->terms[i].origin ||
            r->terms[i].n_choices != s->terms[i].n_choices)
            return false;
    return true;
}

/* The rule of the terms, which equal terms share. *is_new: the caller must define it. */
static uint32_t find_or_add_rule(struct ak_schema_compiler *c, const struct ak_schema_terms *t,
                                 bool values_done, bool *is_new)
{
    struct ak_schema_rule r = { .n = t->n, .values_done = values_done, .hash = 17 };
    *is_new = false;
    r.terms = ak_alloc(t->n, sizeof *r.terms);
    if (!r.terms)
        goto no_memory;
    /* these look at the terms that a term added */
    bool with_origins = ak_schema_terms_find_with(t, "unevaluatedProperties") ||
                        ak_schema_terms_find_with(t, "unevaluatedItems");
    for (uint32_t i = 0; i < t->n; i++) {
        const struct ak_schema_term *term = &t->items[i];
        bool has_origin = with_origins && term->origin > 0;
        r.terms[i] = (struct ak_schema_rule_term){
            .schema = term->schema,
            .origin = has_origin ? t->items[term->origin - 1].schema : NULL,
            .n_choices = term->n_choices,
        };
    }
    if (t->n > 0)
        qsort(r.terms, t->n, sizeof *r.terms, compare_schema);
    for (uint32_t i = 0; i < r.n; i++)
        r.hash = (r.hash ^ (uint32_t)((uintptr_t)r.terms[i].schema >> 4) ^ r.terms[i].n_choices) *
                 0x9e3779b1u;
    for (uint32_t i = 0; i < c->n_rules; i++)
        if (rules_equal(&c->rules[i], &r)) {
            ak_free(r.terms);
            return c->rules[i].rule;
        }
    if (c->n_rules == AK_SCHEMA_RULES_MAX) {
        ak_free(r.terms);
        return ak_gb_fail(&c->builder, AKUNU_ERROR_UNSUPPORTED,
                          "the schema needs more than %d rules", AK_SCHEMA_RULES_MAX);
    }
    if (!ak_reserve(&c->rules, &c->rules_capacity, c->n_rules, 1))
        goto no_memory;
    r.rule = ak_gb_declare_rule(&c->builder, "", 0);
    c->rules[c->n_rules++] = r;
    *is_new = true;
    return r.rule;
no_memory:
    ak_free(r.terms);
    c->builder.status =
        ak_schema_ok(c) ? ak_fail_memory(c->builder.error, "a schema", 0) : c->builder.status;
    return 0;
}

static uint32_t compile_terms(struct ak_schema_compiler *c, const struct ak_schema_terms *t,
                              bool values_done)
{
    bool is_new;
    if (!ak_schema_ok(c) || t->is_unsatisfiable)
        return AK_GB_NOTHING;
    if (c->depth >= AK_SCHEMA_DEPTH_MAX)
        return ak_gb_fail(&c->builder, AKUNU_ERROR_UNSUPPORTED,
                          "the schema nests values more than %d deep", AK_SCHEMA_DEPTH_MAX);
    uint32_t which = find_or_add_rule(c, t, values_done, &is_new);
    if (is_new) {
        c->depth++;
        uint32_t expr = build_body(c, t, values_done);
        ak_gb_define_rule(&c->builder, which, expr);
        c->depth--;
    }
    return ak_schema_ok(c) ? ak_gb_rule_ref(&c->builder, which) : (uint32_t)AK_GB_NOTHING;
}

uint32_t ak_schema_compile(struct ak_schema_compiler *c, const struct ak_schema_terms *t)
{
    return compile_terms(c, t, false);
}
