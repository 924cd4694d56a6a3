/* Choices of a schema: anyOf and oneOf, and alternatives made from dependent keywords, `not` and
 * `if`. */
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "text/grammar/schema/compiler.h"

/* ---- Made schemas ------------------------------------------------------- */
/* Lists of schemas that were made are kept, since lists of terms are compared by the addresses of
 * their schemas. `of` and `which` identify a list. */
static const json_t *find_made(const struct ak_schema_compiler *c, const json_t *of, uint32_t which)
{
    size_t i;
    json_t *entry;
    while (c->outer)
        c = c->outer;
    json_array_foreach (c->made, i, entry)
        if (json_integer_value(json_array_get(entry, 0)) == (json_int_t)(uintptr_t)of &&
            json_integer_value(json_array_get(entry, 1)) == (json_int_t)which)
            return json_array_get(entry, 2);
    return NULL;
}

/* Takes over `list`, which may be NULL for lack of memory. */
static const json_t *keep_made(struct ak_schema_compiler *c, const json_t *of, uint32_t which,
                               json_t *list)
{
    struct ak_schema_compiler *outermost = c;
    while (outermost->outer)
        outermost = outermost->outer;
    json_t *entry = json_pack("[I, I, o]", (json_int_t)(uintptr_t)of, (json_int_t)which, list);
    if (entry && json_array_append_new(outermost->made, entry) == 0)
        return list;
    c->builder.status =
        ak_schema_ok(c) ? ak_fail_memory(c->builder.error, "a schema", 0) : c->builder.status;
    return NULL;
}

enum { OPPOSITE = 1 << 30, EXCLUSIVE }; /* `which`, beyond the numbers of choices */

const json_t *ak_schema_make_not(struct ak_schema_compiler *c, const json_t *schema)
{
    const json_t *list = find_made(c, schema, OPPOSITE);
    if (!list)
        list = keep_made(c, schema, OPPOSITE, json_pack("[{s:O}]", "not", schema));
    return json_array_get(list, 0);
}

/* The alternative at index i and the opposites of the others; NULL: out of memory. */
static json_t *make_only(json_t *schema, const json_t *alternatives, size_t i)
{
    json_t *all = json_pack("[O]", json_array_get(alternatives, i));
    for (size_t j = 0; j < json_array_size(alternatives); j++) {
        if (j == i)
            continue;
        json_t *other = json_pack("{s:O}", "not", json_array_get(alternatives, j));
        if (json_object_set_nocheck(other, AK_SCHEMA_ONE_OF, schema) != 0 ||
            json_array_append(all, other) != 0) {
            json_decref(all);
            all = NULL;
        }
        json_decref(other);
    }
    return json_pack("{s:o}", "allOf", all);
}

const json_t *ak_schema_make_exclusive(struct ak_schema_compiler *c, const json_t *schema,
                                       const json_t *alternatives)
{
    const json_t *list = find_made(c, alternatives, EXCLUSIVE);
    if (list)
        return list;
    json_t *made = json_array();
    for (size_t i = 0; i < json_array_size(alternatives) && made; i++)
        if (json_array_append_new(made, make_only((json_t *)(uintptr_t)schema, alternatives, i)) !=
            0) {
            json_decref(made);
            made = NULL;
        }
    return keep_made(c, alternatives, EXCLUSIVE, made);
}

/* ---- Alternatives ------------------------------------------------------- */
/* Of a dependent keyword: the key is absent, or it is present and `then` holds. */
static json_t *make_dependent(const char *key, json_t *then)
{
    json_t *absent = json_pack("{s:{s:b}}", "properties", key, 0);
    json_t *present = json_is_array(then) ?
                          json_pack("{s:O}", "required", then) :
                          json_pack("{s:[s], s:[O]}", "required", key, "allOf", then);
    return json_pack("[o, o]", absent, present);
}

/* Of `not`, and of `if` with `then` or `else`: the condition and `then` hold, or one of the
 * alternatives of its opposite and `else`. NULL: a failure. */
static json_t *make_conditional(struct ak_schema_compiler *c, const json_t *schema, bool is_if)
{
    json_t *condition = json_object_get(schema, is_if ? "if" : "not"),
           *then = json_object_get(schema, "then"), *otherwise = json_object_get(schema, "else");
    const json_t *one_of = json_object_get(schema, AK_SCHEMA_ONE_OF);
    json_t *opposites = ak_schema_make_opposites(c, one_of ? one_of : schema,
                                                 one_of ? "oneOf" :
                                                 is_if  ? "if" :
                                                          "not",
                                                 condition),
           *one;
    size_t i;
    if (!opposites || !is_if)
        return opposites;
    json_t *list = json_pack("[{s:[O, O*]}]", "allOf", condition, then);
    json_array_foreach (opposites, i, one)
        json_array_append_new(list, json_pack("{s:[O, O*]}", "allOf", one, otherwise));
    json_decref(opposites);
    return list;
}

static const json_t *get_conditional(struct ak_schema_compiler *c, const json_t *schema,
                                     uint32_t number, bool is_if)
{
    const json_t *list = find_made(c, schema, number);
    if (list)
        return list;
    json_t *made = make_conditional(c, schema, is_if);
    if (!made && ak_schema_ok(c))
        made = json_pack("[b]", 1); /* lax: passed over */
    return ak_schema_ok(c) ? keep_made(c, schema, number, made) : NULL;
}

/* `dependencies` is what the two others were before draft 2019-09. */
static const struct {
    const char *keyword, *expected;
    bool lists, schemas;
} dependents[] = {
    { "dependentRequired", "an object of lists", true, false },
    { "dependentSchemas", "an object of schemas", false, true },
    { "dependencies", "an object of lists and schemas", true, true },
};
enum { N_DEPENDENTS = sizeof dependents / sizeof *dependents };

static const json_t *get_alternatives(struct ak_schema_compiler *c, const json_t *schema,
                                      uint32_t number, bool *one)
{
    static const char *const lists[] = { "anyOf", "oneOf" };
    uint32_t left = number;
    *one = false;
    for (int i = 0; i < 2; i++) {
        const json_t *list = json_object_get(schema, lists[i]);
        if (!list)
            continue;
        if (!json_is_array(list) || json_array_size(list) == 0) {
            ak_schema_fail_invalid(c, schema, lists[i], "a list of schemas");
            return NULL;
        }
        *one = i == 1;
        if (left-- == 0)
            return list;
    }
    *one = false;
    for (size_t i = 0; i < N_DEPENDENTS; i++) {
        json_t *map = json_object_get(schema, dependents[i].keyword), *value;
        const char *key;
        if (map && !json_is_object(map)) {
            ak_schema_fail_invalid(c, schema, dependents[i].keyword, "an object");
            return NULL;
        }
        json_object_foreach (map, key, value) {
            if (!(dependents[i].lists && json_is_array(value)) &&
                !(dependents[i].schemas && (json_is_object(value) || json_is_boolean(value)))) {
                ak_schema_fail_invalid(c, schema, dependents[i].keyword, dependents[i].expected);
                return NULL;
            }
            if (left-- > 0)
                continue;
            const json_t *made = find_made(c, schema, number);
            return made ? made : keep_made(c, schema, number, make_dependent(key, value));
        }
    }
    const json_t *no = json_object_get(schema, "not");
    if (no && !json_is_boolean(no) && !ak_schema_says_nothing(no) && left-- == 0)
        return get_conditional(c, schema, number, false);
    if (json_object_get(schema, "if") &&
        (json_object_get(schema, "then") || json_object_get(schema, "else")) && left == 0)
        return get_conditional(c, schema, number, true);
    return NULL;
}

const json_t *ak_schema_terms_find_alternatives(struct ak_schema_compiler *c,
                                                const struct ak_schema_terms *t, uint32_t *term,
                                                bool *one)
{
    for (*term = 0; *term < t->n && ak_schema_ok(c); ++*term) {
        const json_t *alternatives =
            get_alternatives(c, t->items[*term].schema, t->items[*term].n_choices, one);
        if (alternatives)
            return alternatives;
    }
    return NULL;
}
