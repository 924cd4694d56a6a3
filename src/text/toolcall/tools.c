/* The tools of a request: parsing, types of parameters, and plain-text values as JSON. */
#include "text/toolcall/toolcall.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "text/toolcall/scan.h"

/* The function of an entry; the entry may be the function itself, without "type" and "function". */
static json_t *get_function(json_t *entry)
{
    json_t *function = json_object_get(entry, "function");
    return json_is_object(function) ? function : entry;
}

static ak_status add_tool(struct ak_tc_tools *tools, json_t *entry, size_t i,
                          struct ak_error *error)
{
    json_t *function = get_function(entry);
    const char *name = json_string_value(json_object_get(function, "name"));

    if (!name || !*name)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "tools[%zu] is not a function with a name", i);
    if (json_object_get(tools->by_name, name))
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "two tools have the name %s", name);
    if (json_object_set(tools->by_name, name, function) != 0)
        return ak_fail_memory(error, "the tools", 0);
    return AKUNU_OK;
}

ak_status ak_tc_tools_parse(const char *text, struct ak_tc_tools *out, struct ak_error *error)
{
    *out = (struct ak_tc_tools){ 0 };
    if (!text)
        return AKUNU_OK;
    ak_status status = ak_json_parse_exact(text, strlen(text), &out->list, error);
    if (status != AKUNU_OK) {
        ak_error_prefix(error, "the tools");
        return status;
    }
    out->by_name = json_object();
    if (!out->by_name)
        status = ak_fail_memory(error, "the tools", 0);
    else if (!json_is_array(out->list))
        status = ak_fail(error, AKUNU_ERROR_ARGUMENT, "the tools are %s, where a list is expected",
                         ak_json_kind(out->list));
    for (size_t i = 0; status == AKUNU_OK && i < json_array_size(out->list); i++)
        status = add_tool(out, json_array_get(out->list, i), i, error);
    if (status != AKUNU_OK)
        ak_tc_tools_free(out);
    return status;
}

void ak_tc_tools_free(struct ak_tc_tools *tools)
{
    json_decref(tools->list);
    json_decref(tools->by_name);
    *tools = (struct ak_tc_tools){ 0 };
}

/* jansson 2.11 looks up only NUL-terminated names. 512 exceeds what the parser accepts. */
static json_t *get_member(const json_t *object, const char *name, size_t n)
{
    char key[512];
    if (n >= sizeof key || memchr(name, '\0', n))
        return NULL;
    memcpy(key, name, n);
    key[n] = '\0';
    return json_object_get(object, key);
}

bool ak_tc_tools_has(const struct ak_tc_tools *tools, const char *name, size_t n)
{
    return get_member(tools->by_name, name, n) != NULL;
}

static bool is_string_type(const json_t *type)
{
    const char *name = json_string_value(type);
    return name && strcmp(name, "string") == 0;
}

static bool allows_string(const json_t *schema, int depth);

static bool any_allows_string(const json_t *schemas, int depth)
{
    for (size_t i = 0; i < json_array_size(schemas); i++)
        if (allows_string(json_array_get(schemas, i), depth))
            return true;
    return false;
}

/* Whether the schema allows a string, judged by its types and values. */
static bool allows_string(const json_t *schema, int depth)
{
    const json_t *type = json_object_get(schema, "type"), *values = json_object_get(schema, "enum");

    if (depth == 0)
        return false;
    if (is_string_type(type) || (!type && json_is_string(json_object_get(schema, "const"))))
        return true;
    for (size_t i = 0; i < json_array_size(type); i++)
        if (is_string_type(json_array_get(type, i)))
            return true;
    for (size_t i = 0; !type && i < json_array_size(values); i++)
        if (json_is_string(json_array_get(values, i)))
            return true;
    return any_allows_string(json_object_get(schema, "anyOf"), depth - 1) ||
           any_allows_string(json_object_get(schema, "oneOf"), depth - 1);
}

bool ak_tc_tools_wants_string(const struct ak_tc_tools *tools, const char *tool,
                              const char *parameter, size_t n)
{
    enum { NESTING_MAX = 8 };
    json_t *schema = json_object_get(json_object_get(tools->by_name, tool), "parameters");
    return allows_string(get_member(json_object_get(schema, "properties"), parameter, n),
                         NESTING_MAX);
}

ak_status ak_tc_put_escaped(const char *text, size_t n, struct ak_buffer *out,
                            struct ak_error *error)
{
    size_t plain = 0;

    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c >= 0x20 && c != '"' && c != '\\')
            continue;
        char escape[8];
        const char *letter = strchr("\nn\tt\rr\"\"\\\\", c);
        int length = c && letter ? snprintf(escape, sizeof escape, "\\%c", letter[1]) :
                                   snprintf(escape, sizeof escape, "\\u%04x", c);
        AK_TRY(ak_buffer_add(out, text + plain, i - plain, error));
        AK_TRY(ak_buffer_add(out, escape, (size_t)length, error));
        plain = i + 1;
    }
    return ak_buffer_add(out, text + plain, n - plain, error);
}

/* JSON's word for a Python word; models often write those. */
static const char *map_python_word(const char *text, size_t n)
{
    static const char *const words[][2] = { { "True", "true" },
                                            { "False", "false" },
                                            { "None", "null" } };
    for (size_t i = 0; i < 3; i++)
        if (n == strlen(words[i][0]) && memcmp(text, words[i][0], n) == 0)
            return words[i][1];
    return NULL;
}

static bool is_json(const char *text, size_t n)
{
    json_t *value;
    struct ak_error ignored;

    if (n == 0 || text[0] == '"' || ak_json_parse(text, n, &value, &ignored) != AKUNU_OK)
        return false;
    json_decref(value);
    return true;
}

ak_status ak_tc_put_value(const char *text, size_t n, struct ak_buffer *out, struct ak_error *error)
{
    const char *trimmed = text;
    size_t n_trimmed = n;

    while (n_trimmed && ak_tc_is_whitespace(*trimmed))
        trimmed++, n_trimmed--;
    while (n_trimmed && ak_tc_is_whitespace(trimmed[n_trimmed - 1]))
        n_trimmed--;
    const char *word = map_python_word(trimmed, n_trimmed);
    if (word)
        return ak_buffer_add(out, word, strlen(word), error);
    if (is_json(trimmed, n_trimmed))
        return ak_buffer_add(out, trimmed, n_trimmed, error);
    if (n_trimmed && (*trimmed == '[' || *trimmed == '{')) {
        size_t before = out->n;
        enum ak_tc_literal_result step = ak_tc_literal_convert(trimmed, n_trimmed, out, error);
        if (step == AK_TC_LITERAL_DONE)
            return AKUNU_OK;
        if (step == AK_TC_LITERAL_FAILED)
            return error->status;
        out->n = before;
    }
    AK_TRY(ak_buffer_add(out, "\"", 1, error));
    AK_TRY(ak_tc_put_escaped(text, n, out, error));
    return ak_buffer_add(out, "\"", 1, error);
}
