/* Limits for jansson. A text's size in memory is bounded before it is parsed, because a short
 * text of many small values takes fifty times its length. */
#include "base/json.h"

#include <stdbool.h>
#include <stdint.h>

#include "base/utf8.h"

struct scan {
    unsigned depth, max_depth;
    uint64_t n_values;
};

/* Counts values and depth before parsing: jansson allocates some fifty bytes for "0,". Outside of
 * strings, each value follows a bracket, a comma or a colon. */
static struct scan scan(const uint8_t *text, size_t n)
{
    struct scan s = { 0, 0, 1 };
    bool quoted = false;
    for (size_t i = 0; i < n; i++) {
        uint8_t c = text[i];
        if (quoted) {
            i += c == '\\';
            quoted = c != '"';
        } else if (c == '"') {
            quoted = true;
        } else if (c == '{' || c == '[') {
            s.depth++;
            s.n_values++;
            s.max_depth = s.depth > s.max_depth ? s.depth : s.max_depth;
        } else if (c == '}' || c == ']') {
            s.depth -= s.depth > 0;
        } else if (c == ',' || c == ':') {
            s.n_values++;
        }
    }
    return s;
}

static ak_status check_limits(const void *bytes, size_t n, struct ak_error *error)
{
    if (!ak_is_utf8(bytes, n))
        return ak_fail(error, AKUNU_ERROR_FORMAT, "no JSON: the text is not UTF-8");
    struct scan s = scan(bytes, n);
    if (s.max_depth > AK_JSON_DEPTH_MAX)
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "JSON of a nesting of %u, where at most %d is possible", s.max_depth,
                       AK_JSON_DEPTH_MAX);
    if (s.n_values > AK_JSON_VALUES_MAX)
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "JSON of %llu keys and values, where at most %d are possible",
                       (unsigned long long)s.n_values, AK_JSON_VALUES_MAX);
    return AKUNU_OK;
}

static ak_status parse(const void *bytes, size_t n, size_t flags, bool as_reals, json_t **out,
                       struct ak_error *error)
{
    json_error_t why;
    *out = NULL;
    AK_TRY(check_limits(bytes, n, error));
    flags |= JSON_REJECT_DUPLICATES | JSON_DECODE_ANY;
    *out = json_loadb(bytes, n, flags, &why);
    if (!*out && as_reals && json_error_code(&why) == json_error_numeric_overflow)
        *out = json_loadb(bytes, n, flags | JSON_DECODE_INT_AS_REAL, &why);
    if (*out)
        return AKUNU_OK;
    if (json_error_code(&why) == json_error_out_of_memory)
        return ak_fail_memory(error, "what a JSON text holds", 0);
    return ak_fail(error, AKUNU_ERROR_FORMAT, "no JSON: %s (line %d, column %d)", why.text,
                   why.line, why.column);
}

ak_status ak_json_parse(const void *bytes, size_t n, json_t **out, struct ak_error *error)
{
    return parse(bytes, n, 0, true, out, error);
}

ak_status ak_json_parse_input(const void *bytes, size_t n, json_t **out, struct ak_error *error)
{
    return parse(bytes, n, JSON_ALLOW_NUL, false, out, error);
}

const char *ak_json_kind(const json_t *value)
{
    if (!value)
        return "nothing";
    switch (json_typeof(value)) {
    case JSON_OBJECT: return "an object";
    case JSON_ARRAY: return "a list";
    case JSON_STRING: return "a string";
    case JSON_INTEGER: return "an integer";
    case JSON_REAL: return "a real number";
    case JSON_TRUE:
    case JSON_FALSE: return "a bool";
    case JSON_NULL: return "null";
    }
    return "nothing";
}
