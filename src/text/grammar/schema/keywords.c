/* Table of keywords: which are supported, ignored or refused. Also the messages about keywords,
 * which name the place of the schema. */
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "text/grammar/schema/compiler.h"

enum support {
    SUPPORTED,   /* the grammar enforces it */
    ANNOTATION,  /* ignored: says nothing about what is valid */
    CONDITIONAL, /* refused unless check_conditional lets it pass */
    UNSUPPORTED, /* refused */
};

static const struct {
    const char *name;
    enum support support;
} keywords[] = {
    { "$ref", SUPPORTED },
    { "$defs", SUPPORTED },
    { "definitions", SUPPORTED },
    { "$anchor", SUPPORTED },
    { "type", SUPPORTED },
    { "nullable", SUPPORTED },
    { "enum", SUPPORTED },
    { "const", SUPPORTED },
    { "properties", SUPPORTED },
    { "required", SUPPORTED },
    { "additionalProperties", SUPPORTED },
    { "patternProperties", SUPPORTED },
    { "propertyNames", SUPPORTED },
    { "minProperties", SUPPORTED },
    { "maxProperties", SUPPORTED },
    { "dependentRequired", SUPPORTED },
    { "dependentSchemas", SUPPORTED },
    { "dependencies", SUPPORTED },
    { "items", SUPPORTED },
    { "prefixItems", SUPPORTED },
    { "minItems", SUPPORTED },
    { "maxItems", SUPPORTED },
    { "additionalItems", SUPPORTED },
    { "contains", SUPPORTED },
    { "minContains", SUPPORTED },
    { "maxContains", SUPPORTED },
    { "unevaluatedItems", SUPPORTED },
    { "unevaluatedProperties", SUPPORTED },
    { "minLength", SUPPORTED },
    { "maxLength", SUPPORTED },
    { "pattern", SUPPORTED },
    { "format", SUPPORTED },
    { "minimum", SUPPORTED },
    { "maximum", SUPPORTED },
    { "exclusiveMinimum", SUPPORTED },
    { "exclusiveMaximum", SUPPORTED },
    { "multipleOf", SUPPORTED },
    { "anyOf", SUPPORTED },
    { "oneOf", SUPPORTED },
    { "allOf", SUPPORTED },
    { "not", SUPPORTED },
    { "if", SUPPORTED },
    { "then", SUPPORTED },
    { "else", SUPPORTED },
    { AK_SCHEMA_OPPOSITE, SUPPORTED },
    { AK_SCHEMA_ONE_OF, SUPPORTED },
    { AK_SCHEMA_FRACTION, SUPPORTED },
    { AK_SCHEMA_EXCEPT, SUPPORTED },
    { AK_SCHEMA_UNLIKE, SUPPORTED },
    { "title", ANNOTATION },
    { "description", ANNOTATION },
    { "default", ANNOTATION },
    { "example", ANNOTATION },
    { "examples", ANNOTATION },
    { "deprecated", ANNOTATION },
    { "readOnly", ANNOTATION },
    { "writeOnly", ANNOTATION },
    { "$comment", ANNOTATION },
    { "contentEncoding", ANNOTATION },
    { "contentMediaType", ANNOTATION },
    { "contentSchema", ANNOTATION },
    { "$vocabulary", ANNOTATION },
    { "$schema", CONDITIONAL },
    { "$id", CONDITIONAL },
    { "$dynamicAnchor", CONDITIONAL },
    { "uniqueItems", CONDITIONAL },
    { "$dynamicRef", UNSUPPORTED },
    { "$recursiveRef", UNSUPPORTED },
    { "$recursiveAnchor", UNSUPPORTED },
    { "id", UNSUPPORTED },
};

/* Appends the JSON pointer of `wanted` below `at` to the n bytes of `path`. */
static bool find_pointer(const json_t *at, const json_t *wanted, char *path, size_t n,
                         size_t capacity, unsigned depth)
{
    const char *key;
    json_t *value;
    size_t i;
    path[n] = '\0';
    if (at == wanted)
        return true;
    if (depth == AK_JSON_DEPTH_MAX)
        return false;
    if (json_is_object(at)) {
        json_object_foreach ((json_t *)(uintptr_t)at, key, value) {
            size_t length = strlen(key);
            if ((!json_is_object(value) && !json_is_array(value) && value != wanted) ||
                n + length + 2 > capacity)
                continue;
            path[n] = '/';
            memcpy(path + n + 1, key, length);
            if (find_pointer(value, wanted, path, n + 1 + length, capacity, depth + 1))
                return true;
        }
    } else if (json_is_array(at)) {
        json_array_foreach (at, i, value) {
            char number[24];
            size_t length = (size_t)snprintf(number, sizeof number, "/%zu", i);
            if ((!json_is_object(value) && !json_is_array(value)) || n + length + 1 > capacity)
                continue;
            memcpy(path + n, number, length);
            if (find_pointer(value, wanted, path, n + length, capacity, depth + 1))
                return true;
        }
    }
    return false;
}

static const char *get_pointer(const struct ak_schema_compiler *c, const json_t *schema,
                               char *shown)
{
    char path[256];
    path[0] = '#';
    if (!find_pointer(c->root, schema, path, 1, sizeof path, 0))
        return "the schema";
    return ak_show(path, strlen(path), shown);
}

void ak_schema_refuse(struct ak_schema_compiler *c, const json_t *schema, const char *keyword,
                      const char *why)
{
    char shown[AK_SHOW_BYTES], name[AK_SHOW_BYTES];
    if (!ak_schema_ok(c))
        return;
    ak_show(keyword, strlen(keyword), name);
    const char *pointer = get_pointer(c, schema, shown);
    if (c->options->lax) {
        if (!c->outer)
            ak_log_line(&c->options->log, AKUNU_LOG_WARN,
                        "%s: the schema's \"%s\" is passed over: %s", pointer, name, why);
        return;
    }
    ak_gb_fail(&c->builder, AKUNU_ERROR_UNSUPPORTED, "%s: \"%s\" is not supported: %s", pointer,
               name, why);
}

void ak_schema_fail_invalid(struct ak_schema_compiler *c, const json_t *schema, const char *keyword,
                            const char *expected)
{
    char shown[AK_SHOW_BYTES], name[AK_SHOW_BYTES];
    const json_t *value = json_is_object(schema) ? json_object_get(schema, keyword) : schema;
    if (!ak_schema_ok(c))
        return;
    ak_show(keyword, strlen(keyword), name);
    ak_gb_fail(&c->builder, AKUNU_ERROR_FORMAT, "%s: \"%s\" is %s: %s is expected",
               get_pointer(c, schema, shown), name, value ? ak_json_kind(value) : "missing",
               expected);
}

bool ak_schema_says_nothing(const json_t *v)
{
    return json_is_true(v) || (json_is_object(v) && json_object_size(v) == 0);
}

/* Refuses keywords that are supported for some values only. */
static void check_conditional(struct ak_schema_compiler *c, const json_t *schema, const char *key,
                              const json_t *value)
{
    if (strcmp(key, "$schema") == 0) {
        const char *uri = json_string_value(value);
        if (!uri || (strncmp(uri, "https://json-schema.org/", 24) != 0 &&
                     strncmp(uri, "http://json-schema.org/", 23) != 0))
            ak_schema_refuse(c, schema, key, "the meaning of its keywords is unknown");
    } else if (strcmp(key, "$id") == 0) {
        if (schema != c->root)
            ak_schema_refuse(c, schema, key, "only the whole schema may have one");
    } else if (strcmp(key, "uniqueItems") == 0) {
        const json_t *max_items = json_object_get(schema, "maxItems");
        if (!json_is_boolean(value))
            ak_schema_fail_invalid(c, schema, key, "true or false");
        else if (json_is_true(value) &&
                 !(json_is_integer(max_items) && json_integer_value(max_items) <= 1))
            ak_schema_refuse(c, schema, key, "a grammar does not remember items");
    }
}

bool ak_schema_is_silent(const json_t *schema, const char *key, const json_t *value)
{
    /* the last three say more of another keyword, which is there */
    static const char *const silent[] = { "$defs",    "definitions", "$anchor",
                                          "$id",      "$schema",     "$dynamicAnchor",
                                          "nullable", "minContains", "maxContains" };
    if (ak_schema_says_nothing(value) || strncmp(key, "x-", 2) == 0)
        return strcmp(key, "uniqueItems") != 0;
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
        if (strcmp(keywords[i].name, key) == 0 && keywords[i].support == ANNOTATION)
            return true;
    for (size_t i = 0; i < sizeof silent / sizeof *silent; i++)
        if (strcmp(silent[i], key) == 0)
            return true;
    if (strcmp(key, "if") == 0)
        return !json_object_get(schema, "then") && !json_object_get(schema, "else");
    if (strcmp(key, "then") == 0 || strcmp(key, "else") == 0)
        return !json_object_get(schema, "if");
    return strcmp(key, "uniqueItems") == 0 && json_is_false(value);
}

static bool mark_checked(struct ak_schema_compiler *c, const json_t *schema)
{
    if (c->n_checked * 2 >= c->checked_mask) {
        uint32_t mask = c->checked_mask * 2 + 63;
        const json_t **grown = NULL;
        for (mask |= mask >> 1, mask |= mask >> 2, mask |= mask >> 4, mask |= mask >> 8,
             mask |= mask >> 16;
             !grown;) {
            grown = ak_alloc((size_t)mask + 1, sizeof *grown);
            if (!grown) {
                c->builder.status = ak_schema_ok(c) ?
                                        ak_fail_memory(c->builder.error, "a schema", 0) :
                                        c->builder.status;
                return true;
            }
        }
        for (uint32_t i = 0; c->checked_schemas && i <= c->checked_mask; i++) {
            if (!c->checked_schemas[i])
                continue;
            uint32_t at = (uint32_t)((uintptr_t)c->checked_schemas[i] >> 4) & mask;
            while (grown[at])
                at = (at + 1) & mask;
            grown[at] = c->checked_schemas[i];
        }
        ak_free(c->checked_schemas);
        c->checked_schemas = grown;
        c->checked_mask = mask;
    }
    uint32_t at = (uint32_t)((uintptr_t)schema >> 4) & c->checked_mask;
    for (; c->checked_schemas[at]; at = (at + 1) & c->checked_mask)
        if (c->checked_schemas[at] == schema)
            return true;
    c->checked_schemas[at] = schema;
    c->n_checked++;
    return false;
}

void ak_schema_check_keywords(struct ak_schema_compiler *c, const json_t *schema)
{
    const char *key;
    json_t *value;
    if (mark_checked(c, schema))
        return;
    json_object_foreach ((json_t *)(uintptr_t)schema, key, value) {
        size_t i = 0, n = sizeof keywords / sizeof *keywords;
        while (i < n && strcmp(keywords[i].name, key) != 0)
            i++;
        if (i == n && strncmp(key, "x-", 2) == 0)
            continue;
        if (i == n)
            ak_schema_refuse(c, schema, key, "it is not a known keyword");
        else if (keywords[i].support == UNSUPPORTED)
            ak_schema_refuse(c, schema, key, "it cannot be compiled to a grammar");
        else if (keywords[i].support == CONDITIONAL)
            check_conditional(c, schema, key, value);
    }
}
