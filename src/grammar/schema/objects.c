/* Objects. */
#include <string.h>

#include "base/mem.h"
#include "grammar/schema/schema_parts.h"

enum { MOST_PATTERNS = 4 };

static const json_t *object_at(struct ak_compiler *c, const json_t *schema, const char *keyword)
{
    const json_t *value = json_object_get(schema, keyword);
    if (value && !json_is_object(value))
        ak_schema_wrong(c, schema, keyword, "an object");
    return json_is_object(value) ? value : NULL;
}

/* Adds what a term says of a member: `known` is its name; NULL: one that no term lists, of
 * which `matches` says by a bit each which patterns it has. */
static void member_term(struct ak_compiler *c, const json_t *schema, const char *known, size_t n,
                        const struct ak_dfa *const *dfas, unsigned n_dfas, unsigned matches,
                        struct ak_terms *out)
{
    const json_t *properties = object_at(c, schema, "properties"),
                 *patterns = object_at(c, schema, "patternProperties");
    const json_t *own = known ? json_object_getn(properties, known, n) : NULL,
                 *additional = json_object_get(schema, "additionalProperties");
    const char *key;
    json_t *value;
    bool met = own != NULL;
    if (own)
        ak_terms_add(c, out, own, 0);
    json_object_foreach ((json_t *)(uintptr_t)patterns, key, value) {
        const struct ak_dfa *d =
            ak_schema_pattern(c, schema, "patternProperties", key, strlen(key));
        bool has = d && known && ak_dfa_has(d, known, n);
        for (unsigned i = 0; !known && i < n_dfas; i++)
            has = has || (dfas[i] == d && (matches >> i & 1));
        if (has)
            ak_terms_add(c, out, value, 0);
        met = met || has;
    }
    if (!met && additional)
        ak_terms_add(c, out, additional, 0);
}

/* What propertyNames says of names. */
static void name_terms(struct ak_compiler *c, const struct ak_terms *t, struct ak_terms *out)
{
    for (uint32_t i = 0; i < t->n; i++) {
        const json_t *names = json_object_get(t->items[i].schema, "propertyNames");
        if (names)
            ak_terms_add(c, out, names, 0);
    }
}

void ak_schema_member_terms(struct ak_compiler *c, const struct ak_terms *t, const char *name,
                            size_t n, struct ak_terms *out)
{
    struct ak_terms names = { 0 };
    for (uint32_t i = 0; i < t->n; i++)
        member_term(c, t->items[i].schema, name, n, NULL, 0, 0, out);
    name_terms(c, t, &names);
    if (names.n > 0 || names.never) {
        json_t *value = json_stringn(name, n);
        if (!value || !ak_schema_allows(c, &names, value))
            out->never = true;
        json_decref(value);
    }
    ak_terms_free(&names);
}

bool ak_schema_requires(const struct ak_terms *t, const char *name, size_t n)
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
/* All names that the terms list, in their order, as keys of an object. *all: there can be
 * no others. */
static json_t *listed(struct ak_compiler *c, const struct ak_terms *t, bool *all)
{
    struct ak_terms names_of = { 0 };
    json_t *names = json_object(), *value;
    const char *key;
    size_t j;
    for (uint32_t i = 0; i < t->n; i++) {
        const json_t *schema = t->items[i].schema, *required = json_object_get(schema, "required");
        json_object_foreach ((json_t *)(uintptr_t)object_at(c, schema, "properties"), key, value)
            json_object_set_new(names, key, json_true());
        if (required && !json_is_array(required))
            ak_schema_wrong(c, schema, "required", "a list of strings");
    }
    for (uint32_t i = 0; i < t->n; i++) {
        json_array_foreach (json_object_get(t->items[i].schema, "required"), j, value) {
            if (!json_is_string(value))
                ak_schema_wrong(c, t->items[i].schema, "required", "a list of strings");
            else
                json_object_setn_new(names, json_string_value(value), json_string_length(value),
                                     json_true());
        }
    }
    name_terms(c, t, &names_of);
    json_t *values = ak_schema_values(c, &names_of);
    json_array_foreach (values, j, value)
        if (json_is_string(value))
            json_object_setn_new(names, json_string_value(value), json_string_length(value),
                                 json_true());
    *all = values != NULL;
    json_decref(values);
    ak_terms_free(&names_of);
    return names;
}

/* ---- members ------------------------------------------------------------ */
struct object {
    struct ak_compiler *c;
    const struct ak_terms *t;
    struct ak_member *list;
    uint32_t n, n_required;
    bool all, others; /* there are no names but those listed; there are others */
    uint32_t colon;
};

static void add_member(struct object *o, uint32_t name, const struct ak_terms *value, bool required,
                       bool many)
{
    struct ak_build *b = &o->c->build;
    uint32_t part =
        ak_build_two(b, name, ak_build_two(b, o->colon, ak_schema_compile(o->c, value)));
    o->list[o->n++] = (struct ak_member){ .part = part, .required = required, .many = many };
}

static void add_listed(struct object *o, const json_t *names)
{
    struct ak_compiler *c = o->c;
    const char *key;
    json_t *value;
    size_t n;
    json_object_keylen_foreach((json_t *)(uintptr_t)names, key, n, value)
    {
        struct ak_terms terms = { 0 };
        bool required = ak_schema_requires(o->t, key, n);
        ak_schema_member_terms(c, o->t, key, n, &terms);
        if (required || !terms.never)
            add_member(o, ak_schema_quoted(c, key, n), &terms, required, false);
        o->n_required += required;
        ak_terms_free(&terms);
    }
}

/* The different patterns of all terms. */
static unsigned patterns(struct ak_compiler *c, const struct ak_terms *t,
                         const struct ak_dfa *dfas[MOST_PATTERNS])
{
    const char *key;
    json_t *value;
    unsigned n = 0;
    for (uint32_t i = 0; i < t->n; i++) {
        json_object_foreach (
            (json_t *)(uintptr_t)object_at(c, t->items[i].schema, "patternProperties"), key,
            value) {
            const struct ak_dfa *d =
                ak_schema_pattern(c, t->items[i].schema, "patternProperties", key, strlen(key));
            unsigned j = 0;
            while (j < n && dfas[j] != d)
                j++;
            if (j < n || !d)
                continue;
            if (n == MOST_PATTERNS) {
                ak_schema_refuse(c, t->items[i].schema, "patternProperties",
                                 "more than four patterns together");
                return n;
            }
            dfas[n++] = d;
        }
    }
    return n;
}

/* Names that are not listed and that propertyNames allows. */
static void other_names(struct ak_compiler *c, const struct ak_terms *t, const json_t *names,
                        struct ak_dfa *out)
{
    struct ak_terms terms = { 0 };
    const char *key;
    json_t *value;
    size_t n;
    uint32_t term;
    bool one;
    name_terms(c, t, &terms);
    if (ak_terms_choice(c, &terms, &term, &one))
        ak_schema_refuse(c, t->items[0].schema, "propertyNames", "names with alternatives");
    if (ak_terms_types(c, &terms) & AK_TYPE_STRING)
        ak_schema_string_dfa(c, &terms, out);
    else
        ak_dfa_lengths(1, 0, out, NULL);
    ak_terms_free(&terms);
    json_object_keylen_foreach((json_t *)(uintptr_t)names, key, n, value)
    {
        struct ak_dfa word;
        if (ak_dfa_word(key, n, &word, NULL) == AKUNU_OK && out->states)
            ak_schema_narrow(c, out, &word, true);
        ak_dfa_free(&word);
    }
}

/* Names that are not listed, apart by the patterns that they have. */
static void add_others(struct object *o, const json_t *names)
{
    struct ak_compiler *c = o->c;
    const struct ak_dfa *dfas[MOST_PATTERNS];
    unsigned n = patterns(c, o->t, dfas);
    struct ak_dfa all = { 0 };
    for (unsigned matches = 0; matches < 1u << n && ak_schema_ok(c); matches++) {
        struct ak_terms value = { 0 };
        struct ak_dfa some = { 0 }, any = { 0 };
        for (uint32_t i = 0; i < o->t->n; i++)
            member_term(c, o->t->items[i].schema, NULL, 0, dfas, n, matches, &value);
        if (!value.never && !all.states)
            other_names(c, o->t, names, &all);
        if (!value.never && ak_schema_ok(c) && ak_dfa_all(&any, NULL) == AKUNU_OK &&
            ak_dfa_both(&all, &any, false, &some, NULL) == AKUNU_OK) {
            for (unsigned i = 0; i < n; i++)
                ak_schema_narrow(c, &some, dfas[i], !(matches >> i & 1));
            if (ak_schema_ok(c) && !ak_dfa_is_empty(&some)) {
                add_member(o, ak_schema_quoted_dfa(c, &some), &value, false, true);
                o->others = true;
            }
        } else if (!value.never) {
            ak_build_fail(&c->build, AKUNU_ERROR_MEMORY, "no memory for a schema");
        }
        ak_dfa_free(&some);
        ak_dfa_free(&any);
        ak_terms_free(&value);
    }
    ak_dfa_free(&all);
}

static uint32_t braces(struct object *o, struct ak_members *how)
{
    struct ak_compiler *c = o->c;
    struct ak_build *b = &c->build;
    uint32_t space = ak_schema_space(c), before = c->reading ? space : (uint32_t)AK_BUILD_EMPTY;
    how->comma = ak_build_two(b, before, ak_build_two(b, ak_build_text(b, ","), space));
    how->ordered = !c->reading;
    uint32_t parts[] = { ak_build_text(b, "{"), space, ak_build_members(b, o->list, o->n, how),
                         space, ak_build_text(b, "}") };
    return ak_build_sequence(b, parts, 5);
}

static uint32_t members(struct object *o, const json_t *names)
{
    struct ak_compiler *c = o->c;
    struct ak_members how = { 0 };
    add_listed(o, names);
    if (!o->all)
        add_others(o, names);
    ak_schema_counts(c, o->t, "minProperties", "maxProperties", &how.low, &how.high);
    if (how.low <= o->n_required)
        how.low = 0;
    /* a name that is not listed may come twice, and counts once */
    for (uint32_t i = 0; i < o->t->n && how.low > 1 && o->others; i++)
        if (json_object_get(o->t->items[i].schema, "minProperties")) {
            ak_schema_refuse(c, o->t->items[i].schema, "minProperties",
                             "above 1 where names that are not listed may come");
            break;
        }
    if (c->options->lax && how.low > 1 && o->others)
        how.low = 1;
    if (o->n_required > how.high || how.low > how.high || (!o->others && o->n < how.low))
        return AK_BUILD_NOTHING;
    return braces(o, &how);
}

uint32_t ak_schema_object(struct ak_compiler *c, const struct ak_terms *t)
{
    struct ak_build *b = &c->build;
    uint32_t space = ak_schema_space(c);
    struct object o = { .c = c, .t = t };
    json_t *names = listed(c, t, &o.all);
    uint32_t part = AK_BUILD_NOTHING;
    if (json_object_size(names) > AK_SCHEMA_MOST_MEMBERS) {
        json_decref(names);
        return ak_build_fail(b, AKUNU_ERROR_UNSUPPORTED,
                             "an object of the schema has more than %d members",
                             AK_SCHEMA_MOST_MEMBERS);
    }
    o.colon = ak_build_two(b, c->reading ? space : (uint32_t)AK_BUILD_EMPTY,
                           ak_build_two(b, ak_build_text(b, ":"), space));
    o.list = ak_alloc(json_object_size(names) + (1u << MOST_PATTERNS), sizeof *o.list);
    if (!o.list)
        ak_build_fail(b, AKUNU_ERROR_MEMORY, "no memory for a schema");
    else if (ak_schema_ok(c))
        part = members(&o, names);
    ak_free(o.list);
    json_decref(names);
    return part;
}
