/* Arguments that are not JSON: Python's, Gemma's, and plain text between markers. Numbers are
 * written as in JSON. A keyword of a schema that is not handled here is refused by name: without it
 * the grammar would allow what the schema forbids. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

#include "text/toolcall/builder.h"
#include "text/grammar/schema/schema.h"
#include "base/json/wide.h"

enum { NESTING_MAX = 32 };

static bool has_type(const json_t *schema, const char *type)
{
    const char *name = json_string_value(json_object_get(schema, "type"));
    return name && strcmp(name, type) == 0;
}

/* Refuses keywords that are not in `known`. */
static bool check_keywords(struct ak_tc_builder *r, const json_t *schema, const char *const *known)
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
        found &= strcmp(key, "format") != 0; /* dates and the like would need patterns */
        if (found)
            continue;
        if (!r->params->lax) {
            ak_gb_fail(&r->gb, AKUNU_ERROR_UNSUPPORTED,
                       "the tool %s: \"%s\" cannot be kept in calls of the format %s", r->tool, key,
                       r->params->format->name);
            return false;
        }
        ak_log_line(&r->params->log, AKUNU_LOG_WARN,
                    "the tool %s: \"%s\" is not kept in calls of the format %s", r->tool, key,
                    r->params->format->name);
    }
    return true;
}

static uint32_t build_json_value(struct ak_tc_builder *r, const json_t *schema)
{
    struct ak_schema_options options = { .form = AK_SCHEMA_WRITING,
                                         .lax = r->params->lax,
                                         .log = r->params->log };
    return ak_schema_build(&r->gb, r->root, schema, &options);
}

static bool is_python(const struct ak_tc_builder *r)
{
    return r->syntax->arguments == AK_TC_ARGS_PYTHON;
}

/* ---- Strings ------------------------------------------------------------ */
static uint32_t build_python_string(struct ak_tc_builder *r, const char *quote)
{
    struct ak_grammar_builder *b = &r->gb;
    struct ak_grammar_byte_set plain, escaped = { { 0 } };

    memset(&plain, 0xFF, sizeof plain);
    plain.bits[*quote >> 6] &= ~((uint64_t)1 << (*quote & 63));
    for (const char *c = "\\\n\r"; *c; c++)
        plain.bits[*c >> 6] &= ~((uint64_t)1 << (*c & 63));
    for (const char *c = "nrt\"'\\"; *c; c++)
        escaped.bits[*c >> 6] |= (uint64_t)1 << (*c & 63);
    uint32_t escape = ak_gb_concat(b, ak_gb_text(b, "\\"), ak_gb_bytes(b, &escaped));
    uint32_t text =
        ak_gb_repeat(b, ak_gb_either(b, ak_gb_bytes(b, &plain), escape), 0, AK_GRAMMAR_UNBOUNDED);
    return ak_gb_concat(b, ak_gb_text(b, quote), ak_gb_concat(b, text, ak_gb_text(b, quote)));
}

static uint32_t build_any_string(struct ak_tc_builder *r)
{
    struct ak_grammar_builder *b = &r->gb;

    if (!is_python(r))
        return ak_gb_concat(b, ak_tc_build_marker(r, r->syntax->quote),
                            ak_tc_build_until(r, r->syntax->quote, AK_GB_EMPTY));
    return ak_gb_either(b, build_python_string(r, "\""), build_python_string(r, "'"));
}

/* A given string as the syntax writes it. A string that would need escapes is refused. */
static uint32_t build_one_string(struct ak_tc_builder *r, const char *text, size_t n)
{
    struct ak_grammar_builder *b = &r->gb;
    uint32_t literal = ak_gb_literal(b, text, n);

    if (!is_python(r)) {
        uint32_t quote = ak_tc_build_marker(r, r->syntax->quote);
        return ak_gb_concat(b, quote, ak_gb_concat(b, literal, quote));
    }
    for (size_t i = 0; i < n; i++)
        if (text[i] == '"' || text[i] == '\'' || text[i] == '\\' || (unsigned char)text[i] < 0x20)
            return ak_gb_fail(b, AKUNU_ERROR_UNSUPPORTED,
                              "the tool %s: a value with quotes or control characters", r->tool);
    uint32_t quotes[] = { ak_gb_text(b, "\""), ak_gb_text(b, "'") };
    return ak_gb_either(b, ak_gb_concat(b, quotes[0], ak_gb_concat(b, literal, quotes[0])),
                        ak_gb_concat(b, quotes[1], ak_gb_concat(b, literal, quotes[1])));
}

/* ---- Values ------------------------------------------------------------- */
/* Elements separated by commas between `open` and `close`. */
static uint32_t build_enclosed(struct ak_tc_builder *r, const char *open, uint32_t element,
                               const char *close)
{
    struct ak_grammar_builder *b = &r->gb;
    uint32_t more = ak_gb_concat(b, ak_gb_text(b, is_python(r) ? ", " : ","), element);
    uint32_t all = ak_gb_concat(b, element, ak_gb_repeat(b, more, 0, AK_GRAMMAR_UNBOUNDED));
    return ak_gb_concat(b, ak_gb_text(b, open),
                        ak_gb_concat(b, ak_gb_either(b, AK_GB_EMPTY, all), ak_gb_text(b, close)));
}

static uint32_t build_any_value(struct ak_tc_builder *r);

static uint32_t build_any_object(struct ak_tc_builder *r)
{
    struct ak_grammar_builder *b = &r->gb;
    struct ak_grammar_byte_set word = { { 0 } };

    for (unsigned c = '0'; c <= 'z'; c++)
        if (c <= '9' || (c >= 'A' && c <= 'Z') || c == '_' || c >= 'a')
            word.bits[c >> 6] |= (uint64_t)1 << (c & 63);
    uint32_t key = is_python(r) ? build_any_string(r) :
                                  ak_gb_repeat(b, ak_gb_bytes(b, &word), 1, AK_GRAMMAR_UNBOUNDED);
    uint32_t name = ak_gb_concat(b, key, ak_gb_text(b, is_python(r) ? ": " : ":"));
    return build_enclosed(r, "{", ak_gb_concat(b, name, build_any_value(r)), "}");
}

/* Any value that the syntax can write. */
static uint32_t build_any_value(struct ak_tc_builder *r)
{
    struct ak_grammar_builder *b = &r->gb;

    if (r->any_value_rule)
        return ak_gb_rule_ref(b, r->any_value_rule - 1);
    uint32_t rule = ak_gb_declare_rule(b, "value", 5);
    r->any_value_rule = rule + 1;
    json_t *scalar = json_pack("{s:[s,s,s]}", "type", "number", "boolean", "null"),
           *number = json_pack("{s:s}", "type", "number");
    uint32_t words = ak_gb_either(b, ak_gb_text(b, "True"),
                                  ak_gb_either(b, ak_gb_text(b, "False"), ak_gb_text(b, "None")));
    uint32_t plain = is_python(r) ? ak_gb_either(b, build_json_value(r, number), words) :
                                    build_json_value(r, scalar);
    uint32_t expr = ak_gb_either(b, build_any_string(r), plain);
    expr = ak_gb_either(b, expr, build_enclosed(r, "[", ak_gb_rule_ref(b, rule), "]"));
    ak_gb_define_rule(b, rule, ak_gb_either(b, expr, build_any_object(r)));
    json_decref(scalar);
    json_decref(number);
    return ak_gb_rule_ref(b, rule);
}

static uint32_t build_one_value(struct ak_tc_builder *r, const json_t *value)
{
    if (json_is_string(value))
        return build_one_string(r, json_string_value(value), json_string_length(value));
    if (json_is_boolean(value) && is_python(r))
        return ak_gb_text(&r->gb, json_is_true(value) ? "True" : "False");
    if (json_is_null(value) && is_python(r))
        return ak_gb_text(&r->gb, "None");
    if ((json_is_object(value) || json_is_array(value)) && !ak_wide_text(value))
        return ak_gb_fail(&r->gb, AKUNU_ERROR_UNSUPPORTED,
                          "the tool %s: a list or an object as a constant", r->tool);
    json_t *schema = json_pack("{s:O}", "const", value);
    uint32_t expr = build_json_value(r, schema);
    json_decref(schema);
    return expr;
}

static uint32_t build_list(struct ak_tc_builder *r, const json_t *schema, unsigned depth)
{
    static const char *const known[] = { "items", "minItems", "maxItems", NULL };
    struct ak_grammar_builder *b = &r->gb;
    json_int_t low = json_integer_value(json_object_get(schema, "minItems"));
    const json_t *max_items = json_object_get(schema, "maxItems");
    json_int_t high = json_is_integer(max_items) ? json_integer_value(max_items) :
                                                   (json_int_t)AK_GRAMMAR_UNBOUNDED;

    if (!check_keywords(r, schema, known))
        return AK_GB_NOTHING;
    if (low < 0 || low > high || high > (json_int_t)AK_GRAMMAR_UNBOUNDED)
        return ak_gb_fail(b, AKUNU_ERROR_UNSUPPORTED,
                          "the tool %s: minItems and maxItems leave no list", r->tool);
    uint32_t expr = AK_GB_EMPTY;
    if (high > 0) {
        const json_t *items = json_object_get(schema, "items");
        uint32_t item = items ? ak_tc_build_value(r, items, depth + 1) : build_any_value(r);
        uint32_t more = ak_gb_concat(b, ak_gb_text(b, is_python(r) ? ", " : ","), item);
        uint32_t rest = ak_gb_repeat(
            b, more, low > 1 ? (uint32_t)low - 1 : 0,
            high == (json_int_t)AK_GRAMMAR_UNBOUNDED ? AK_GRAMMAR_UNBOUNDED : (uint32_t)high - 1);
        expr = ak_gb_concat(b, item, rest);
        if (low == 0)
            expr = ak_gb_either(b, AK_GB_EMPTY, expr);
    }
    return ak_gb_concat(b, ak_gb_text(b, "["), ak_gb_concat(b, expr, ak_gb_text(b, "]")));
}

static bool is_required(const json_t *schema, const char *name)
{
    const json_t *names = json_object_get(schema, "required");
    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *one = json_string_value(json_array_get(names, i));
        if (one && strcmp(one, name) == 0)
            return true;
    }
    return false;
}

/* Names are written without quotes, so they must be words. */
static bool check_name(struct ak_tc_builder *r, const char *name)
{
    bool fine = *name && !strpbrk(name, " \t\r\n,:=()[]{}'\"<>`");
    if (!fine)
        ak_gb_fail(&r->gb, AKUNU_ERROR_UNSUPPORTED,
                   "the tool %s: the format %s cannot write the name \"%s\"", r->tool,
                   r->params->format->name, name);
    return fine;
}

static uint32_t build_member(struct ak_tc_builder *r, const char *name, const json_t *schema,
                             unsigned depth)
{
    struct ak_grammar_builder *b = &r->gb;
    const struct ak_tc_syntax *s = r->syntax;

    if (!check_name(r, name))
        return AK_GB_NOTHING;
    if (s->arguments != AK_TC_ARGS_PARAMETERS) {
        const char *equals = !is_python(r) ? ":" : depth == 0 ? "=" : ": ";
        uint32_t key = is_python(r) && depth > 0 ? build_one_string(r, name, strlen(name)) :
                                                   ak_gb_text(b, name);
        return ak_gb_concat(
            b, key,
            ak_gb_concat(b, ak_gb_text(b, equals), ak_tc_build_value(r, schema, depth + 1)));
    }
    uint32_t exprs[] = {
        ak_tc_build_whitespace(r),
        ak_tc_build_marker(r, s->key),
        ak_gb_text(b, name),
        ak_tc_build_marker(r, s->key_end),
        s->is_typed ? AK_GB_EMPTY : ak_tc_build_loose_marker(r, s->value),
        ak_gb_text(b, s->has_newlines ? "\n" : ""),
        ak_tc_build_raw_value(r, schema, s->value_end),
    };
    return ak_gb_sequence(b, exprs, sizeof exprs / sizeof exprs[0]);
}

/* Checks that every required property is described; it could not be written otherwise. */
static bool all_described(struct ak_tc_builder *r, const json_t *schema)
{
    const json_t *names = json_object_get(schema, "required"),
                 *properties = json_object_get(schema, "properties");

    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *name = json_string_value(json_array_get(names, i));
        if (name && json_object_get(properties, name))
            continue;
        ak_gb_fail(&r->gb, AKUNU_ERROR_UNSUPPORTED,
                   "the tool %s: \"%s\" is required and not among its properties", r->tool,
                   name ? name : "");
        return false;
    }
    return true;
}

static uint32_t build_object(struct ak_tc_builder *r, const json_t *schema, unsigned depth)
{
    static const char *const known[] = { "properties", "required", "additionalProperties",
                                         "$schema", NULL };
    struct ak_grammar_builder *b = &r->gb;
    json_t *properties = json_object_get(schema, "properties"), *one;
    size_t n = json_object_size(properties);
    struct ak_grammar_member *list = ak_alloc(n, sizeof *list);
    bool between = r->syntax->arguments == AK_TC_ARGS_PARAMETERS;
    struct ak_grammar_members layout = { .comma = between ?
                                                      (uint32_t)AK_GB_EMPTY :
                                                      ak_gb_text(b, is_python(r) ? ", " : ","),
                                         .high = AK_GRAMMAR_UNBOUNDED };
    const char *name;
    uint32_t i = 0, expr = AK_GB_EMPTY;

    if (!list)
        ak_gb_fail(b, AKUNU_ERROR_MEMORY, "no memory for the members of an object");
    if (list && check_keywords(r, schema, known) && all_described(r, schema)) {
        json_object_foreach (properties, name, one)
            list[i++] = (struct ak_grammar_member){ .expr = build_member(r, name, one, depth),
                                                    .required = is_required(schema, name) };
        if (n)
            expr = ak_gb_members(b, list, i, &layout);
    }
    ak_free(list);
    return expr;
}

static uint32_t build_scalar(struct ak_tc_builder *r, const json_t *schema)
{
    struct ak_grammar_builder *b = &r->gb;

    if (has_type(schema, "boolean") && is_python(r))
        return ak_gb_either(b, ak_gb_text(b, "True"), ak_gb_text(b, "False"));
    if (has_type(schema, "null") && is_python(r))
        return ak_gb_text(b, "None");
    return build_json_value(r, schema);
}

typedef uint32_t value_fn(struct ak_tc_builder *r, const json_t *schema, unsigned depth);

/* An alternation over a list: values of enum, names of types, or schemas of anyOf. */
static uint32_t build_any_of(struct ak_tc_builder *r, const json_t *schema, const json_t *choices,
                             unsigned depth, value_fn *make)
{
    uint32_t expr = AK_GB_NOTHING;

    for (size_t i = 0; i < json_array_size(choices); i++) {
        json_t *one = json_array_get(choices, i), *typed = NULL;
        if (json_is_string(
                one)) { /* one of several types: a copy of the schema with only that type */
            typed = json_copy((json_t *)(uintptr_t)schema);
            json_object_set(typed, "type", one);
            one = typed;
        }
        expr = ak_gb_either(&r->gb, expr, make(r, one, depth + 1));
        json_decref(typed);
    }
    return expr;
}

static uint32_t build_enum(struct ak_tc_builder *r, const json_t *schema)
{
    const json_t *list = json_object_get(schema, "enum"), *one = json_object_get(schema, "const");
    uint32_t expr = one ? build_one_value(r, one) : (uint32_t)AK_GB_NOTHING;

    for (size_t i = 0; !one && i < json_array_size(list); i++)
        expr = ak_gb_either(&r->gb, expr, build_one_value(r, json_array_get(list, i)));
    return expr;
}

static bool has_key(const json_t *schema, const char *key)
{
    return json_object_get(schema, key) != NULL;
}

uint32_t ak_tc_build_value(struct ak_tc_builder *r, const json_t *schema, unsigned depth)
{
    static const char *const of_values[] = { "enum", "const", NULL },
                             *const of_choice[] = { "anyOf", NULL }, *const of_string[] = { NULL };
    struct ak_grammar_builder *b = &r->gb;

    if (depth > NESTING_MAX)
        return ak_gb_fail(b, AKUNU_ERROR_UNSUPPORTED,
                          "the tool %s: its schema nests more than %d deep", r->tool, NESTING_MAX);
    if (has_key(schema, "enum") || has_key(schema, "const"))
        return check_keywords(r, schema, of_values) ? build_enum(r, schema) :
                                                      (uint32_t)AK_GB_NOTHING;
    if (has_key(schema, "anyOf"))
        return check_keywords(r, schema, of_choice) ?
                   build_any_of(r, schema, json_object_get(schema, "anyOf"), depth,
                                ak_tc_build_value) :
                   (uint32_t)AK_GB_NOTHING;
    if (json_is_array(json_object_get(schema, "type")))
        return build_any_of(r, schema, json_object_get(schema, "type"), depth, ak_tc_build_value);
    if (has_type(schema, "string"))
        return check_keywords(r, schema, of_string) ? build_any_string(r) : (uint32_t)AK_GB_NOTHING;
    if (has_type(schema, "array"))
        return build_list(r, schema, depth);
    if (has_type(schema, "object") && !has_key(schema, "properties") &&
        !has_key(schema, "additionalProperties"))
        return check_keywords(r, schema, of_string) ? build_any_object(r) : (uint32_t)AK_GB_NOTHING;
    if (has_type(schema, "object"))
        return ak_gb_concat(b, ak_gb_text(b, "{"),
                            ak_gb_concat(b, build_object(r, schema, depth), ak_gb_text(b, "}")));
    if (has_type(schema, "integer") || has_type(schema, "number") || has_type(schema, "boolean") ||
        has_type(schema, "null"))
        return build_scalar(r, schema);
    return check_keywords(r, schema, of_string) ? build_any_value(r) : (uint32_t)AK_GB_NOTHING;
}

/* ---- Plain text between markers ----------------------------------------- */
static bool may_be_string(const json_t *schema)
{
    const json_t *type = json_object_get(schema, "type"),
                 *choices = json_object_get(schema, "anyOf"),
                 *list = json_object_get(schema, "enum");
    bool found = has_type(schema, "string") || json_is_string(json_object_get(schema, "const"));

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

/* Any text up to the end of a value: `end`, or `after` if nothing but whitespace precedes that. */
static uint32_t build_free_text(struct ak_tc_builder *r, const char *end, const char *after)
{
    const struct ak_gb_keyword keywords[] = {
        { .text = end, .n = strlen(end), .continuation = AK_GB_EMPTY },
        { .text = after, .n = strlen(after), .continuation = AK_GB_EMPTY, .at_start = true },
    };
    return strcmp(end, after) == 0 ? ak_tc_build_until(r, after, AK_GB_EMPTY) :
                                     ak_gb_until(&r->gb, keywords, 2, false);
}

/* A value that the parser takes for a string, so only the strings of the schema are allowed. Free
 * text ends at the first `after`. */
static uint32_t build_raw_string(struct ak_tc_builder *r, const json_t *schema, const char *end,
                                 const char *after)
{
    static const char *const of_values[] = { "enum", "const", "anyOf", NULL };
    const json_t *choices = json_object_get(schema, "anyOf");
    struct ak_grammar_builder *b = &r->gb;
    const json_t *list = json_object_get(schema, "enum"), *one = json_object_get(schema, "const");
    uint32_t expr =
        json_is_string(one) ? ak_gb_text(b, json_string_value(one)) : (uint32_t)AK_GB_NOTHING;

    if (!check_keywords(r, schema, of_values))
        return AK_GB_NOTHING;
    for (size_t i = 0; i < json_array_size(choices); i++)
        if (may_be_string(json_array_get(choices, i)))
            return build_raw_string(r, json_array_get(choices, i), end, after);
    for (size_t i = 0; i < json_array_size(list); i++)
        if (json_is_string(json_array_get(list, i)))
            expr = ak_gb_either(b, expr, ak_gb_text(b, json_string_value(json_array_get(list, i))));
    return list || one ? ak_gb_concat(b, expr, ak_tc_build_marker(r, end)) :
                         build_free_text(r, end, after);
}

/* Besides JSON's booleans True and False: templates render them so, and models copy that. */
static uint32_t build_raw_json(struct ak_tc_builder *r, const json_t *schema)
{
    struct ak_grammar_builder *b = &r->gb;
    uint32_t value = build_json_value(r, schema);

    if (!has_type(schema, "boolean") || has_key(schema, "const") || has_key(schema, "enum"))
        return value;
    return ak_gb_either(b, value, ak_gb_either(b, ak_gb_text(b, "True"), ak_gb_text(b, "False")));
}

uint32_t ak_tc_build_raw_value(struct ak_tc_builder *r, const json_t *schema, const char *after)
{
    struct ak_grammar_builder *b = &r->gb;
    bool string = may_be_string(schema);
    static const char *const none[] = { NULL };
    char end[96];
    const char *type = !r->syntax->is_typed ? "" :
                       string               ? " string=\"true\">" :
                                              " string=\"false\">";

    snprintf(end, sizeof end, "%s%s", r->syntax->has_newlines ? "\n" : "", after);
    if (!has_key(schema, "type") && !has_key(schema, "enum") && !has_key(schema, "const") &&
        !has_key(schema, "anyOf"))
        return check_keywords(r, schema, none) ? build_free_text(r, end, after) :
                                                 (uint32_t)AK_GB_NOTHING;
    uint32_t value = string ?
                         build_raw_string(r, schema, end, after) :
                         ak_gb_concat(b, build_raw_json(r, schema), ak_tc_build_marker(r, end));
    return ak_gb_concat(b, ak_gb_text(b, type), value);
}

uint32_t ak_tc_build_arguments(struct ak_tc_builder *r, const json_t *schema)
{
    struct ak_grammar_builder *b = &r->gb;

    switch (r->syntax->arguments) {
    case AK_TC_ARGS_PYTHON:
        return ak_gb_concat(b, ak_gb_text(b, "("),
                            ak_gb_concat(b, build_object(r, schema, 0), ak_gb_text(b, ")")));
    case AK_TC_ARGS_GEMMA:
        return ak_gb_concat(b, ak_gb_text(b, "{"),
                            ak_gb_concat(b, build_object(r, schema, 0), ak_gb_text(b, "}")));
    case AK_TC_ARGS_PARAMETERS: return build_object(r, schema, 0);
    default: return build_json_value(r, schema);
    }
}
