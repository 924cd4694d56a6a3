/* Values from JSON, and to JSON as Python's json module writes it. */
#include <math.h>
#include <string.h>

#include "base/json/wide.h"
#include "text/template/jinja/builtins.h"

struct ak_jval ak_j_from_json(struct ak_jenv *j, const json_t *json)
{
    struct ak_jval value = ak_j_none();
    const char *wide = ak_wide_text(json);
    if (wide && !ak_wide_is_integer(wide))
        return ak_j_float(ak_wide_double(wide));
    if (wide) {
        value = ak_j_string_at(j, wide, strlen(wide));
        value.kind = AK_J_BIG_INT;
        return value;
    }
    ak_j_enter(j);
    switch (json_typeof(json)) {
    case JSON_NULL: break;
    case JSON_TRUE:
    case JSON_FALSE: value = ak_j_bool(json_is_true(json)); break;
    case JSON_INTEGER: value = ak_j_int(json_integer_value(json)); break;
    case JSON_REAL: value = ak_j_float(json_real_value(json)); break;
    case JSON_STRING:
        value = ak_j_string_at(j, json_string_value(json), json_string_length(json));
        break;
    case JSON_ARRAY:
        value = ak_j_from_list(ak_j_list(j, AK_J_PLAIN_LIST, json_array_size(json)));
        for (size_t i = 0; i < json_array_size(json); i++)
            ak_j_append(j, value.as.list, ak_j_from_json(j, json_array_get(json, i)));
        break;
    case JSON_OBJECT: {
        const char *key;
        /* jansson has no const loop */
        json_t *member, *object = (json_t *)(uintptr_t)json;
        value = ak_j_from_dict(ak_j_dict(j));
        json_object_foreach (object, key, member)
            ak_j_put(j, value.as.dict, ak_j_string_at(j, key, strlen(key)),
                     ak_j_from_json(j, member));
        break;
    }
    }
    ak_j_leave(j);
    return value;
}

/* ---- tojson ------------------------------------------------------------- */
struct writer {
    struct ak_jenv *j;
    struct ak_jout out;
    bool ascii, sort;
    const struct ak_jstr *indent;        /* NULL: on one line */
    const struct ak_jstr *comma, *colon; /* separators of items; of key and value */
    size_t depth;
};

static void put_escape(struct writer *w, uint32_t c)
{
    static const char hex[] = "0123456789abcdef";
    char text[6] = { '\\',       'u', hex[(c >> 12) & 15], hex[(c >> 8) & 15], hex[(c >> 4) & 15],
                     hex[c & 15] };
    ak_j_put_bytes(w->j, &w->out, text, sizeof text);
}

static void put_char(struct writer *w, uint32_t c)
{
    static const char special[] = "\"\\\n\r\t\f\b", names[] = "\"\\nrtfb";
    const char *found = c > 0 && c < 0x80 ? strchr(special, (int)c) : NULL;
    if (found) {
        ak_j_put_text(w->j, &w->out, "\\");
        ak_j_put_bytes(w->j, &w->out, &names[found - special], 1);
    } else if (c < 0x20 || (w->ascii && c >= 0x7F && c < 0x10000)) {
        put_escape(w, c);
    } else if (w->ascii && c >= 0x10000) {
        put_escape(w, 0xD800 + ((c - 0x10000) >> 10));
        put_escape(w, 0xDC00 + ((c - 0x10000) & 0x3FF));
    } else {
        ak_j_put_char(w->j, &w->out, c);
    }
}

/* Whether a byte needs no escape, whatever character it belongs to. */
static bool is_plain(const struct writer *w, char byte)
{
    unsigned char c = (unsigned char)byte;
    return c >= 0x20 && c != '"' && c != '\\' && (!w->ascii || c < 0x7F);
}

static void put_string(struct writer *w, const struct ak_jstr *s)
{
    ak_j_put_text(w->j, &w->out, "\"");
    for (size_t at = 0, plain; at < s->n;) {
        for (plain = at; plain < s->n && is_plain(w, s->bytes[plain]);)
            plain++;
        ak_j_put_bytes(w->j, &w->out, s->bytes + at, plain - at);
        if ((at = plain) < s->n)
            put_char(w, ak_j_char_at(s, at, &at));
    }
    ak_j_put_text(w->j, &w->out, "\"");
}

static void put_number(struct writer *w, double x)
{
    if (isnan(x))
        ak_j_put_text(w->j, &w->out, "NaN");
    else if (isinf(x))
        ak_j_put_text(w->j, &w->out, x < 0 ? "-Infinity" : "Infinity");
    else
        ak_j_put_float(w->j, &w->out, x);
}

static void begin_line(struct writer *w)
{
    if (!w->indent)
        return;
    ak_j_put_text(w->j, &w->out, "\n");
    ak_j_put_repeated(w->j, &w->out, w->indent, w->depth);
}

static void put(struct writer *w, struct ak_jval v);

static void put_key(struct writer *w, struct ak_jval key)
{
    if (key.kind == AK_J_STRING) {
        put_string(w, key.as.string);
        return;
    }
    if (key.kind < AK_J_NONE || key.kind > AK_J_FLOAT)
        ak_j_fail(w->j, "keys must be str, int, float, bool or None, not %s", ak_j_type_name(key));
    ak_j_put_text(w->j, &w->out, "\"");
    put(w, key);
    ak_j_put_text(w->j, &w->out, "\"");
}

static struct ak_jpair *sorted_pairs(struct writer *w, const struct ak_jdict *dict)
{
    struct ak_jlist *keys = ak_j_view(w->j, dict, AK_J_KEYS),
                    *items = ak_j_view(w->j, dict, AK_J_ITEMS);
    struct ak_jpair *pairs = ak_j_alloc(w->j, dict->n, sizeof *pairs);
    ak_j_sort(w->j, items->items, keys->items, dict->n, false);
    for (size_t i = 0; i < dict->n; i++)
        pairs[i] = (struct ak_jpair){ .key = items->items[i].as.list->items[0],
                                      .value = items->items[i].as.list->items[1] };
    return pairs;
}

static void put_dict(struct writer *w, const struct ak_jdict *dict)
{
    const struct ak_jpair *pairs = w->sort ? sorted_pairs(w, dict) : dict->pairs;
    ak_j_put_text(w->j, &w->out, "{");
    w->depth++;
    for (size_t i = 0; i < dict->n; i++) {
        if (i > 0)
            ak_j_put_str(w->j, &w->out, w->comma);
        begin_line(w);
        put_key(w, pairs[i].key);
        ak_j_put_str(w->j, &w->out, w->colon);
        put(w, pairs[i].value);
    }
    w->depth--;
    if (dict->n > 0)
        begin_line(w);
    ak_j_put_text(w->j, &w->out, "}");
}

static void put_list(struct writer *w, const struct ak_jlist *list)
{
    ak_j_put_text(w->j, &w->out, "[");
    w->depth++;
    for (size_t i = 0; i < list->n; i++) {
        if (i > 0)
            ak_j_put_str(w->j, &w->out, w->comma);
        begin_line(w);
        put(w, list->items[i]);
    }
    w->depth--;
    if (list->n > 0)
        begin_line(w);
    ak_j_put_text(w->j, &w->out, "]");
}

static void put(struct writer *w, struct ak_jval v)
{
    ak_j_enter(w->j);
    ak_j_spend(w->j, 1);
    if (v.kind == AK_J_NONE)
        ak_j_put_text(w->j, &w->out, "null");
    else if (v.kind == AK_J_BOOL)
        ak_j_put_text(w->j, &w->out, v.as.boolean ? "true" : "false");
    else if (v.kind == AK_J_INT)
        ak_j_put_int(w->j, &w->out, v.as.integer);
    else if (v.kind == AK_J_BIG_INT)
        ak_j_put_str(w->j, &w->out, v.as.string);
    else if (v.kind == AK_J_FLOAT)
        put_number(w, v.as.number);
    else if (v.kind == AK_J_STRING)
        put_string(w, v.as.string);
    else if (v.kind == AK_J_DICT)
        put_dict(w, v.as.dict);
    else if (v.kind == AK_J_LIST && v.as.list->form <= AK_J_TUPLE)
        put_list(w, v.as.list);
    else
        ak_j_fail(w->j, "object of type %s is not JSON serializable", ak_j_type_name(v));
    ak_j_leave(w->j);
}

static const struct ak_jstr *indent_of(struct ak_jenv *j, struct ak_jval v)
{
    static const struct ak_jstr space = { .bytes = " ", .n = 1, .n_chars = 1 };
    if (!ak_j_is_not_none(v))
        return NULL;
    return v.kind == AK_J_STRING ? v.as.string :
                                   ak_j_repeat(j, &space, ak_j_need_int(j, v, "indent")).as.string;
}

static void read_separators(struct writer *w, struct ak_jval v)
{
    w->comma = ak_j_text(w->j, w->indent ? "," : ", ").as.string;
    w->colon = ak_j_text(w->j, ": ").as.string;
    if (!ak_j_is_not_none(v))
        return;
    const struct ak_jlist *pair = ak_j_iterate(w->j, v);
    if (pair->n != 2)
        ak_j_fail(w->j, "separators must be two texts, not %zu", pair->n);
    w->comma = ak_j_need_string(w->j, pair->items[0], "a separator");
    w->colon = ak_j_need_string(w->j, pair->items[1], "a separator");
}

struct ak_jval ak_j_to_json(struct ak_jenv *j, const struct ak_jval *a, const struct ak_jargs *rest)
{
    struct writer w = { .j = j,
                        .ascii = ak_j_is_true(a[1]),
                        .indent = indent_of(j, a[2]),
                        .sort = ak_j_is_true(a[4]) };
    (void)rest;
    read_separators(&w, a[3]);
    put(&w, a[0]);
    return ak_j_finish(j, &w.out);
}
