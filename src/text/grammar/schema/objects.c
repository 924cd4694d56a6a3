/* Objects: listed members, and members with other names. Other names are split by the patterns that
 * they match, each group as one DFA. */
#include <string.h>

#include "base/mem.h"
#include "text/grammar/schema/compiler.h"

enum { PATTERNS_MAX = 4 };

static const json_t *get_object(struct ak_schema_compiler *c, const json_t *schema,
                                const char *keyword)
{
    const json_t *value = json_object_get(schema, keyword);
    if (value && !json_is_object(value))
        ak_schema_fail_invalid(c, schema, keyword, "an object");
    return json_is_object(value) ? value : NULL;
}

/* A member: its name, or a name that no term lists and that matches dfas[i] if bit i of `matches`
 * is set. */
struct member {
    const char *name; /* NULL: unlisted */
    size_t n;
    const struct ak_grammar_dfa *const *dfas;
    unsigned n_dfas, matches;
};

/* Does the name of the member match a key of patternProperties? */
static bool matches_pattern(struct ak_schema_compiler *c, const json_t *schema, const char *key,
                            const struct member *m)
{
    const struct ak_grammar_dfa *d =
        ak_schema_get_pattern_dfa(c, schema, "patternProperties", key, strlen(key));
    bool matches = d && m->name && ak_grammar_dfa_accepts(d, m->name, m->n);
    for (unsigned i = 0; !m->name && i < m->n_dfas; i++)
        matches = matches || (m->dfas[i] == d && (m->matches >> i & 1));
    return matches;
}

/* Adds the schemas that a term has for the value of a member, unless `out` is NULL. Does it have
 * one? */
static bool collect_member_terms(struct ak_schema_compiler *c, const json_t *schema,
                                 const struct member *m, struct ak_schema_terms *out)
{
    const json_t *properties = get_object(c, schema, "properties"),
                 *patterns = get_object(c, schema, "patternProperties");
    const json_t *own = m->name ? json_object_getn(properties, m->name, m->n) : NULL,
                 *additional = json_object_get(schema, "additionalProperties");
    const char *key;
    json_t *value;
    bool met = own != NULL;
    if (own && out)
        ak_schema_terms_add(c, out, own, 0);
    json_object_foreach ((json_t *)(uintptr_t)patterns, key, value) {
        if (!matches_pattern(c, schema, key, m))
            continue;
        if (out)
            ak_schema_terms_add(c, out, value, 0);
        met = true;
    }
    if (!met && additional && out)
        ak_schema_terms_add(c, out, additional, 0);
    return met || additional;
}

/* Does the term, or one that it adds, have a schema for the member? */
static bool is_evaluated(struct ak_schema_compiler *c, const struct ak_schema_terms *t,
                         uint32_t term, const struct member *m)
{
    for (uint32_t i = term; i < t->n; i++)
        if (ak_schema_terms_evaluates(t, i, term) &&
            (collect_member_terms(c, t->items[i].schema, m, NULL) ||
             (i > term && json_object_get(t->items[i].schema, "unevaluatedProperties"))))
            return true;
    return false;
}

/* Adds the schemas that all terms have for the value of a member. */
static void collect_member(struct ak_schema_compiler *c, const struct ak_schema_terms *t,
                           const struct member *m, struct ak_schema_terms *out)
{
    for (uint32_t i = 0; i < t->n; i++) {
        const json_t *unevaluated = json_object_get(t->items[i].schema, "unevaluatedProperties");
        collect_member_terms(c, t->items[i].schema, m, out);
        if (unevaluated && !is_evaluated(c, t, i, m))
            ak_schema_terms_add(c, out, unevaluated, 0);
    }
}

/* Adds the schemas of propertyNames. */
static void add_name_terms(struct ak_schema_compiler *c, const struct ak_schema_terms *t,
                           struct ak_schema_terms *out)
{
    for (uint32_t i = 0; i < t->n; i++) {
        const json_t *names = json_object_get(t->items[i].schema, "propertyNames");
        if (names)
            ak_schema_terms_add(c, out, names, 0);
    }
}

void ak_schema_add_member_terms(struct ak_schema_compiler *c, const struct ak_schema_terms *t,
                                const char *name, size_t n, struct ak_schema_terms *out)
{
    struct ak_schema_terms names = { 0 };
    collect_member(c, t, &(struct member){ .name = name, .n = n }, out);
    add_name_terms(c, t, &names);
    if (names.n > 0 || names.is_unsatisfiable) {
        json_t *value = json_stringn(name, n);
        if (!value || !ak_schema_allows(c, &names, value))
            out->is_unsatisfiable = true;
        json_decref(value);
    }
    ak_schema_terms_free(&names);
}

bool ak_schema_requires(const struct ak_schema_terms *t, const char *name, size_t n)
{
    for (uint32_t i = 0; i < t->n; i++) {
        const json_t *required = json_object_get(t->items[i].schema, "required"), *one;
        size_t j;
        json_array_foreach (required, j, one)
            if (json_string_length(one) == n && memcmp(json_string_value(one), name, n) == 0)
                return true;
    }
    return false;
}

/* ---- names -------------------------------------------------------------- */
/* All names that the terms list, in their order, as keys of an object. *all: no other names are
 * allowed. */
static json_t *list_names(struct ak_schema_compiler *c, const struct ak_schema_terms *t, bool *all)
{
    struct ak_schema_terms names_of = { 0 };
    json_t *names = json_object(), *value;
    const char *key;
    size_t j;
    for (uint32_t i = 0; i < t->n; i++) {
        const json_t *schema = t->items[i].schema, *required = json_object_get(schema, "required");
        json_object_foreach ((json_t *)(uintptr_t)get_object(c, schema, "properties"), key, value)
            json_object_set_new(names, key, json_true());
        if (required && !json_is_array(required))
            ak_schema_fail_invalid(c, schema, "required", "a list of strings");
    }
    for (uint32_t i = 0; i < t->n; i++) {
        json_array_foreach (json_object_get(t->items[i].schema, "required"), j, value) {
            if (!json_is_string(value))
                ak_schema_fail_invalid(c, t->items[i].schema, "required", "a list of strings");
            else
                json_object_setn_new(names, json_string_value(value), json_string_length(value),
                                     json_true());
        }
    }
    add_name_terms(c, t, &names_of);
    json_t *values = ak_schema_collect_values(c, &names_of);
    json_array_foreach (values, j, value)
        if (json_is_string(value))
            json_object_setn_new(names, json_string_value(value), json_string_length(value),
                                 json_true());
    *all = values != NULL;
    json_decref(values);
    ak_schema_terms_free(&names_of);
    return names;
}

/* ---- members ------------------------------------------------------------ */
struct object {
    struct ak_schema_compiler *c;
    const struct ak_schema_terms *t;
    struct ak_grammar_member *list;
    uint32_t n, n_required;
    bool is_closed;  /* only listed names are allowed */
    bool has_others; /* `list` has members with unlisted names */
    uint32_t colon;
};

static void add_member(struct object *o, uint32_t name, const struct ak_schema_terms *value,
                       bool required, bool is_repeatable)
{
    struct ak_grammar_builder *b = &o->c->builder;
    uint32_t expr =
        ak_gb_concat(b, name, ak_gb_concat(b, o->colon, ak_schema_compile(o->c, value)));
    o->list[o->n++] = (struct ak_grammar_member){ .expr = expr,
                                                  .required = required,
                                                  .is_repeatable = is_repeatable };
}

static void add_listed_members(struct object *o, const json_t *names)
{
    struct ak_schema_compiler *c = o->c;
    const char *key;
    json_t *value;
    size_t n;
    json_object_keylen_foreach((json_t *)(uintptr_t)names, key, n, value)
    {
        struct ak_schema_terms terms = { 0 };
        bool required = ak_schema_requires(o->t, key, n);
        ak_schema_add_member_terms(c, o->t, key, n, &terms);
        if (required || !terms.is_unsatisfiable)
            add_member(o, ak_schema_build_quoted(c, key, n), &terms, required, false);
        o->n_required += required;
        ak_schema_terms_free(&terms);
    }
}

/* The distinct patterns of all terms; returns their number. */
static unsigned list_patterns(struct ak_schema_compiler *c, const struct ak_schema_terms *t,
                              const struct ak_grammar_dfa *dfas[PATTERNS_MAX])
{
    const char *key;
    json_t *value;
    unsigned n = 0;
    for (uint32_t i = 0; i < t->n; i++) {
        json_object_foreach (
            (json_t *)(uintptr_t)get_object(c, t->items[i].schema, "patternProperties"), key,
            value) {
            const struct ak_grammar_dfa *d = ak_schema_get_pattern_dfa(
                c, t->items[i].schema, "patternProperties", key, strlen(key));
            unsigned j = 0;
            while (j < n && dfas[j] != d)
                j++;
            if (j < n || !d)
                continue;
            if (n == PATTERNS_MAX) {
                ak_schema_refuse(c, t->items[i].schema, "patternProperties",
                                 "more than four patterns together");
                return n;
            }
            dfas[n++] = d;
        }
    }
    return n;
}

/* Names that are not listed and that propertyNames allows, as a DFA. */
static void build_other_names_dfa(struct ak_schema_compiler *c, const struct ak_schema_terms *t,
                                  const json_t *names, struct ak_grammar_dfa *out)
{
    struct ak_schema_terms terms = { 0 };
    const char *key;
    json_t *value;
    size_t n;
    uint32_t term;
    bool one;
    add_name_terms(c, t, &terms);
    if (ak_schema_terms_find_alternatives(c, &terms, &term, &one))
        ak_schema_refuse(c, t->items[0].schema, "propertyNames", "names with alternatives");
    if (ak_schema_terms_get_types(c, &terms) & AK_SCHEMA_TYPE_STRING)
        ak_schema_build_string_dfa(c, &terms, out);
    else
        ak_grammar_dfa_make_lengths(1, 0, out, NULL);
    ak_schema_terms_free(&terms);
    json_object_keylen_foreach((json_t *)(uintptr_t)names, key, n, value)
    {
        struct ak_grammar_dfa word;
        if (ak_grammar_dfa_make_string(key, n, &word, NULL) == AKUNU_OK && out->states)
            ak_schema_intersect_dfa(c, out, &word, true);
        ak_grammar_dfa_free(&word);
    }
}

/* Adds members with unlisted names, one for each combination of patterns that a name can match. */
static void add_other_members(struct object *o, const json_t *names)
{
    struct ak_schema_compiler *c = o->c;
    const struct ak_grammar_dfa *dfas[PATTERNS_MAX];
    unsigned n = list_patterns(c, o->t, dfas);
    struct ak_grammar_dfa all = { 0 };
    for (unsigned matches = 0; matches < 1u << n && ak_schema_ok(c); matches++) {
        struct ak_schema_terms value = { 0 };
        struct ak_grammar_dfa some = { 0 }, any = { 0 };
        collect_member(c, o->t, &(struct member){ .dfas = dfas, .n_dfas = n, .matches = matches },
                       &value);
        if (!value.is_unsatisfiable && !all.states)
            build_other_names_dfa(c, o->t, names, &all);
        if (!value.is_unsatisfiable && ak_schema_ok(c) &&
            ak_grammar_dfa_make_all(&any, NULL) == AKUNU_OK &&
            ak_grammar_dfa_intersect(&all, &any, false, &some, NULL) == AKUNU_OK) {
            for (unsigned i = 0; i < n; i++)
                ak_schema_intersect_dfa(c, &some, dfas[i], !(matches >> i & 1));
            if (ak_schema_ok(c) && !ak_grammar_dfa_is_empty(&some)) {
                add_member(o, ak_schema_build_quoted_dfa(c, &some), &value, false, true);
                o->has_others = true;
            }
        } else if (!value.is_unsatisfiable) {
            ak_gb_fail(&c->builder, AKUNU_ERROR_MEMORY, "no memory for a schema");
        }
        ak_grammar_dfa_free(&some);
        ak_grammar_dfa_free(&any);
        ak_schema_terms_free(&value);
    }
    ak_grammar_dfa_free(&all);
}

static uint32_t build_braces(struct object *o, struct ak_grammar_members *layout)
{
    struct ak_schema_compiler *c = o->c;
    struct ak_grammar_builder *b = &c->builder;
    uint32_t space = ak_schema_build_space(c),
             space_before = c->reading ? space : (uint32_t)AK_GB_EMPTY;
    layout->comma = ak_gb_concat(b, space_before, ak_gb_concat(b, ak_gb_text(b, ","), space));
    layout->ordered = !c->reading;
    uint32_t exprs[] = { ak_gb_text(b, "{"), space, ak_gb_members(b, o->list, o->n, layout), space,
                         ak_gb_text(b, "}") };
    return ak_gb_sequence(b, exprs, 5);
}

static uint32_t build_members(struct object *o, const json_t *names)
{
    struct ak_schema_compiler *c = o->c;
    struct ak_grammar_members layout = { 0 };
    add_listed_members(o, names);
    if (!o->is_closed)
        add_other_members(o, names);
    ak_schema_read_counts(c, o->t, "minProperties", "maxProperties", &layout.low, &layout.high);
    if (layout.low <= o->n_required)
        layout.low = 0;
    /* the grammar lets an unlisted name come twice, but JSON counts it once */
    for (uint32_t i = 0; i < o->t->n && layout.low > 1 && o->has_others; i++)
        if (json_object_get(o->t->items[i].schema, "minProperties")) {
            ak_schema_refuse(c, o->t->items[i].schema, "minProperties",
                             "above 1 if unlisted names are allowed");
            break;
        }
    if (c->options->lax && layout.low > 1 && o->has_others)
        layout.low = 1;
    if (o->n_required > layout.high || layout.low > layout.high ||
        (!o->has_others && o->n < layout.low))
        return AK_GB_NOTHING;
    return build_braces(o, &layout);
}

uint32_t ak_schema_build_object(struct ak_schema_compiler *c, const struct ak_schema_terms *t)
{
    struct ak_grammar_builder *b = &c->builder;
    uint32_t space = ak_schema_build_space(c);
    struct object o = { .c = c, .t = t };
    json_t *names = list_names(c, t, &o.is_closed);
    uint32_t expr = AK_GB_NOTHING;
    if (json_object_size(names) > AK_SCHEMA_MEMBERS_MAX) {
        json_decref(names);
        return ak_gb_fail(b, AKUNU_ERROR_UNSUPPORTED,
                          "an object of the schema has more than %d members",
                          AK_SCHEMA_MEMBERS_MAX);
    }
    o.colon = ak_gb_concat(b, c->reading ? space : (uint32_t)AK_GB_EMPTY,
                           ak_gb_concat(b, ak_gb_text(b, ":"), space));
    o.list = ak_alloc(json_object_size(names) + (1u << PATTERNS_MAX), sizeof *o.list);
    if (!o.list)
        ak_gb_fail(b, AKUNU_ERROR_MEMORY, "no memory for a schema");
    else if (ak_schema_ok(c))
        expr = build_members(&o, names);
    ak_free(o.list);
    json_decref(names);
    return expr;
}
