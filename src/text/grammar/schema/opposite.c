/* The opposite of a schema, as alternatives that together allow just what the schema does not: for
 * each of its keywords the values that break it. Opposites of the schemas in it are left to their
 * own `not`. */
#include <string.h>

#include "text/grammar/schema/compiler.h"

/* What an opposite is made of. `out` gets the alternatives; false: this value of the keyword has no
 * opposite that a schema can say. */
struct opposite {
    struct ak_schema_compiler *c;
    const json_t *schema;
    json_t *out;
    bool no_memory;
};

/* Takes over `alternative`. Always true, as what adds alternatives returns. */
static bool add_alternative(struct opposite *o, json_t *alternative)
{
    if (!alternative ||
        json_object_set_new_nocheck(alternative, AK_SCHEMA_OPPOSITE, json_true()) != 0 ||
        json_array_append(o->out, alternative) != 0)
        o->no_memory = true;
    json_decref(alternative);
    return true;
}

/* A value of `type` with another keyword. Takes over `value`. */
static bool add_typed(struct opposite *o, const char *type, const char *keyword, json_t *value)
{
    json_t *one = json_pack("{s:s}", "type", type);
    if (json_object_set_new_nocheck(one, keyword, value) != 0)
        o->no_memory = true;
    return add_alternative(o, one);
}

static json_t *make_not(json_t *schema)
{
    return json_pack("{s:O}", "not", schema);
}

static json_t *make_nots(json_t *list)
{
    json_t *all = json_array(), *one;
    size_t i;
    json_array_foreach (list, i, one)
        json_array_append_new(all, make_not(one));
    return json_pack("{s:o}", "allOf", all);
}

/* ---- Types and values --------------------------------------------------- */
/* Values of other types. Numbers count as one. */
static bool add_other_types(struct opposite *o, unsigned types)
{
    static const struct {
        const char *name;
        unsigned types;
    } all[] = {
        { "null", AK_SCHEMA_TYPE_NULL },
        { "boolean", AK_SCHEMA_TYPE_BOOLEAN },
        { "number", AK_SCHEMA_TYPE_INTEGER | AK_SCHEMA_TYPE_FRACTION },
        { "string", AK_SCHEMA_TYPE_STRING },
        { "array", AK_SCHEMA_TYPE_ARRAY },
        { "object", AK_SCHEMA_TYPE_OBJECT },
    };
    json_t *others = json_array();
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!(types & all[i].types))
            json_array_append_new(others, json_string(all[i].name));
    if (json_array_size(others) > 0)
        return add_alternative(o, json_pack("{s:o}", "type", others));
    json_decref(others);
    return true;
}

static bool oppose_type(struct opposite *o, json_t *type)
{
    unsigned types = ak_schema_get_types(o->c, o->schema);
    (void)type;
    if ((types & AK_SCHEMA_TYPE_INTEGER) && !(types & AK_SCHEMA_TYPE_FRACTION))
        add_typed(o, "number", AK_SCHEMA_FRACTION, json_true());
    return add_other_types(o, types);
}

static bool oppose_values(struct opposite *o, json_t *values)
{
    json_t *strings = json_array(), *unequal = json_array(), *value;
    unsigned types = 0, booleans = 0;
    size_t i;
    json_array_foreach (values, i, value) {
        if (json_is_string(value)) {
            types |= AK_SCHEMA_TYPE_STRING;
            json_array_append(strings, value);
        } else if (ak_schema_is_number(value)) {
            types |= AK_SCHEMA_TYPE_INTEGER;
            json_array_append_new(unequal,
                                  json_pack("{s:[{s:O}, {s:O}]}", "anyOf", "exclusiveMaximum",
                                            value, "exclusiveMinimum", value));
        } else {
            types |= json_is_null(value)    ? AK_SCHEMA_TYPE_NULL :
                     json_is_boolean(value) ? AK_SCHEMA_TYPE_BOOLEAN :
                     json_is_array(value)   ? AK_SCHEMA_TYPE_ARRAY :
                                              AK_SCHEMA_TYPE_OBJECT;
            booleans |= json_is_true(value) ? 1u : json_is_false(value) ? 2u : 0u;
        }
    }
    if (types & AK_SCHEMA_TYPE_STRING)
        add_typed(o, "string", AK_SCHEMA_EXCEPT, json_incref(strings));
    if (types & AK_SCHEMA_TYPE_INTEGER)
        add_typed(o, "number", "allOf", json_incref(unequal));
    if (booleans == 1 || booleans == 2)
        add_alternative(o, json_pack("{s:b}", "const", booleans == 2));
    json_decref(strings);
    json_decref(unequal);
    return add_other_types(o, types) && !(types & (AK_SCHEMA_TYPE_ARRAY | AK_SCHEMA_TYPE_OBJECT));
}

static bool oppose_enum(struct opposite *o, json_t *values)
{
    return json_is_array(values) && oppose_values(o, values);
}

static bool oppose_const(struct opposite *o, json_t *value)
{
    json_t *one = json_pack("[O]", value);
    bool ok = oppose_values(o, one);
    json_decref(one);
    return ok;
}

/* ---- Strings, objects, arrays ------------------------------------------- */
static bool oppose_pattern(struct opposite *o, json_t *pattern)
{
    return add_typed(o, "string", AK_SCHEMA_UNLIKE, json_incref(pattern));
}

static bool oppose_properties(struct opposite *o, json_t *properties)
{
    const char *key;
    json_t *value;
    json_object_foreach (properties, key, value)
        add_alternative(o, json_pack("{s:s, s:[s], s:{s:o}}", "type", "object", "required", key,
                                     "properties", key, make_not(value)));
    return json_is_object(properties);
}

static bool oppose_required(struct opposite *o, json_t *names)
{
    json_t *name;
    size_t i;
    json_array_foreach (names, i, name)
        add_alternative(o, json_pack("{s:s, s:{s:b}}", "type", "object", "properties",
                                     json_string_value(name) ? json_string_value(name) : "", 0));
    return json_is_array(names);
}

/* dependentRequired, dependentSchemas, dependencies. */
static bool oppose_dependent(struct opposite *o, json_t *map)
{
    const char *key;
    json_t *then, *name;
    size_t i;
    json_object_foreach (map, key, then) {
        json_array_foreach (then, i, name)
            add_alternative(o,
                            json_pack("{s:s, s:[s], s:{s:b}}", "type", "object", "required", key,
                                      "properties",
                                      json_string_value(name) ? json_string_value(name) : "", 0));
        if (!json_is_array(then))
            add_alternative(
                o, json_pack("{s:s, s:[s], s:O}", "type", "object", "required", key, "not", then));
    }
    return json_is_object(map);
}

static bool oppose_prefix_items(struct opposite *o, json_t *schemas)
{
    json_t *value;
    size_t i;
    json_array_foreach (schemas, i, value) {
        json_t *prefix = json_array();
        for (size_t j = 0; j < i; j++)
            json_array_append_new(prefix, json_true());
        json_array_append_new(prefix, make_not(value));
        add_alternative(o, json_pack("{s:s, s:I, s:o}", "type", "array", "minItems",
                                     (json_int_t)i + 1, "prefixItems", prefix));
    }
    return json_is_array(schemas);
}

static bool oppose_items(struct opposite *o, json_t *items)
{
    return !json_is_array(items) && !json_object_get(o->schema, "prefixItems") &&
           add_typed(o, "array", "contains", make_not(items));
}

static bool oppose_contains(struct opposite *o, json_t *schema)
{
    const json_t *low = json_object_get(o->schema, "minContains");
    if (json_object_get(o->schema, "maxContains") || (low && json_number_value(low) > 1.0))
        return false;
    return (low && json_number_value(low) < 1.0) ||
           add_typed(o, "array", "items", make_not(schema));
}

/* ---- Schemas ------------------------------------------------------------ */
static bool oppose_any_of(struct opposite *o, json_t *list)
{
    return add_alternative(o, make_nots(list));
}

/* What breaks oneOf: a value that fits two of the list, or none. */
static bool oppose_one_of(struct opposite *o, json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        for (size_t j = 0; j < i; j++)
            add_alternative(o, json_pack("{s:[O, O]}", "allOf", json_array_get(list, j),
                                         json_array_get(list, i)));
    return add_alternative(o, make_nots(list));
}

static bool oppose_all_of(struct opposite *o, json_t *list)
{
    json_t *one;
    size_t i;
    json_array_foreach (list, i, one)
        add_alternative(o, make_not(one));
    return true;
}

static bool oppose_not(struct opposite *o, json_t *schema)
{
    return add_alternative(o, json_pack("{s:[O]}", "allOf", schema));
}

static bool oppose_ref(struct opposite *o, json_t *ref)
{
    const json_t *to =
        json_is_string(ref) ? ak_schema_resolve(o->c, o->schema, json_string_value(ref)) : NULL;
    return to && add_alternative(o, json_pack("{s:O}", "not", to));
}

/* ---- Keywords ----------------------------------------------------------- */
static const struct {
    const char *name;
    bool (*oppose)(struct opposite *o, json_t *value);
} keywords[] = {
    { "type", oppose_type },
    { "enum", oppose_enum },
    { "const", oppose_const },
    { "pattern", oppose_pattern },
    { "properties", oppose_properties },
    { "required", oppose_required },
    { "dependentRequired", oppose_dependent },
    { "dependentSchemas", oppose_dependent },
    { "dependencies", oppose_dependent },
    { "items", oppose_items },
    { "prefixItems", oppose_prefix_items },
    { "contains", oppose_contains },
    { "anyOf", oppose_any_of },
    { "oneOf", oppose_one_of },
    { "allOf", oppose_all_of },
    { "not", oppose_not },
    { "$ref", oppose_ref },
};

/* Bounds: the opposite of one is another, a step away. */
static const struct {
    const char *name, *type, *opposite;
    int step;
} bounds[] = {
    { "minimum", "number", "exclusiveMaximum", 0 },
    { "maximum", "number", "exclusiveMinimum", 0 },
    { "exclusiveMinimum", "number", "maximum", 0 },
    { "exclusiveMaximum", "number", "minimum", 0 },
    { "minLength", "string", "maxLength", -1 },
    { "maxLength", "string", "minLength", 1 },
    { "minItems", "array", "maxItems", -1 },
    { "maxItems", "array", "minItems", 1 },
    { "minProperties", "object", "maxProperties", -1 },
    { "maxProperties", "object", "minProperties", 1 },
};

static bool oppose_keyword(struct opposite *o, const char *key, json_t *value)
{
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
        if (strcmp(keywords[i].name, key) == 0)
            return keywords[i].oppose(o, value);
    for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
        if (strcmp(bounds[i].name, key) != 0)
            continue;
        double n = json_number_value(value);
        if (!ak_schema_is_number(value) || (bounds[i].step != 0 && !(n >= 0.0 && n < 1e9)))
            return false;
        if (bounds[i].step < 0 && n < 1.0)
            return true; /* nothing is below 0 */
        return add_typed(o, bounds[i].type, bounds[i].opposite,
                         bounds[i].step ? json_integer((json_int_t)n + bounds[i].step) :
                                          json_incref(value));
    }
    return ak_schema_is_silent(o->schema, key, value);
}

json_t *ak_schema_make_opposites(struct ak_schema_compiler *c, const json_t *place,
                                 const char *keyword, json_t *schema)
{
    struct opposite o = { .c = c, .schema = schema, .out = json_array() };
    const char *key;
    json_t *value;
    if (json_is_object(schema))
        ak_schema_check_keywords(c, schema);
    else if (!json_is_boolean(schema))
        ak_schema_fail_invalid(c, place, keyword, "a schema");
    else if (json_is_false(schema))
        add_alternative(&o, json_object());
    json_object_foreach (schema, key, value) {
        char why[AK_ERROR_MESSAGE_BYTES];
        if (!ak_schema_ok(c) || oppose_keyword(&o, key, value))
            continue;
        snprintf(why, sizeof why, "%sa grammar cannot say what breaks \"%s\"",
                 strcmp(keyword, "oneOf") == 0 ?
                     "two of its schemas may allow the same value, and " :
                     "",
                 key);
        ak_schema_refuse(c, place, keyword, why);
        json_decref(o.out);
        return NULL;
    }
    if (o.no_memory && ak_schema_ok(c))
        c->builder.status = ak_fail_memory(c->builder.error, "a schema", 0);
    if (ak_schema_ok(c))
        return o.out;
    json_decref(o.out);
    return NULL;
}
