/* Values that a schema lists, and values as text. */
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/buffer.h"
#include "grammar/schema/schema_parts.h"

bool ak_json_same(const json_t *a, const json_t *b)
{
    const char *key;
    json_t *value;
    size_t i;
    if (json_is_number(a) && json_is_number(b))
        return json_is_integer(a) && json_is_integer(b) ?
                   json_integer_value(a) == json_integer_value(b) :
                   json_number_value(a) >= json_number_value(b) &&
                       json_number_value(a) <= json_number_value(b);
    if (json_typeof(a) != json_typeof(b))
        return false;
    switch (json_typeof(a)) {
    case JSON_STRING:
        return json_string_length(a) == json_string_length(b) &&
               memcmp(json_string_value(a), json_string_value(b), json_string_length(a)) == 0;
    case JSON_ARRAY:
        if (json_array_size(a) != json_array_size(b))
            return false;
        json_array_foreach (a, i, value)
            if (!ak_json_same(value, json_array_get(b, i)))
                return false;
        return true;
    case JSON_OBJECT:
        if (json_object_size(a) != json_object_size(b))
            return false;
        json_object_foreach ((json_t *)(uintptr_t)a, key, value) {
            const json_t *other = json_object_get(b, key);
            if (!other || !ak_json_same(value, other))
                return false;
        }
        return true;
    default: return true;
    }
}

/* ---- as text ------------------------------------------------------------ */
static ak_status add(struct ak_buffer *b, const char *text)
{
    return ak_buffer_add(b, text, strlen(text), NULL);
}

static ak_status add_string(struct ak_buffer *b, const char *text, size_t n)
{
    AK_TRY(add(b, "\""));
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text[i];
        char escape[8] = { (char)c };
        if (c < 0x20)
            snprintf(escape, sizeof escape, "\\u%04x", c);
        else if (c == '"' || c == '\\')
            snprintf(escape, sizeof escape, "\\%c", c);
        AK_TRY(ak_buffer_add(b, escape, c ? strlen(escape) : 6, NULL));
    }
    return add(b, "\"");
}

/* json_dumps would write 1.1 with 17 digits. Values are as deep as ak_json_parse lets them. */
static ak_status write(struct ak_buffer *b, const json_t *v)
{
    char number[AK_NUMBER_BYTES];
    const char *key;
    json_t *value;
    size_t i, n = 0;
    switch (json_typeof(v)) {
    case JSON_NULL: return add(b, "null");
    case JSON_TRUE: return add(b, "true");
    case JSON_FALSE: return add(b, "false");
    case JSON_STRING: return add_string(b, json_string_value(v), json_string_length(v));
    case JSON_ARRAY:
        AK_TRY(add(b, "["));
        json_array_foreach (v, i, value) {
            AK_TRY(add(b, n++ ? "," : ""));
            AK_TRY(write(b, value));
        }
        return add(b, "]");
    case JSON_OBJECT:
        AK_TRY(add(b, "{"));
        json_object_foreach ((json_t *)(uintptr_t)v, key, value) {
            AK_TRY(add(b, n++ ? "," : ""));
            AK_TRY(add_string(b, key, strlen(key)));
            AK_TRY(add(b, ":"));
            AK_TRY(write(b, value));
        }
        return add(b, "}");
    default: return add(b, ak_number_text(v, number));
    }
}

char *ak_json_written(const json_t *value)
{
    struct ak_buffer b = { 0 };
    if (write(&b, value) != AKUNU_OK || ak_buffer_add(&b, "", 1, NULL) != AKUNU_OK) {
        ak_buffer_free(&b);
        return NULL;
    }
    return b.bytes;
}

/* ---- as parts ----------------------------------------------------------- */
static uint32_t number(struct ak_compiler *c, const json_t *value)
{
    struct ak_build *b = &c->build;
    char text[AK_NUMBER_BYTES];
    struct ak_decimal d;
    ak_number_text(value, text);
    if (!ak_decimal_read(text, &d)) {
        c->build.status = ak_schema_ok(c) ? ak_fail_memory(b->error, "a schema", 0) : b->status;
        return AK_BUILD_NOTHING;
    }
    uint32_t zeros = c->reading ? ak_build_repeat(b, ak_build_text(b, "0"), 0, AK_MANY) :
                                  (uint32_t)AK_BUILD_EMPTY;
    uint32_t one_zero = ak_build_two(b, ak_build_text(b, ".0"), zeros);
    uint32_t after =
        d.n_after > 0 ?
            ak_build_two(b, ak_build_text(b, "."),
                         ak_build_two(b, ak_build_literal(b, d.after, d.n_after), zeros)) :
        c->reading ? ak_build_repeat(b, one_zero, 0, 1) :
                     (uint32_t)AK_BUILD_EMPTY;
    uint32_t parts[] = { d.negative ? ak_build_text(b, "-") : (uint32_t)AK_BUILD_EMPTY,
                         d.n_before > 0 ? ak_build_literal(b, d.before, d.n_before) :
                                          ak_build_text(b, "0"),
                         after };
    uint32_t part = ak_build_sequence(b, parts, 3);
    if (strpbrk(text, "eE"))
        part =
            c->reading ? ak_build_either(b, part, ak_build_text(b, text)) : ak_build_text(b, text);
    ak_decimal_free(&d);
    return part;
}

static uint32_t array(struct ak_compiler *c, const json_t *value)
{
    struct ak_build *b = &c->build;
    struct ak_part_list list = { 0 };
    json_t *item;
    size_t i;
    ak_build_append(b, &list, ak_build_text(b, "["));
    json_array_foreach (value, i, item) {
        if (i > 0) {
            ak_build_append(b, &list, c->reading ? ak_schema_space(c) : (uint32_t)AK_BUILD_EMPTY);
            ak_build_append(b, &list, ak_build_text(b, ","));
        }
        ak_build_append(b, &list, ak_schema_space(c));
        ak_build_append(b, &list, ak_schema_literal(c, item));
    }
    ak_build_append(b, &list, ak_schema_space(c));
    ak_build_append(b, &list, ak_build_text(b, "]"));
    uint32_t part = ak_build_sequence(b, list.items, list.n);
    ak_free(list.items);
    return part;
}

static uint32_t object(struct ak_compiler *c, const json_t *value)
{
    struct ak_build *b = &c->build;
    struct ak_member *list = ak_alloc(json_object_size(value), sizeof *list);
    uint32_t n = 0, before = c->reading ? ak_schema_space(c) : (uint32_t)AK_BUILD_EMPTY,
             space = ak_schema_space(c);
    const char *key;
    json_t *member;
    if (!list)
        return ak_build_fail(b, AKUNU_ERROR_MEMORY, "no memory for a schema");
    json_object_foreach ((json_t *)(uintptr_t)value, key, member) {
        uint32_t parts[] = { ak_schema_quoted(c, key, strlen(key)), before, ak_build_text(b, ":"),
                             space, ak_schema_literal(c, member) };
        list[n++] = (struct ak_member){ .part = ak_build_sequence(b, parts, 5), .required = true };
    }
    struct ak_members how = { .comma = ak_build_two(b, before,
                                                    ak_build_two(b, ak_build_text(b, ","), space)),
                              .high = AK_MANY,
                              .ordered = !c->reading };
    uint32_t parts[] = { ak_build_text(b, "{"), space, ak_build_members(b, list, n, &how), space,
                         ak_build_text(b, "}") };
    ak_free(list);
    return ak_build_sequence(b, parts, 5);
}

uint32_t ak_schema_literal(struct ak_compiler *c, const json_t *value)
{
    if (!ak_schema_ok(c))
        return AK_BUILD_NOTHING;
    switch (json_typeof(value)) {
    case JSON_NULL: return ak_build_text(&c->build, "null");
    case JSON_TRUE: return ak_build_text(&c->build, "true");
    case JSON_FALSE: return ak_build_text(&c->build, "false");
    case JSON_STRING:
        return ak_schema_quoted(c, json_string_value(value), json_string_length(value));
    case JSON_ARRAY: return array(c, value);
    case JSON_OBJECT: return object(c, value);
    default: return number(c, value);
    }
}

/* ---- enum and const ----------------------------------------------------- */
static bool among(const json_t *list, const json_t *value)
{
    json_t *one;
    size_t i;
    json_array_foreach (list, i, one)
        if (ak_json_same(one, value))
            return true;
    return false;
}

/* Keeps the values that are also in `list`; the first list is kept whole, each value once. */
static json_t *meet(json_t *values, const json_t *list)
{
    json_t *kept = json_array(), *value;
    size_t i;
    json_array_foreach (values ? values : list, i, value)
        if ((!values || among(list, value)) && !among(kept, value))
            json_array_append(kept, value);
    json_decref(values);
    return kept;
}

json_t *ak_schema_values(struct ak_compiler *c, const struct ak_terms *t)
{
    json_t *values = NULL;
    for (uint32_t i = 0; i < t->n && ak_schema_ok(c); i++) {
        const json_t *schema = t->items[i].schema, *list = json_object_get(schema, "enum");
        json_t *constant = json_object_get(schema, "const");
        if (list && !json_is_array(list)) {
            ak_schema_wrong(c, schema, "enum", "a list of values");
        } else if (list && json_array_size(list) > AK_SCHEMA_MOST_MEMBERS) {
            ak_build_fail(&c->build, AKUNU_ERROR_UNSUPPORTED,
                          "an \"enum\" of the schema has %zu values: %d are the most",
                          json_array_size(list), AK_SCHEMA_MOST_MEMBERS);
        } else if (list) {
            values = meet(values, list);
        }
        if (constant) {
            json_t *one = json_pack("[O]", constant);
            values = meet(values, one);
            json_decref(one);
        }
    }
    return values;
}
