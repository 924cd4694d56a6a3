/* From terms to parts. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "grammar/matcher.h"
#include "grammar/schema/schema_parts.h"

static uint32_t compile(struct ak_compiler *c, const struct ak_terms *t, bool values_done);

uint32_t ak_schema_space(struct ak_compiler *c)
{
    struct ak_build *b = &c->build;
    if (c->space != 0 || !ak_schema_ok(c))
        return c->space;
    if (c->reading) {
        struct ak_byte_set blanks = { { UINT64_C(1) << ' ' | UINT64_C(1) << '\t' |
                                        UINT64_C(1) << '\n' | UINT64_C(1) << '\r' } };
        c->space = ak_build_repeat(b, ak_build_bytes(b, &blanks), 0, AK_MANY);
    } else { /* a blank, or the end of a line and the next one's indent */
        struct ak_byte_set indent = { { UINT64_C(1) << ' ' | UINT64_C(1) << '\t' } };
        uint32_t line = ak_build_two(b, ak_build_repeat(b, ak_build_text(b, "\n"), 1, 2),
                                     ak_build_repeat(b, ak_build_bytes(b, &indent), 0, 20));
        c->space = ak_build_repeat(b, ak_build_either(b, ak_build_text(b, " "), line), 0, 1);
    }
    return c->space;
}

/* ---- choices ------------------------------------------------------------ */
static void alternative(struct ak_compiler *c, const struct ak_terms *t, uint32_t term,
                        const json_t *schema, struct ak_terms *out)
{
    ak_terms_copy(c, out, t);
    if (ak_schema_ok(c))
        out->items[term].choices++;
    ak_terms_add(c, out, schema, term + 1);
}

/* oneOf is kept where no two of its alternatives have a value in common. */
static void check_one(struct ak_compiler *c, const struct ak_terms *t, uint32_t term,
                      const json_t *alternatives)
{
    size_t n = json_array_size(alternatives);
    for (size_t i = 0; i < n && ak_schema_ok(c); i++) {
        for (size_t j = i + 1; j < n && ak_schema_ok(c); j++) {
            struct ak_terms a = { 0 }, b = { 0 };
            alternative(c, t, term, json_array_get(alternatives, i), &a);
            alternative(c, t, term, json_array_get(alternatives, j), &b);
            bool apart = ak_schema_disjoint(c, &a, &b, 0);
            ak_terms_free(&a);
            ak_terms_free(&b);
            if (!apart) {
                ak_schema_refuse(c, t->items[term].schema, "oneOf",
                                 "two of its schemas may allow the same value");
                return;
            }
        }
    }
}

static uint32_t choose(struct ak_compiler *c, const struct ak_terms *t, uint32_t term,
                       const json_t *alternatives, bool values_done)
{
    struct ak_part_list list = { 0 };
    const json_t *schema;
    size_t i;
    json_array_foreach (alternatives, i, schema) {
        struct ak_terms some = { 0 };
        alternative(c, t, term, schema, &some);
        ak_build_append(&c->build, &list, compile(c, &some, values_done));
        ak_terms_free(&some);
        if (!ak_schema_ok(c))
            break;
    }
    uint32_t part = ak_build_choice(&c->build, list.items, list.n);
    ak_free(list.items);
    return part;
}

/* ---- values ------------------------------------------------------------- */
static bool takes(struct ak_grammar *g, const char *text, struct ak_error *error)
{
    struct ak_grammar_matcher *m = NULL;
    size_t taken = 0, n = strlen(text);
    bool yes = ak_grammar_matcher_create(g, NULL, &m, error) == AKUNU_OK &&
               ak_grammar_matcher_bytes(m, text, n, &taken, error) == AKUNU_OK && taken == n &&
               ak_grammar_matcher_may_end(m);
    ak_grammar_matcher_free(m);
    return yes;
}

/* A grammar of the terms alone says whether it takes the value's text; values_done: what the
 * terms themselves list is no matter. */
static bool try(struct ak_compiler *c, const struct ak_terms *t, const json_t *value,
                bool values_done)
{
    struct ak_schema_options options = *c->options;
    struct ak_compiler inner = { .root = c->root,
                                 .options = &options,
                                 .reading = true,
                                 .outer = c,
                                 .depth = c->depth + 1,
                                 .trials = c->trials };
    struct ak_grammar *g = NULL;
    bool yes = false;
    if (++*c->trials > AK_SCHEMA_MOST_TRIALS) {
        ak_build_fail(&c->build, AKUNU_ERROR_UNSUPPORTED,
                      "the schema has too many values to be tried");
        return false;
    }
    options.form = AK_SCHEMA_READING;
    ak_compiler_begin(&inner, c->build.error);
    uint32_t root = compile(&inner, t, values_done);
    ak_status status = ak_build_finish(&inner.build, root, &g);
    char *text = status == AKUNU_OK ? ak_json_written(value) : NULL;
    if (text)
        yes = takes(g, text, NULL);
    else if (ak_schema_ok(c))
        c->build.status =
            status != AKUNU_OK ? status : ak_fail_memory(c->build.error, "a schema", 0);
    ak_free(text);
    ak_grammar_free(g);
    ak_compiler_free(&inner);
    return yes;
}

bool ak_schema_allows(struct ak_compiler *c, const struct ak_terms *t, const json_t *value)
{
    json_t *values = ak_schema_values(c, t), *one;
    bool listed = !values;
    size_t i;
    json_array_foreach (values, i, one)
        listed = listed || ak_json_same(one, value);
    json_decref(values);
    /* alternatives list values of their own */
    uint32_t term;
    bool exactly, chosen = !ak_terms_choice(c, t, &term, &exactly);
    return listed && ak_schema_ok(c) && !t->never && try(c, t, value, chosen);
}

/* Nothing but values, types and notes: values need no trial. */
static bool only_values(const struct ak_terms *t)
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

static unsigned type_of(const json_t *v)
{
    switch (json_typeof(v)) {
    case JSON_NULL: return AK_TYPE_NULL;
    case JSON_TRUE:
    case JSON_FALSE: return AK_TYPE_BOOLEAN;
    case JSON_INTEGER: return AK_TYPE_INTEGER;
    case JSON_REAL:
        return json_real_value(v) >= -9e15 && json_real_value(v) <= 9e15 &&
                       (double)(int64_t)json_real_value(v) >= json_real_value(v) &&
                       (double)(int64_t)json_real_value(v) <= json_real_value(v) ?
                   AK_TYPE_INTEGER :
                   AK_TYPE_FRACTION;
    case JSON_STRING: return AK_TYPE_STRING;
    case JSON_ARRAY: return AK_TYPE_ARRAY;
    case JSON_OBJECT: return AK_TYPE_OBJECT;
    }
    return 0;
}

static uint32_t values_part(struct ak_compiler *c, const struct ak_terms *t, const json_t *values)
{
    struct ak_part_list list = { 0 };
    unsigned types = ak_terms_types(c, t);
    bool plain = only_values(t);
    json_t *value;
    size_t i;
    json_array_foreach (values, i, value) {
        if (!(types & type_of(value)) || (!plain && !try(c, t, value, true)))
            continue;
        ak_build_append(&c->build, &list, ak_schema_literal(c, value));
    }
    uint32_t part = ak_build_choice(&c->build, list.items, list.n);
    ak_free(list.items);
    return part;
}

/* ---- types -------------------------------------------------------------- */
static uint32_t types_part(struct ak_compiler *c, const struct ak_terms *t)
{
    struct ak_build *b = &c->build;
    unsigned types = ak_terms_types(c, t);
    uint32_t parts[6] = { 0 };
    if (types & AK_TYPE_NULL)
        parts[0] = ak_build_text(b, "null");
    if (types & AK_TYPE_BOOLEAN)
        parts[1] = ak_build_either(b, ak_build_text(b, "true"), ak_build_text(b, "false"));
    if (types & (AK_TYPE_INTEGER | AK_TYPE_FRACTION))
        parts[2] = ak_schema_number(c, t, !(types & AK_TYPE_FRACTION));
    if (types & AK_TYPE_STRING)
        parts[3] = ak_schema_string(c, t);
    if (types & AK_TYPE_ARRAY)
        parts[4] = ak_schema_array(c, t);
    if (types & AK_TYPE_OBJECT)
        parts[5] = ak_schema_object(c, t);
    return ak_build_choice(b, parts, 6);
}

static uint32_t body(struct ak_compiler *c, const struct ak_terms *t, bool values_done)
{
    uint32_t term, part;
    bool one;
    const json_t *alternatives = ak_terms_choice(c, t, &term, &one);
    if (alternatives) {
        if (one)
            check_one(c, t, term, alternatives);
        return ak_schema_ok(c) ? choose(c, t, term, alternatives, values_done) :
                                 (uint32_t)AK_BUILD_NOTHING;
    }
    json_t *values = values_done ? NULL : ak_schema_values(c, t);
    if (!ak_schema_ok(c))
        part = AK_BUILD_NOTHING;
    else if (values)
        part = values_part(c, t, values);
    else
        part = types_part(c, t);
    json_decref(values);
    return part;
}

/* ---- one rule for equal terms ------------------------------------------- */
static int by_schema(const void *a, const void *b)
{
    const struct ak_term *x = a, *y = b;
    if (x->schema != y->schema)
        return (uintptr_t)x->schema < (uintptr_t)y->schema ? -1 : 1;
    return (x->choices > y->choices) - (x->choices < y->choices);
}

static bool same(const struct ak_rule_of *r, const struct ak_rule_of *s)
{
    if (r->hash != s->hash || r->n != s->n || r->values_done != s->values_done)
        return false;
    for (uint32_t i = 0; i < r->n; i++)
        if (r->terms[i].schema != s->terms[i].schema || r->terms[i].choices != s->terms[i].choices)
            return false;
    return true;
}

/* The rule of the terms; *made: it is new, and to be defined. */
static uint32_t rule(struct ak_compiler *c, const struct ak_terms *t, bool values_done, bool *made)
{
    struct ak_rule_of r = { .n = t->n, .values_done = values_done, .hash = 17 };
    *made = false;
    r.terms = ak_alloc(t->n, sizeof *r.terms);
    if (!r.terms)
        goto no_memory;
    if (t->n > 0) {
        memcpy(r.terms, t->items, t->n * sizeof *r.terms);
        qsort(r.terms, t->n, sizeof *r.terms, by_schema);
    }
    for (uint32_t i = 0; i < r.n; i++)
        r.hash = (r.hash ^ (uint32_t)((uintptr_t)r.terms[i].schema >> 4) ^ r.terms[i].choices) *
                 0x9e3779b1u;
    for (uint32_t i = 0; i < c->n_rules; i++)
        if (same(&c->rules[i], &r)) {
            ak_free(r.terms);
            return c->rules[i].rule;
        }
    if (c->n_rules == AK_SCHEMA_MOST_RULES) {
        ak_free(r.terms);
        return ak_build_fail(&c->build, AKUNU_ERROR_UNSUPPORTED,
                             "the schema needs more than %d rules", AK_SCHEMA_MOST_RULES);
    }
    if (c->n_rules == c->room_rules) {
        struct ak_rule_of *grown =
            ak_realloc(c->rules, (size_t)c->room_rules * 2 + 16, sizeof *grown);
        if (!grown)
            goto no_memory;
        c->rules = grown;
        c->room_rules = c->room_rules * 2 + 16;
    }
    r.rule = ak_build_rule(&c->build, "", 0);
    c->rules[c->n_rules++] = r;
    *made = true;
    return r.rule;
no_memory:
    ak_free(r.terms);
    c->build.status =
        ak_schema_ok(c) ? ak_fail_memory(c->build.error, "a schema", 0) : c->build.status;
    return 0;
}

static uint32_t compile(struct ak_compiler *c, const struct ak_terms *t, bool values_done)
{
    bool made;
    if (!ak_schema_ok(c) || t->never)
        return AK_BUILD_NOTHING;
    if (c->depth >= AK_SCHEMA_MOST_DEPTH)
        return ak_build_fail(&c->build, AKUNU_ERROR_UNSUPPORTED,
                             "the schema nests values more than %d deep", AK_SCHEMA_MOST_DEPTH);
    uint32_t which = rule(c, t, values_done, &made);
    if (made) {
        c->depth++;
        uint32_t part = body(c, t, values_done);
        ak_build_define(&c->build, which, part);
        c->depth--;
    }
    return ak_schema_ok(c) ? ak_build_call(&c->build, which) : (uint32_t)AK_BUILD_NOTHING;
}

uint32_t ak_schema_compile(struct ak_compiler *c, const struct ak_terms *t)
{
    return compile(c, t, false);
}
