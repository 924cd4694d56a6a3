/* Limits for jansson. A text's size in memory is bounded before it is parsed, because a short
 * text of many small values takes fifty times its length. */
#include "base/json.h"

#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "base/json/wide.h"

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

static ak_status load_text(const char *text, size_t n, size_t flags, json_t **out,
                           struct ak_error *error)
{
    json_error_t why;
    *out = json_loadb(text, n, flags | JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &why);
    if (*out)
        return AKUNU_OK;
    if (json_error_code(&why) == json_error_out_of_memory)
        return ak_fail_memory(error, "what a JSON text holds", 0);
    return ak_fail(error, AKUNU_ERROR_FORMAT, "no JSON: %s (line %d, column %d)", why.text,
                   why.line, why.column);
}

/* `wide`: which numbers are marked (base/json/wide.h). */
static ak_status parse_json(const char *text, size_t n, size_t flags, unsigned wide, json_t **out,
                            struct ak_error *error)
{
    *out = NULL;
    AK_TRY(check_limits(text, n, error));
    size_t n_marked = ak_wide_mark(text, n, wide, NULL);
    if (n_marked == n)
        return load_text(text, n, flags, out, error);
    char *marked = ak_alloc(n_marked, 1);
    if (!marked)
        return ak_fail_memory(error, "what a JSON text holds", n_marked);
    ak_wide_mark(text, n, wide, marked);
    ak_status status = load_text(marked, n_marked, flags, out, error);
    ak_free(marked);
    return status;
}

ak_status ak_json_parse(const void *bytes, size_t n, json_t **out, struct ak_error *error)
{
    return parse_json(bytes, n, 0, 0, out, error);
}

/* Without the byte order mark, which Windows' editors write. */
static ak_status parse_python(const char *text, size_t n, size_t flags, unsigned wide, json_t **out,
                              struct ak_error *error)
{
    size_t mark = n ? ak_wide_skip_mark(text, n) : 0;
    return parse_json(mark ? text + mark : text, n - mark, flags, AK_WIDE_PYTHON | wide, out,
                      error);
}

ak_status ak_json_parse_file(const void *bytes, size_t n, json_t **out, struct ak_error *error)
{
    return parse_python(bytes, n, 0, 0, out, error);
}

ak_status ak_json_parse_exact(const void *bytes, size_t n, json_t **out, struct ak_error *error)
{
    return parse_python(bytes, n, 0, AK_WIDE_DIGITS, out, error);
}

ak_status ak_json_parse_input(const void *bytes, size_t n, json_t **out, struct ak_error *error)
{
    return parse_python(bytes, n, JSON_ALLOW_NUL, AK_WIDE_DIGITS, out, error);
}

const char *ak_json_kind(const json_t *value)
{
    if (!value)
        return "nothing";
    const char *wide = ak_wide_text(value);
    if (wide)
        return ak_wide_is_integer(wide)                    ? "an integer beyond 64 bits" :
               *wide != '-' && (*wide < '0' || *wide > '9') ? wide : /* NaN or Infinity */
                                                              "a number beyond every double";
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
