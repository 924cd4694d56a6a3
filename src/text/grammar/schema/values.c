/* Values that enum and const list, and values as text and as expressions. */
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/buffer.h"
#include "text/grammar/schema/compiler.h"
#include "base/json/wide.h"

bool ak_schema_values_equal(const json_t *a, const json_t *b)
{
    const char *key;
    json_t *value;
    size_t i;
    if (json_is_number(a) && json_is_number(b))
        return json_is_integer(a) && json_is_integer(b) ?
                   json_integer_value(a) == json_integer_value(b) :
                   json_number_value(a) >= json_number_value(b) &&
                       json_number_value(a) <= json_number_value(b);
    if (ak_wide_text(a) && ak_wide_text(b))
        return strcmp(ak_wide_text(a), ak_wide_text(b)) == 0;
    if (json_typeof(a) != json_typeof(b) || ak_wide_text(a) || ak_wide_text(b))
        return false;
    switch (json_typeof(a)) {
    case JSON_STRING:
        return json_string_length(a) == json_string_length(b) &&
               memcmp(json_string_value(a), json_string_value(b), json_string_length(a)) == 0;
    case JSON_ARRAY:
        if (json_array_size(a) != json_array_size(b))
            return false;
        json_array_foreach (a, i, value)
            if (!ak_schema_values_equal(value, json_array_get(b, i)))
                return false;
        return true;
    case JSON_OBJECT:
        if (json_object_size(a) != json_object_size(b))
            return false;
        json_object_foreach ((json_t *)(uintptr_t)a, key, value) {
            const json_t *other = json_object_get(b, key);
            if (!other || !ak_schema_values_equal(value, other))
                return false;
        }
        return true;
    default: return true;
    }
}

/* ---- as text ------------------------------------------------------------ */
static ak_status append_text(struct ak_buffer *b, const char *text)
{
    return ak_buffer_add(b, text, strlen(text), NULL);
}

static ak_status add_string(struct ak_buffer *b, const char *text, size_t n)
{
    AK_TRY(append_text(b, "\""));
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text[i];
        char escape[8] = { (char)c };
        if (c < 0x20)
            snprintf(escape, sizeof escape, "\\u%04x", c);
        else if (c == '"' || c == '\\')
            snprintf(escape, sizeof escape, "\\%c", c);
        AK_TRY(ak_buffer_add(b, escape, c ? strlen(escape) : 6, NULL));
    }
    return append_text(b, "\"");
}

/* Not json_dumps, which writes 1.1 with 17 digits. ak_json_parse limits the depth of recursion. */
static ak_status write_value(struct ak_buffer *b, const json_t *v)
{
    char number[AK_SCHEMA_NUMBER_BYTES];
    const char *key;
    json_t *value;
    size_t i, n = 0;
    if (ak_wide_text(v))
        return append_text(b, ak_wide_text(v));
    switch (json_typeof(v)) {
    case JSON_NULL: return append_text(b, "null");
    case JSON_TRUE: return append_text(b, "true");
    case JSON_FALSE: return append_text(b, "false");
    case JSON_STRING: return add_string(b, json_string_value(v), json_string_length(v));
    case JSON_ARRAY:
        AK_TRY(append_text(b, "["));
        json_array_foreach (v, i, value) {
            AK_TRY(append_text(b, n++ ? "," : ""));
            AK_TRY(write_value(b, value));
        }
        return append_text(b, "]");
    case JSON_OBJECT:
        AK_TRY(append_text(b, "{"));
        json_object_foreach ((json_t *)(uintptr_t)v, key, value) {
            AK_TRY(append_text(b, n++ ? "," : ""));
            AK_TRY(add_string(b, key, strlen(key)));
            AK_TRY(append_text(b, ":"));
            AK_TRY(write_value(b, value));
        }
        return append_text(b, "}");
    default: return append_text(b, ak_schema_write_number(v, number));
    }
}

char *ak_schema_write_value(const json_t *value)
{
    struct ak_buffer b = { 0 };
    if (write_value(&b, value) != AKUNU_OK || ak_buffer_add(&b, "", 1, NULL) != AKUNU_OK) {
        ak_buffer_free(&b);
        return NULL;
    }
    return b.bytes;
}

/* ---- as expressions ----------------------------------------------------- */
static uint32_t build_number(struct ak_schema_compiler *c, const json_t *value)
{
    struct ak_grammar_builder *b = &c->builder;
    char text[AK_SCHEMA_NUMBER_BYTES];
    struct ak_schema_decimal d;
    const char *written = ak_schema_write_number(value, text);
    if (!ak_schema_decimal_read(written, &d)) {
        c->builder.status = ak_schema_ok(c) ? ak_fail_memory(b->error, "a schema", 0) : b->status;
        return AK_GB_NOTHING;
    }
    uint32_t zeros = c->reading ? ak_gb_repeat(b, ak_gb_text(b, "0"), 0, AK_GRAMMAR_UNBOUNDED) :
                                  (uint32_t)AK_GB_EMPTY;
    uint32_t one_zero = ak_gb_concat(b, ak_gb_text(b, ".0"), zeros);
    uint32_t decimals =
        d.n_fraction > 0 ?
            ak_gb_concat(b, ak_gb_text(b, "."),
                         ak_gb_concat(b, ak_gb_literal(b, d.fraction, d.n_fraction), zeros)) :
        c->reading ? ak_gb_repeat(b, one_zero, 0, 1) :
                     (uint32_t)AK_GB_EMPTY;
    uint32_t exprs[] = { d.negative ? ak_gb_text(b, "-") : (uint32_t)AK_GB_EMPTY,
                         d.n_whole > 0 ? ak_gb_literal(b, d.whole, d.n_whole) : ak_gb_text(b, "0"),
                         decimals };
    uint32_t expr = ak_gb_sequence(b, exprs, 3);
    if (strpbrk(written, "eE"))
        expr = c->reading ? ak_gb_either(b, expr, ak_gb_text(b, written)) : ak_gb_text(b, written);
    ak_schema_decimal_free(&d);
    return expr;
}

static uint32_t build_array(struct ak_schema_compiler *c, const json_t *value)
{
    struct ak_grammar_builder *b = &c->builder;
    struct ak_gb_list list = { 0 };
    json_t *item;
    size_t i;
    ak_gb_append(b, &list, ak_gb_text(b, "["));
    json_array_foreach (value, i, item) {
        if (i > 0) {
            ak_gb_append(b, &list, c->reading ? ak_schema_build_space(c) : (uint32_t)AK_GB_EMPTY);
            ak_gb_append(b, &list, ak_gb_text(b, ","));
        }
        ak_gb_append(b, &list, ak_schema_build_space(c));
        ak_gb_append(b, &list, ak_schema_build_literal(c, item));
    }
    ak_gb_append(b, &list, ak_schema_build_space(c));
    ak_gb_append(b, &list, ak_gb_text(b, "]"));
    uint32_t expr = ak_gb_sequence(b, list.items, list.n);
    ak_free(list.items);
    return expr;
}

static uint32_t build_object(struct ak_schema_compiler *c, const json_t *value)
{
    struct ak_grammar_builder *b = &c->builder;
    struct ak_grammar_member *list = ak_alloc(json_object_size(value), sizeof *list);
    uint32_t n = 0, space_before = c->reading ? ak_schema_build_space(c) : (uint32_t)AK_GB_EMPTY,
             space = ak_schema_build_space(c);
    const char *key;
    json_t *member;
    if (!list)
        return ak_gb_fail(b, AKUNU_ERROR_MEMORY, "no memory for a schema");
    json_object_foreach ((json_t *)(uintptr_t)value, key, member) {
        uint32_t exprs[] = { ak_schema_build_quoted(c, key, strlen(key)), space_before,
                             ak_gb_text(b, ":"), space, ak_schema_build_literal(c, member) };
        list[n++] =
            (struct ak_grammar_member){ .expr = ak_gb_sequence(b, exprs, 5), .required = true };
    }
    struct ak_grammar_members layout = {
        .comma = ak_gb_concat(b, space_before, ak_gb_concat(b, ak_gb_text(b, ","), space)),
        .high = AK_GRAMMAR_UNBOUNDED,
        .ordered = !c->reading
    };
    uint32_t exprs[] = { ak_gb_text(b, "{"), space, ak_gb_members(b, list, n, &layout), space,
                         ak_gb_text(b, "}") };
    ak_free(list);
    return ak_gb_sequence(b, exprs, 5);
}

uint32_t ak_schema_build_literal(struct ak_schema_compiler *c, const json_t *value)
{
    if (!ak_schema_ok(c))
        return AK_GB_NOTHING;
    if (ak_schema_is_number(value))
        return build_number(c, value);
    if (ak_wide_text(value))
        return ak_gb_fail(&c->builder, AKUNU_ERROR_UNSUPPORTED,
                          "the schema lists the value %.40s, which is not a number of JSON, or "
                          "beyond every double",
                          ak_wide_text(value));
    switch (json_typeof(value)) {
    case JSON_NULL: return ak_gb_text(&c->builder, "null");
    case JSON_TRUE: return ak_gb_text(&c->builder, "true");
    case JSON_FALSE: return ak_gb_text(&c->builder, "false");
    case JSON_STRING:
        return ak_schema_build_quoted(c, json_string_value(value), json_string_length(value));
    case JSON_ARRAY: return build_array(c, value);
    case JSON_OBJECT: return build_object(c, value);
    default: return AK_GB_NOTHING;
    }
}

/* ---- enum and const ----------------------------------------------------- */
static bool contains_value(const json_t *list, const json_t *value)
{
    json_t *one;
    size_t i;
    json_array_foreach (list, i, one)
        if (ak_schema_values_equal(one, value))
            return true;
    return false;
}

/* Keeps the values that are also in `list`; NULL: takes those of `list`, each once. */
static json_t *intersect_values(json_t *values, const json_t *list)
{
    json_t *kept = json_array(), *value;
    size_t i;
    json_array_foreach (values ? values : list, i, value)
        if ((!values || contains_value(list, value)) && !contains_value(kept, value))
            json_array_append(kept, value);
    json_decref(values);
    return kept;
}

json_t *ak_schema_collect_values(struct ak_schema_compiler *c, const struct ak_schema_terms *t)
{
    json_t *values = NULL;
    for (uint32_t i = 0; i < t->n && ak_schema_ok(c); i++) {
        const json_t *schema = t->items[i].schema, *list = json_object_get(schema, "enum");
        json_t *constant = json_object_get(schema, "const");
        if (list && !json_is_array(list)) {
            ak_schema_fail_invalid(c, schema, "enum", "a list of values");
        } else if (list && json_array_size(list) > AK_SCHEMA_MEMBERS_MAX) {
            ak_gb_fail(&c->builder, AKUNU_ERROR_UNSUPPORTED,
                       "an \"enum\" of the schema has %zu values: %d are the most",
                       json_array_size(list), AK_SCHEMA_MEMBERS_MAX);
        } else if (list) {
            values = intersect_values(values, list);
        }
        if (constant) {
            json_t *one = json_pack("[O]", constant);
            values = intersect_values(values, one);
            json_decref(one);
        }
    }
    return values;
}
