/* Arguments in forms that are no JSON: Python's, Gemma's, and plain text between markers.
 * Numbers are JSON's in all of them. A schema may say here what is looked at below;
 * whatever else it says is refused by name, for a grammar without it would let through
 * what the schema forbids. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

#include "toolcall/rules.h"
#include "grammar/schema/schema_build.h"

enum { MOST_NESTING = 32 };

static bool says(const json_t *schema, const char *type)
{
    const char *name = json_string_value(json_object_get(schema, "type"));
    return name && strcmp(name, type) == 0;
}

/* Refuses keywords that are not among the known ones. */
static bool only(struct ak_rules *r, const json_t *schema, const char *const *known)
{
    static const char *const notes[] = { "type",     "title",    "description",
                                         "default",  "examples", "deprecated",
                                         "$comment", "format",   NULL };
    const char *key;
    json_t *value;

    json_object_foreach ((json_t *)(uintptr_t)schema, key, value) {
        bool found = false;
        for (const char *const *k = notes; *k && !found; k++)
            found = strcmp(key, *k) == 0;
        for (const char *const *k = known; *k && !found; k++)
            found = strcmp(key, *k) == 0;
        found &= strcmp(key, "format") != 0; /* dates and the like are patterns */
        if (found)
            continue;
        if (!r->given->lax) {
            ak_build_fail(&r->build, AKUNU_ERROR_UNSUPPORTED,
                          "the tool %s: \"%s\" cannot be kept in calls of the format %s", r->tool,
                          key, r->given->format->name);
            return false;
        }
        ak_log_line(&r->given->log, AKUNU_LOG_WARN,
                    "the tool %s: \"%s\" is not kept in calls of the format %s", r->tool, key,
                    r->given->format->name);
    }
    return true;
}

static uint32_t json_value(struct ak_rules *r, const json_t *schema)
{
    struct ak_schema_options options = { .form = AK_SCHEMA_WRITING,
                                         .lax = r->given->lax,
                                         .log = r->given->log };
    return ak_build_schema(&r->build, r->root, schema, &options);
}

static bool python(const struct ak_rules *r)
{
    return r->shape->body == AK_BODY_PYTHON;
}

/* ---- strings ------------------------------------------------------------ */
static uint32_t python_string(struct ak_rules *r, const char *quote)
{
    struct ak_build *b = &r->build;
    struct ak_byte_set plain, escaped = { { 0 } };

    memset(&plain, 0xFF, sizeof plain);
    plain.bits[*quote >> 6] &= ~((uint64_t)1 << (*quote & 63));
    for (const char *c = "\\\n\r"; *c; c++)
        plain.bits[*c >> 6] &= ~((uint64_t)1 << (*c & 63));
    for (const char *c = "nrt\"'\\"; *c; c++)
        escaped.bits[*c >> 6] |= (uint64_t)1 << (*c & 63);
    uint32_t escape = ak_build_two(b, ak_build_text(b, "\\"), ak_build_bytes(b, &escaped));
    uint32_t text =
        ak_build_repeat(b, ak_build_either(b, ak_build_bytes(b, &plain), escape), 0, AK_MANY);
    return ak_build_two(b, ak_build_text(b, quote), ak_build_two(b, text, ak_build_text(b, quote)));
}

static uint32_t any_string(struct ak_rules *r)
{
    struct ak_build *b = &r->build;

    if (!python(r))
        return ak_build_two(b, ak_rules_marker(r, r->shape->quote),
                            ak_rules_until(r, r->shape->quote, AK_BUILD_EMPTY));
    return ak_build_either(b, python_string(r, "\""), python_string(r, "'"));
}

/* A text as a string of the form; one that would need escapes is refused. */
static uint32_t one_string(struct ak_rules *r, const char *text, size_t n)
{
    struct ak_build *b = &r->build;
    uint32_t literal = ak_build_literal(b, text, n);

    if (!python(r)) {
        uint32_t quote = ak_rules_marker(r, r->shape->quote);
        return ak_build_two(b, quote, ak_build_two(b, literal, quote));
    }
    for (size_t i = 0; i < n; i++)
        if (text[i] == '"' || text[i] == '\'' || text[i] == '\\' || (unsigned char)text[i] < 0x20)
            return ak_build_fail(b, AKUNU_ERROR_UNSUPPORTED,
                                 "the tool %s: a value with quotes or control characters", r->tool);
    uint32_t quotes[] = { ak_build_text(b, "\""), ak_build_text(b, "'") };
    return ak_build_either(b, ak_build_two(b, quotes[0], ak_build_two(b, literal, quotes[0])),
                           ak_build_two(b, quotes[1], ak_build_two(b, literal, quotes[1])));
}

/* ---- values ------------------------------------------------------------- */
/* `[`, elements with commas between them, `]` */
static uint32_t enclosed(struct ak_rules *r, const char *open, uint32_t element, const char *close)
{
    struct ak_build *b = &r->build;
    uint32_t more = ak_build_two(b, ak_build_text(b, python(r) ? ", " : ","), element);
    uint32_t all = ak_build_two(b, element, ak_build_repeat(b, more, 0, AK_MANY));
    return ak_build_two(
        b, ak_build_text(b, open),
        ak_build_two(b, ak_build_either(b, AK_BUILD_EMPTY, all), ak_build_text(b, close)));
}

static uint32_t any_value(struct ak_rules *r);

static uint32_t any_object(struct ak_rules *r)
{
    struct ak_build *b = &r->build;
    struct ak_byte_set word = { { 0 } };

    for (unsigned c = '0'; c <= 'z'; c++)
        if (c <= '9' || (c >= 'A' && c <= 'Z') || c == '_' || c >= 'a')
            word.bits[c >> 6] |= (uint64_t)1 << (c & 63);
    uint32_t key =
        python(r) ? any_string(r) : ak_build_repeat(b, ak_build_bytes(b, &word), 1, AK_MANY);
    uint32_t name = ak_build_two(b, key, ak_build_text(b, python(r) ? ": " : ":"));
    return enclosed(r, "{", ak_build_two(b, name, any_value(r)), "}");
}

/* Whatever the form can write. */
static uint32_t any_value(struct ak_rules *r)
{
    struct ak_build *b = &r->build;

    if (r->any)
        return ak_build_call(b, r->any - 1);
    uint32_t rule = ak_build_rule(b, "value", 5);
    r->any = rule + 1;
    json_t *scalar = json_pack("{s:[s,s,s]}", "type", "number", "boolean", "null"),
           *number = json_pack("{s:s}", "type", "number");
    uint32_t words =
        ak_build_either(b, ak_build_text(b, "True"),
                        ak_build_either(b, ak_build_text(b, "False"), ak_build_text(b, "None")));
    uint32_t plain =
        python(r) ? ak_build_either(b, json_value(r, number), words) : json_value(r, scalar);
    uint32_t part = ak_build_either(b, any_string(r), plain);
    part = ak_build_either(b, part, enclosed(r, "[", ak_build_call(b, rule), "]"));
    ak_build_define(b, rule, ak_build_either(b, part, any_object(r)));
    json_decref(scalar);
    json_decref(number);
    return ak_build_call(b, rule);
}

static uint32_t one_value(struct ak_rules *r, const json_t *value)
{
    if (json_is_string(value))
        return one_string(r, json_string_value(value), json_string_length(value));
    if (json_is_boolean(value) && python(r))
        return ak_build_text(&r->build, json_is_true(value) ? "True" : "False");
    if (json_is_null(value) && python(r))
        return ak_build_text(&r->build, "None");
    if (json_is_object(value) || json_is_array(value))
        return ak_build_fail(&r->build, AKUNU_ERROR_UNSUPPORTED,
                             "the tool %s: a list or an object as a constant", r->tool);
    json_t *schema = json_pack("{s:O}", "const", value);
    uint32_t part = json_value(r, schema);
    json_decref(schema);
    return part;
}

static uint32_t list(struct ak_rules *r, const json_t *schema, unsigned depth)
{
    static const char *const known[] = { "items", "minItems", "maxItems", NULL };
    struct ak_build *b = &r->build;
    json_int_t low = json_integer_value(json_object_get(schema, "minItems"));
    const json_t *most = json_object_get(schema, "maxItems");
    json_int_t high = json_is_integer(most) ? json_integer_value(most) : (json_int_t)AK_MANY;

    if (!only(r, schema, known))
        return AK_BUILD_NOTHING;
    if (low < 0 || low > high || high > (json_int_t)AK_MANY)
        return ak_build_fail(b, AKUNU_ERROR_UNSUPPORTED,
                             "the tool %s: minItems and maxItems leave no list", r->tool);
    uint32_t part = AK_BUILD_EMPTY;
    if (high > 0) {
        const json_t *items = json_object_get(schema, "items");
        uint32_t item = items ? ak_rules_value(r, items, depth + 1) : any_value(r);
        uint32_t more = ak_build_two(b, ak_build_text(b, python(r) ? ", " : ","), item);
        uint32_t rest = ak_build_repeat(b, more, low > 1 ? (uint32_t)low - 1 : 0,
                                        high == (json_int_t)AK_MANY ? AK_MANY : (uint32_t)high - 1);
        part = ak_build_two(b, item, rest);
        if (low == 0)
            part = ak_build_either(b, AK_BUILD_EMPTY, part);
    }
    return ak_build_two(b, ak_build_text(b, "["), ak_build_two(b, part, ak_build_text(b, "]")));
}

static bool required(const json_t *schema, const char *name)
{
    const json_t *names = json_object_get(schema, "required");
    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *one = json_string_value(json_array_get(names, i));
        if (one && strcmp(one, name) == 0)
            return true;
    }
    return false;
}

/* Names stand without quotes: they must be words. */
static bool check_name(struct ak_rules *r, const char *name)
{
    bool fine = *name && !strpbrk(name, " \t\r\n,:=()[]{}'\"<>`");
    if (!fine)
        ak_build_fail(&r->build, AKUNU_ERROR_UNSUPPORTED,
                      "the tool %s: the format %s cannot write the name \"%s\"", r->tool,
                      r->given->format->name, name);
    return fine;
}

static uint32_t member(struct ak_rules *r, const char *name, const json_t *schema, unsigned depth)
{
    struct ak_build *b = &r->build;
    const struct ak_call_shape *s = r->shape;

    if (!check_name(r, name))
        return AK_BUILD_NOTHING;
    if (s->body != AK_BODY_PARAMETERS) {
        const char *equals = !python(r) ? ":" : depth == 0 ? "=" : ": ";
        uint32_t key =
            python(r) && depth > 0 ? one_string(r, name, strlen(name)) : ak_build_text(b, name);
        return ak_build_two(
            b, key,
            ak_build_two(b, ak_build_text(b, equals), ak_rules_value(r, schema, depth + 1)));
    }
    uint32_t parts[] = {
        ak_rules_blanks(r),
        ak_rules_marker(r, s->key),
        ak_build_text(b, name),
        ak_rules_marker(r, s->key_end),
        s->typed ? AK_BUILD_EMPTY : ak_rules_loose_marker(r, s->value),
        ak_build_text(b, s->lines ? "\n" : ""),
        ak_rules_raw_value(r, schema, s->value_end),
    };
    return ak_build_sequence(b, parts, sizeof parts / sizeof parts[0]);
}

/* What is required must be described, or it could not be written. */
static bool all_described(struct ak_rules *r, const json_t *schema)
{
    const json_t *names = json_object_get(schema, "required"),
                 *properties = json_object_get(schema, "properties");

    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *name = json_string_value(json_array_get(names, i));
        if (name && json_object_get(properties, name))
            continue;
        ak_build_fail(&r->build, AKUNU_ERROR_UNSUPPORTED,
                      "the tool %s: \"%s\" is required and not among its properties", r->tool,
                      name ? name : "");
        return false;
    }
    return true;
}

static uint32_t object(struct ak_rules *r, const json_t *schema, unsigned depth)
{
    static const char *const known[] = { "properties", "required", "additionalProperties",
                                         "$schema", NULL };
    struct ak_build *b = &r->build;
    json_t *properties = json_object_get(schema, "properties"), *one;
    size_t n = json_object_size(properties);
    struct ak_member *list = ak_alloc(n, sizeof *list);
    bool between = r->shape->body == AK_BODY_PARAMETERS;
    struct ak_members how = { .comma = between ? (uint32_t)AK_BUILD_EMPTY :
                                                 ak_build_text(b, python(r) ? ", " : ","),
                              .high = AK_MANY };
    const char *name;
    uint32_t i = 0, part = AK_BUILD_EMPTY;

    if (!list)
        ak_build_fail(b, AKUNU_ERROR_MEMORY, "no memory for the members of an object");
    if (list && only(r, schema, known) && all_described(r, schema)) {
        json_object_foreach (properties, name, one)
            list[i++] = (struct ak_member){ .part = member(r, name, one, depth),
                                            .required = required(schema, name) };
        if (n)
            part = ak_build_members(b, list, i, &how);
    }
    ak_free(list);
    return part;
}

static uint32_t scalar(struct ak_rules *r, const json_t *schema)
{
    struct ak_build *b = &r->build;

    if (says(schema, "boolean") && python(r))
        return ak_build_either(b, ak_build_text(b, "True"), ak_build_text(b, "False"));
    if (says(schema, "null") && python(r))
        return ak_build_text(b, "None");
    return json_value(r, schema);
}

typedef uint32_t value_fn(struct ak_rules *r, const json_t *schema, unsigned depth);

/* A choice among the elements of a list: values of enum, types, or schemas of anyOf. */
static uint32_t any_of(struct ak_rules *r, const json_t *schema, const json_t *choices,
                       unsigned depth, value_fn *make)
{
    uint32_t part = AK_BUILD_NOTHING;

    for (size_t i = 0; i < json_array_size(choices); i++) {
        json_t *one = json_array_get(choices, i), *typed = NULL;
        if (json_is_string(one)) { /* one of several types: the schema with that alone */
            typed = json_copy((json_t *)(uintptr_t)schema);
            json_object_set(typed, "type", one);
            one = typed;
        }
        part = ak_build_either(&r->build, part, make(r, one, depth + 1));
        json_decref(typed);
    }
    return part;
}

static uint32_t values(struct ak_rules *r, const json_t *schema)
{
    const json_t *list = json_object_get(schema, "enum"), *one = json_object_get(schema, "const");
    uint32_t part = one ? one_value(r, one) : (uint32_t)AK_BUILD_NOTHING;

    for (size_t i = 0; !one && i < json_array_size(list); i++)
        part = ak_build_either(&r->build, part, one_value(r, json_array_get(list, i)));
    return part;
}

static bool has(const json_t *schema, const char *key)
{
    return json_object_get(schema, key) != NULL;
}

uint32_t ak_rules_value(struct ak_rules *r, const json_t *schema, unsigned depth)
{
    static const char *const of_values[] = { "enum", "const", NULL },
                             *const of_choice[] = { "anyOf", NULL }, *const of_string[] = { NULL };
    struct ak_build *b = &r->build;

    if (depth > MOST_NESTING)
        return ak_build_fail(b, AKUNU_ERROR_UNSUPPORTED,
                             "the tool %s: its schema nests more than %d deep", r->tool,
                             MOST_NESTING);
    if (has(schema, "enum") || has(schema, "const"))
        return only(r, schema, of_values) ? values(r, schema) : (uint32_t)AK_BUILD_NOTHING;
    if (has(schema, "anyOf"))
        return only(r, schema, of_choice) ?
                   any_of(r, schema, json_object_get(schema, "anyOf"), depth, ak_rules_value) :
                   (uint32_t)AK_BUILD_NOTHING;
    if (json_is_array(json_object_get(schema, "type")))
        return any_of(r, schema, json_object_get(schema, "type"), depth, ak_rules_value);
    if (says(schema, "string"))
        return only(r, schema, of_string) ? any_string(r) : (uint32_t)AK_BUILD_NOTHING;
    if (says(schema, "array"))
        return list(r, schema, depth);
    if (says(schema, "object") && !has(schema, "properties") &&
        !has(schema, "additionalProperties"))
        return only(r, schema, of_string) ? any_object(r) : (uint32_t)AK_BUILD_NOTHING;
    if (says(schema, "object"))
        return ak_build_two(b, ak_build_text(b, "{"),
                            ak_build_two(b, object(r, schema, depth), ak_build_text(b, "}")));
    if (says(schema, "integer") || says(schema, "number") || says(schema, "boolean") ||
        says(schema, "null"))
        return scalar(r, schema);
    return only(r, schema, of_string) ? any_value(r) : (uint32_t)AK_BUILD_NOTHING;
}

/* ---- plain text between markers ----------------------------------------- */
static bool may_be_string(const json_t *schema)
{
    const json_t *type = json_object_get(schema, "type"),
                 *choices = json_object_get(schema, "anyOf"),
                 *list = json_object_get(schema, "enum");
    bool found = says(schema, "string") || json_is_string(json_object_get(schema, "const"));

    for (size_t i = 0; i < json_array_size(type); i++)
        found |= strcmp(json_string_value(json_array_get(type, i)) ?
                            json_string_value(json_array_get(type, i)) :
                            "",
                        "string") == 0;
    for (size_t i = 0; i < json_array_size(list); i++)
        found |= json_is_string(json_array_get(list, i));
    for (size_t i = 0; i < json_array_size(choices); i++)
        found |= may_be_string(json_array_get(choices, i));
    return found;
}

/* What the parser will take for a string: then only strings are possible. A text of any
 * letters ends where `after` is first, whatever stands before it. */
static uint32_t raw_string(struct ak_rules *r, const json_t *schema, const char *end,
                           const char *after)
{
    static const char *const of_values[] = { "enum", "const", "anyOf", NULL };
    const json_t *choices = json_object_get(schema, "anyOf");
    struct ak_build *b = &r->build;
    const json_t *list = json_object_get(schema, "enum"), *one = json_object_get(schema, "const");
    uint32_t part =
        json_is_string(one) ? ak_build_text(b, json_string_value(one)) : (uint32_t)AK_BUILD_NOTHING;

    if (!only(r, schema, of_values))
        return AK_BUILD_NOTHING;
    for (size_t i = 0; i < json_array_size(choices); i++)
        if (may_be_string(json_array_get(choices, i)))
            return raw_string(r, json_array_get(choices, i), end, after);
    for (size_t i = 0; i < json_array_size(list); i++)
        if (json_is_string(json_array_get(list, i)))
            part = ak_build_either(b, part,
                                   ak_build_text(b, json_string_value(json_array_get(list, i))));
    return list || one ? ak_build_two(b, part, ak_rules_marker(r, end)) :
                         ak_rules_until(r, after, AK_BUILD_EMPTY);
}

/* Templates write true as Python does, and so do models. */
static uint32_t raw_json(struct ak_rules *r, const json_t *schema)
{
    struct ak_build *b = &r->build;
    uint32_t value = json_value(r, schema);

    if (!says(schema, "boolean") || has(schema, "const") || has(schema, "enum"))
        return value;
    return ak_build_either(b, value,
                           ak_build_either(b, ak_build_text(b, "True"), ak_build_text(b, "False")));
}

uint32_t ak_rules_raw_value(struct ak_rules *r, const json_t *schema, const char *after)
{
    struct ak_build *b = &r->build;
    bool string = may_be_string(schema);
    static const char *const none[] = { NULL };
    char end[96];
    const char *type = !r->shape->typed ? "" : string ? " string=\"true\">" : " string=\"false\">";

    snprintf(end, sizeof end, "%s%s", r->shape->lines ? "\n" : "", after);
    if (!has(schema, "type") && !has(schema, "enum") && !has(schema, "const") &&
        !has(schema, "anyOf"))
        return only(r, schema, none) ? ak_rules_until(r, after, AK_BUILD_EMPTY) :
                                       (uint32_t)AK_BUILD_NOTHING;
    uint32_t value = string ? raw_string(r, schema, end, after) :
                              ak_build_two(b, raw_json(r, schema), ak_rules_marker(r, end));
    return ak_build_two(b, ak_build_text(b, type), value);
}

uint32_t ak_rules_arguments(struct ak_rules *r, const json_t *schema)
{
    struct ak_build *b = &r->build;

    switch (r->shape->body) {
    case AK_BODY_PYTHON:
        return ak_build_two(b, ak_build_text(b, "("),
                            ak_build_two(b, object(r, schema, 0), ak_build_text(b, ")")));
    case AK_BODY_GEMMA:
        return ak_build_two(b, ak_build_text(b, "{"),
                            ak_build_two(b, object(r, schema, 0), ak_build_text(b, "}")));
    case AK_BODY_PARAMETERS: return object(r, schema, 0);
    default: return json_value(r, schema);
    }
}
