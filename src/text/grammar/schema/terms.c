/* Lists of terms, schemas that must all hold: adding a schema adds what it refers to. Also the
 * types that they allow. */
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "text/grammar/schema/compiler.h"
#include "base/array.h"

static struct ak_schema_term *append_term(struct ak_schema_compiler *c, struct ak_schema_terms *t,
                                          struct ak_schema_term term)
{
    if (t->n == AK_SCHEMA_TERMS_MAX)
        ak_gb_fail(&c->builder, AKUNU_ERROR_UNSUPPORTED,
                   "the schema puts more than %d schemas together", AK_SCHEMA_TERMS_MAX);
    if (!ak_schema_ok(c))
        return NULL;
    if (!ak_reserve(&t->items, &t->capacity, t->n, 1)) {
        c->builder.status = ak_fail_memory(c->builder.error, "a schema", 0);
        return NULL;
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

bool ak_schema_terms_evaluates(const struct ak_schema_terms *t, uint32_t term, uint32_t from)
{
    while (term != from && t->items[term].origin > 0 &&
           !json_object_get(t->items[term].schema, AK_SCHEMA_OPPOSITE))
        term = t->items[term].origin - 1;
    return term == from;
}

const json_t *ak_schema_terms_find_with(const struct ak_schema_terms *t, const char *keyword)
{
    for (uint32_t i = 0; i < t->n; i++)
        if (json_object_get(t->items[i].schema, keyword))
            return t->items[i].schema;
    return NULL;
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
    if (no && ak_schema_says_nothing(no))
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

unsigned ak_schema_get_types(struct ak_schema_compiler *c, const json_t *schema)
{
    const json_t *type = json_object_get(schema, "type"), *name;
    unsigned types = 0, one;
    size_t i;
    if (json_object_get(schema, AK_SCHEMA_FRACTION))
        return AK_SCHEMA_TYPE_FRACTION;
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
        types &= ak_schema_get_types(c, t->items[i].schema);
    return types;
}
