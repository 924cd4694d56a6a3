/* Lists of terms, schemas that must all hold: adding a schema adds what it refers to. Also the
 * types that they allow and the choices that they offer. */
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "grammar/schema/compiler.h"

static struct ak_schema_term *append_term(struct ak_schema_compiler *c, struct ak_schema_terms *t,
                                          struct ak_schema_term term)
{
    if (t->n == AK_SCHEMA_TERMS_MAX)
        ak_gb_fail(&c->builder, AKUNU_ERROR_UNSUPPORTED,
                   "the schema puts more than %d schemas together", AK_SCHEMA_TERMS_MAX);
    if (!ak_schema_ok(c))
        return NULL;
    if (t->n == t->capacity) {
        struct ak_schema_term *grown =
            ak_realloc(t->items, (size_t)t->capacity * 2 + 4, sizeof *grown);
        if (!grown) {
            c->builder.status = ak_fail_memory(c->builder.error, "a schema", 0);
            return NULL;
        }
        t->items = grown;
        t->capacity = t->capacity * 2 + 4;
    }
    t->items[t->n] = term;
    return &t->items[t->n++];
}

/* Does `schema` refer to itself, through $ref and allOf alone? Such a loop never reaches a value.
 */
static bool derives_from(const struct ak_schema_terms *t, const json_t *schema, uint32_t from)
{
    for (; from > 0; from = t->items[from - 1].origin)
        if (t->items[from - 1].schema == schema)
            return true;
    return false;
}

static void add_references(struct ak_schema_compiler *c, struct ak_schema_terms *t,
                           const json_t *schema, uint32_t from)
{
    const json_t *ref = json_object_get(schema, "$ref"), *all = json_object_get(schema, "allOf"),
                 *no = json_object_get(schema, "not");
    const json_t *value;
    size_t i;
    if (ref && !json_is_string(ref)) {
        ak_schema_fail_invalid(c, schema, "$ref", "a string");
    } else if (ref) {
        const json_t *to = ak_schema_resolve(c, schema, json_string_value(ref));
        if (to)
            ak_schema_terms_add(c, t, to, from);
    }
    if (all && !json_is_array(all)) {
        ak_schema_fail_invalid(c, schema, "allOf", "a list of schemas");
    } else if (all) {
        json_array_foreach (all, i, value)
            ak_schema_terms_add(c, t, value, from);
    }
    /* `not` is supported only for true, false and {} */
    if (no && (json_is_true(no) || (json_is_object(no) && json_object_size(no) == 0)))
        t->is_unsatisfiable = true;
}

void ak_schema_terms_add(struct ak_schema_compiler *c, struct ak_schema_terms *t,
                         const json_t *schema, uint32_t from)
{
    if (!ak_schema_ok(c))
        return;
    if (json_is_boolean(schema)) {
        t->is_unsatisfiable = t->is_unsatisfiable || json_is_false(schema);
        return;
    }
    if (!json_is_object(schema)) {
        ak_gb_fail(&c->builder, AKUNU_ERROR_FORMAT,
                   "a schema is %s: an object, true or false is expected", ak_json_kind(schema));
        return;
    }
    if (derives_from(t, schema, from)) {
        ak_schema_refuse(c, schema, "$ref",
                         "the schema refers to itself without going into a value");
        return;
    }
    for (uint32_t i = 0; i < t->n; i++)
        if (t->items[i].schema == schema)
            return;
    ak_schema_check_keywords(c, schema);
    if (json_object_size(schema) == 0 ||
        !append_term(c, t, (struct ak_schema_term){ .schema = schema, .origin = from }))
        return;
    add_references(c, t, schema, t->n);
}

void ak_schema_terms_copy(struct ak_schema_compiler *c, struct ak_schema_terms *to,
                          const struct ak_schema_terms *from)
{
    to->is_unsatisfiable = from->is_unsatisfiable;
    to->n = 0;
    for (uint32_t i = 0; i < from->n; i++)
        append_term(c, to, from->items[i]);
}

void ak_schema_terms_free(struct ak_schema_terms *t)
{
    ak_free(t->items);
    *t = (struct ak_schema_terms){ 0 };
}

/* ---- types -------------------------------------------------------------- */
static unsigned find_type(const char *name)
{
    static const struct {
        const char *name;
        unsigned types;
    } types[] = {
        { "null", AK_SCHEMA_TYPE_NULL },
        { "boolean", AK_SCHEMA_TYPE_BOOLEAN },
        { "integer", AK_SCHEMA_TYPE_INTEGER },
        { "number", AK_SCHEMA_TYPE_INTEGER | AK_SCHEMA_TYPE_FRACTION },
        { "string", AK_SCHEMA_TYPE_STRING },
        { "array", AK_SCHEMA_TYPE_ARRAY },
        { "object", AK_SCHEMA_TYPE_OBJECT },
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].name, name) == 0)
            return types[i].types;
    return 0;
}

static unsigned get_types(struct ak_schema_compiler *c, const json_t *schema)
{
    const json_t *type = json_object_get(schema, "type"), *name;
    unsigned types = 0, one;
    size_t i;
    if (!type)
        return AK_SCHEMA_TYPE_ALL;
    if (json_is_true(json_object_get(schema, "nullable")))
        types |= AK_SCHEMA_TYPE_NULL;
    if (json_is_string(type) && (one = find_type(json_string_value(type))))
        return types | one;
    if (!json_is_array(type)) {
        ak_schema_fail_invalid(
            c, schema, "type",
            "null, boolean, integer, number, string, array, object or a list of them");
        return 0;
    }
    json_array_foreach (type, i, name) {
        one = json_is_string(name) ? find_type(json_string_value(name)) : 0;
        if (one == 0)
            ak_schema_fail_invalid(
                c, schema, "type",
                "a list of null, boolean, integer, number, string, array, object");
        types |= one;
    }
    return types;
}

unsigned ak_schema_terms_get_types(struct ak_schema_compiler *c, const struct ak_schema_terms *t)
{
    unsigned types = t->is_unsatisfiable ? 0 : AK_SCHEMA_TYPE_ALL;
    for (uint32_t i = 0; i < t->n; i++)
        types &= get_types(c, t->items[i].schema);
    return types;
}

/* ---- choices ------------------------------------------------------------ */
/* Alternatives of dependentRequired and dependentSchemas: the key is absent, or it is present and
 * `then` holds. */
static json_t *make_dependent_alternatives(const char *key, json_t *then)
{
    json_t *absent = json_pack("{s:{s:b}}", "properties", key, 0);
    json_t *present = json_is_array(then) ?
                          json_pack("{s:O}", "required", then) :
                          json_pack("{s:[s], s:[O]}", "required", key, "allOf", then);
    return json_pack("[o, o]", absent, present);
}

/* Synthesized alternatives are cached, since lists of terms are compared by the addresses of their
 * schemas. */
static const json_t *derive_alternatives(struct ak_schema_compiler *c, const json_t *schema,
                                         uint32_t choice, const char *key, json_t *then)
{
    struct ak_schema_compiler *outermost = c;
    size_t i;
    json_t *entry;
    while (outermost->outer)
        outermost = outermost->outer;
    json_array_foreach (outermost->derived, i, entry)
        if (json_integer_value(json_array_get(entry, 0)) == (json_int_t)(uintptr_t)schema &&
            json_integer_value(json_array_get(entry, 1)) == (json_int_t)choice)
            return json_array_get(entry, 2);
    json_t *alternatives = make_dependent_alternatives(key, then);
    entry = json_pack("[I, I, o]", (json_int_t)(uintptr_t)schema, (json_int_t)choice, alternatives);
    if (!entry || json_array_append_new(outermost->derived, entry) != 0) {
        c->builder.status =
            ak_schema_ok(c) ? ak_fail_memory(c->builder.error, "a schema", 0) : c->builder.status;
        return NULL;
    }
    return alternatives;
}

static const json_t *get_alternatives(struct ak_schema_compiler *c, const json_t *schema,
                                      uint32_t number, bool *one)
{
    static const char *const lists[] = { "anyOf", "oneOf" }, *const dependents[] = {
        "dependentRequired", "dependentSchemas"
    };
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
    for (int i = 0; i < 2; i++) {
        json_t *map = json_object_get(schema, dependents[i]), *value;
        const char *key;
        if (map && !json_is_object(map)) {
            ak_schema_fail_invalid(c, schema, dependents[i], "an object");
            return NULL;
        }
        json_object_foreach (map, key, value) {
            if (i == 0 ? !json_is_array(value) :
                         !json_is_object(value) && !json_is_boolean(value)) {
                ak_schema_fail_invalid(c, schema, dependents[i],
                                       i == 0 ? "an object of lists" : "an object of schemas");
                return NULL;
            }
            if (left-- == 0)
                return derive_alternatives(c, schema, number, key, value);
        }
    }
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
