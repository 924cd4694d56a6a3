/* Bodies of requests: JSON within bounds, and their members with the types that are expected. */
#include "apps/server/server.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "apps/common/conversation.h"
#include "apps/common/json_text.h"
#include "apps/server/memory.h"

enum {
    DEPTH_MAX = 64,
    VALUE_BYTES = 128, /* of a value or a name in memory, without its text */
    COPIES = 3         /* that a handler makes of the body at most */
};

/* Whether lists and objects nest no deeper than DEPTH_MAX; strings are skipped. *n_values: at most
 * so many values and names. */
static bool is_shallow(const char *text, size_t n, size_t *n_values)
{
    int depth = 0;
    *n_values = 1;
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '"') {
            for (i++; i < n && text[i] != '"'; i++)
                i += text[i] == '\\';
            ++*n_values;
        } else if (text[i] == ',' || text[i] == ':') {
            ++*n_values;
        } else if (text[i] == '[' || text[i] == '{') {
            if (++depth > DEPTH_MAX)
                return false;
        } else if (text[i] == ']' || text[i] == '}') {
            depth--;
        }
    }
    return true;
}

json_t *server_read_object(const struct server *s, struct http_exchange *x)
{
    const size_t flags = JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY;
    char shown[APP_DESCRIBED_BYTES];
    json_error_t error;
    size_t n, n_values;
    const char *text = http_body(x, &n);
    if (!is_shallow(text, n, &n_values)) {
        server_fail(x, 400, NULL, NULL, "the body has more than %d levels of lists and objects",
                    DEPTH_MAX);
        return NULL;
    }
    if (!server_memory_fits_values(s, COPIES * (n + n_values * VALUE_BYTES))) {
        server_fail(x, 413, NULL, NULL, "the body's %zu values do not fit into --memory", n_values);
        return NULL;
    }
    json_t *body = app_json_read(text, n, flags, APP_JSON_STRICT, &error);
    json_t *python = body ? NULL : app_json_read(text, n, flags, APP_JSON_PYTHON, NULL);
    if (app_json_is_object(body))
        return body;
    if (python)
        server_fail(
            x, 400, NULL, NULL,
            "the body is no valid JSON: line %d, column %d: it holds NaN or Infinity, which "
            "JSON lacks; send null, or leave the member out",
            error.line, error.column);
    else if (!body)
        server_fail(x, 400, NULL, NULL, "the body is no valid JSON: line %d, column %d: %s",
                    error.line, error.column, app_show_text(error.text, shown));
    else
        app_describe_json(body, shown);
    if (body)
        server_fail(x, 400, NULL, NULL, "the body is %s; expected an object", shown);
    json_decref(body);
    json_decref(python);
    return NULL;
}

void server_fail_member(struct http_exchange *x, const char *name, const json_t *found,
                        const char *expected)
{
    char shown[APP_DESCRIBED_BYTES];
    app_describe_json(found, shown);
    server_fail(x, 400, name, NULL, "%s is %s; expected %s", name, shown, expected);
}

/* The member; NULL if it is missing or null. */
static const json_t *get(const json_t *body, const char *name)
{
    const json_t *found = json_object_get(body, name);
    return json_is_null(found) ? NULL : found;
}

bool server_get_bool(struct http_exchange *x, const json_t *body, const char *name, bool *out)
{
    const json_t *found = get(body, name);
    if (found && !json_is_boolean(found)) {
        server_fail_member(x, name, found, "true or false");
        return false;
    }
    *out = found ? json_is_true(found) : *out;
    return true;
}

bool server_get_integer(struct http_exchange *x, const json_t *body, const char *name, int64_t low,
                        int64_t high, int64_t *out)
{
    char expected[96];
    const json_t *found = get(body, name);
    if (!found)
        return true;
    double value = json_number_value(found);
    bool whole = json_is_integer(found) ||
                 (json_is_real(found) && value == floor(value) && fabs(value) < 0x1p53);
    int64_t integer = json_is_integer(found) ? (int64_t)json_integer_value(found) :
                      whole                  ? (int64_t)value :
                                               0;
    if (whole && integer >= low && integer <= high) {
        *out = integer;
        return true;
    }
    snprintf(expected, sizeof expected, "an integer from %lld to %lld", (long long)low,
             (long long)high);
    server_fail_member(x, name, found, expected);
    return false;
}

bool server_get_real(struct http_exchange *x, const json_t *body, const char *name, double low,
                     double high, double *out)
{
    char expected[96];
    const json_t *found = get(body, name);
    if (!found)
        return true;
    double value = json_number_value(found);
    if (json_is_number(found) && value >= low && value <= high) {
        *out = value;
        return true;
    }
    if (low == APP_ABOVE_ZERO)
        snprintf(expected, sizeof expected, "a number above 0, up to %g", high);
    else
        snprintf(expected, sizeof expected, "a number from %g to %g", low, high);
    server_fail_member(x, name, found, expected);
    return false;
}

bool server_get_string(struct http_exchange *x, const json_t *body, const char *name,
                       const char **out)
{
    const json_t *found = get(body, name);
    if (found && !json_is_string(found)) {
        server_fail_member(x, name, found, "a string");
        return false;
    }
    *out = found ? json_string_value(found) : *out;
    return true;
}
