/* Resolves $ref: to the whole schema, to a JSON pointer in it, or to an anchor. Nothing is
 * fetched. */
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "text/grammar/schema/compiler.h"

static int parse_hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' :
           c >= 'a' && c <= 'f' ? c - 'a' + 10 :
           c >= 'A' && c <= 'F' ? c - 'A' + 10 :
                                  -1;
}

/* Decodes %XX. `out` must be as large as the text. */
static size_t decode_percent(const char *text, char *out)
{
    size_t n = 0;
    for (; *text; text++) {
        if (*text == '%' && parse_hex_digit(text[1]) >= 0 && parse_hex_digit(text[2]) >= 0) {
            out[n++] = (char)(parse_hex_digit(text[1]) << 4 | parse_hex_digit(text[2]));
            text += 2;
        } else {
            out[n++] = *text;
        }
    }
    return n;
}

/* Decodes ~0 and ~1 in place; returns the new length. */
static size_t decode_tilde(char *text, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        bool tilde = text[i] == '~' && i + 1 < n && (text[i + 1] == '0' || text[i + 1] == '1');
        text[kept++] = !tilde ? text[i] : text[i + 1] == '0' ? '~' : '/';
        i += tilde;
    }
    return kept;
}

static const json_t *get_child(const json_t *at, const char *key, size_t n)
{
    size_t index = 0;
    if (json_is_object(at))
        return json_object_getn(at, key, n);
    if (!json_is_array(at) || n == 0 || n > 9 || (n > 1 && key[0] == '0'))
        return NULL;
    for (size_t i = 0; i < n; i++) {
        if (key[i] < '0' || key[i] > '9')
            return NULL;
        index = index * 10 + (size_t)(key[i] - '0');
    }
    return json_array_get(at, index);
}

/* The place of a JSON pointer, which begins with a slash and is decoded in place; NULL: none. */
static const json_t *follow_pointer(struct ak_schema_compiler *c, const json_t *schema,
                                    char *pointer, size_t n)
{
    const json_t *at = c->root;
    for (size_t i = 0; i < n && at;) {
        size_t end = i + 1;
        while (end < n && pointer[end] != '/')
            end++;
        at = get_child(at, pointer + i + 1, decode_tilde(pointer + i + 1, end - i - 1));
        i = end;
        if (at && i < n && json_is_string(json_object_get(at, "$id")))
            ak_schema_refuse(c, schema, "$ref", "it leads through a schema with an $id of its own");
    }
    return at;
}

/* The schema with that anchor, wherever a schema can be; NULL: none. */
static const json_t *find_anchor(const json_t *at, const char *anchor, unsigned depth)
{
    static const char *const no_schemas[] = { "enum", "const", "default", "examples", "example" };
    const json_t *found = NULL, *name;
    const char *key;
    json_t *value;
    size_t i;
    if (depth == AK_JSON_DEPTH_MAX)
        return NULL;
    if (json_is_array(at)) {
        json_array_foreach (at, i, value)
            if ((found = find_anchor(value, anchor, depth + 1)))
                return found;
        return NULL;
    }
    if (!json_is_object(at))
        return NULL;
    static const char *const names[] = { "$anchor", "$dynamicAnchor" };
    for (i = 0; i < 2; i++) {
        name = json_object_get(at, names[i]);
        if (json_is_string(name) && strcmp(json_string_value(name), anchor) == 0)
            return at;
    }
    json_object_foreach ((json_t *)(uintptr_t)at, key, value) {
        bool skip = false;
        for (i = 0; i < sizeof no_schemas / sizeof *no_schemas; i++)
            skip = skip || strcmp(key, no_schemas[i]) == 0;
        if (!skip && (found = find_anchor(value, anchor, depth + 1)))
            return found;
    }
    return NULL;
}

const json_t *ak_schema_resolve(struct ak_schema_compiler *c, const json_t *schema, const char *ref)
{
    const char *base = json_string_value(json_object_get(c->root, "$id")),
               *fragment = strchr(ref, '#');
    size_t length = fragment ? (size_t)(fragment - ref) : strlen(ref);
    const json_t *found = NULL;
    size_t base_length = base ? strcspn(base, "#") : 0;
    if (length > 0 && !(base && base_length == length && memcmp(base, ref, length) == 0)) {
        ak_schema_refuse(c, schema, "$ref",
                         "only what begins with # is looked up: nothing is fetched");
        return NULL;
    }
    if (!fragment || !fragment[1])
        return c->root;
    char *name = ak_alloc(strlen(fragment) + 1, 1);
    if (!name) {
        c->builder.status =
            ak_schema_ok(c) ? ak_fail_memory(c->builder.error, "a schema", 0) : c->builder.status;
        return NULL;
    }
    size_t n = decode_percent(fragment + 1, name);
    if (name[0] == '/')
        found = follow_pointer(c, schema, name, n);
    else
        found = find_anchor(c->root, name, 0);
    ak_free(name);
    if (!found)
        ak_schema_fail_invalid(c, schema, "$ref", "a place that the schema has");
    else if (!json_is_object(found) && !json_is_boolean(found))
        ak_schema_fail_invalid(c, schema, "$ref", "the place of a schema");
    else
        return found;
    return NULL;
}
