/* Filters from text to text, and text that is safe for HTML. */
#include <string.h>

#include "text/template/jinja/builtins.h"
#include "text/template/jinja/exec.h"

static struct ak_jval filter_string(struct ak_jenv *j, const struct ak_jval *a,
                                    const struct ak_jargs *rest)
{
    (void)rest;
    return ak_j_from_str(ak_j_str(j, a[0]));
}

static struct ak_jval filter_upper(struct ak_jenv *j, const struct ak_jval *a,
                                   const struct ak_jargs *rest)
{
    (void)rest;
    return ak_j_upper(j, ak_j_str(j, a[0]));
}

static struct ak_jval filter_lower(struct ak_jenv *j, const struct ak_jval *a,
                                   const struct ak_jargs *rest)
{
    (void)rest;
    return ak_j_lower(j, ak_j_str(j, a[0]));
}

static struct ak_jval filter_capitalize(struct ak_jenv *j, const struct ak_jval *a,
                                        const struct ak_jargs *rest)
{
    (void)rest;
    return ak_j_capitalize(j, ak_j_str(j, a[0]));
}

static bool begins_word(uint32_t c)
{
    return ak_j_is_whitespace(c) || (c < 0x80 && c && strchr("-({[<", (int)c));
}

static struct ak_jval filter_title(struct ak_jenv *j, const struct ak_jval *a,
                                   const struct ak_jargs *rest)
{
    const struct ak_jstr *s = ak_j_str(j, a[0]);
    struct ak_jout out = { 0 };
    bool first = true;
    (void)rest;
    ak_j_spend(j, s->n / 4);
    for (size_t at = 0, next; at < s->n; at = next) {
        uint32_t c = ak_j_char_at(s, at, &next);
        if (first)
            ak_j_put_upper(j, &out, c);
        else
            ak_j_put_lower(j, &out, s, at);
        first = begins_word(c);
    }
    return ak_j_finish(j, &out);
}

static struct ak_jval filter_trim(struct ak_jenv *j, const struct ak_jval *a,
                                  const struct ak_jargs *rest)
{
    (void)rest;
    const struct ak_jstr *chars =
        ak_j_is_not_none(a[1]) ? ak_j_need_string(j, a[1], "strip arg") : NULL;
    return ak_j_strip(j, ak_j_str(j, a[0]), chars, true, true);
}

static struct ak_jval filter_replace(struct ak_jenv *j, const struct ak_jval *a,
                                     const struct ak_jargs *rest)
{
    int64_t count = ak_j_is_not_none(a[3]) ? ak_j_need_int(j, a[3], "count") : -1;
    (void)rest;
    return ak_j_replace(j, ak_j_str(j, a[0]), ak_j_str(j, a[1]), ak_j_str(j, a[2]), count);
}

static struct ak_jval filter_safe(struct ak_jenv *j, const struct ak_jval *a,
                                  const struct ak_jargs *rest)
{
    (void)rest;
    return ak_j_mark_safe(j, ak_j_from_str(ak_j_str(j, a[0])));
}

static struct ak_jval filter_escape(struct ak_jenv *j, const struct ak_jval *a,
                                    const struct ak_jargs *rest)
{
    (void)rest;
    return ak_j_escape(j, a[0]);
}

static struct ak_jval filter_forceescape(struct ak_jenv *j, const struct ak_jval *a,
                                         const struct ak_jargs *rest)
{
    const struct ak_jstr *s = ak_j_str(j, a[0]);
    (void)rest;
    return ak_j_escape(j, ak_j_string_at(j, s->bytes, s->n)); /* a copy that is not safe */
}

static struct ak_jval filter_xmlattr(struct ak_jenv *j, const struct ak_jval *a,
                                     const struct ak_jargs *rest)
{
    struct ak_jout out = { 0 };
    (void)rest;
    if (a[0].kind != AK_J_DICT)
        ak_j_fail(j, "xmlattr needs a dict, not %s", ak_j_type_name(a[0]));
    for (size_t i = 0; i < a[0].as.dict->n; i++) {
        const struct ak_jpair *pair = &a[0].as.dict->pairs[i];
        if (pair->value.kind == AK_J_NONE || pair->value.kind == AK_J_UNDEFINED)
            continue;
        const struct ak_jstr *key = ak_j_need_string(j, pair->key, "an attribute's name");
        for (size_t k = 0; k < key->n; k++)
            if (key->bytes[k] && strchr(" \t\n\r\f\v/>=", key->bytes[k]))
                ak_j_fail(j, "invalid character in attribute name: %s", ak_j_show(j, pair->key));
        ak_j_put_text(j, &out, out.n > 0 || !ak_j_is_given(a[1]) || ak_j_is_true(a[1]) ? " " : "");
        ak_j_put_str(j, &out, ak_j_escape(j, pair->key).as.string);
        ak_j_put_text(j, &out, "=\"");
        ak_j_put_str(j, &out, ak_j_escape(j, pair->value).as.string);
        ak_j_put_text(j, &out, "\"");
    }
    return ak_j_finish(j, &out);
}

static struct ak_jval filter_format(struct ak_jenv *j, const struct ak_jval *a,
                                    const struct ak_jargs *rest)
{
    if (rest->n > 0 && rest->n_named > 0)
        ak_j_fail(j, "can't handle positional and keyword arguments at the same time");
    struct ak_jlist *values = ak_j_list(j, AK_J_TUPLE, rest->n);
    struct ak_jdict *named = ak_j_dict(j);
    for (size_t i = 0; i < rest->n; i++)
        ak_j_append(j, values, rest->values[i]);
    for (size_t i = 0; i < rest->n_named; i++)
        ak_j_put(j, named, rest->named[i].key, rest->named[i].value);
    return ak_j_format_percent(j, ak_j_str(j, a[0]),
                               rest->n_named > 0 ? ak_j_from_dict(named) : ak_j_from_list(values));
}

const struct ak_jbuiltin ak_j_text_filters[] = {
    { "string", filter_string, 0, { NULL }, false, true },
    { "safe", filter_safe, 0, { NULL }, false, false },
    { "upper", filter_upper, 0, { NULL }, false, true },
    { "lower", filter_lower, 0, { NULL }, false, true },
    { "capitalize", filter_capitalize, 0, { NULL }, false, true },
    { "title", filter_title, 0, { NULL }, false, false },
    { "trim", filter_trim, 0, { "chars" }, false, true },
    { "replace", filter_replace, 2, { "old", "new", "count" }, false, false },
    { "escape", filter_escape, 0, { NULL }, false, false },
    { "e", filter_escape, 0, { NULL }, false, false },
    { "forceescape", filter_forceescape, 0, { NULL }, false, false },
    { "xmlattr", filter_xmlattr, 0, { "autospace" }, false, false },
    { "format", filter_format, 0, { NULL }, true, false },
    { NULL, NULL, 0, { NULL }, false, false },
};

/* ---- Markup ------------------------------------------------------------- */
static struct ak_jlist *mark_items(struct ak_jenv *j, const struct ak_jlist *from)
{
    struct ak_jlist *to = ak_j_list(j, from->form, from->n);
    for (size_t i = 0; i < from->n; i++)
        ak_j_append(j, to,
                    from->items[i].kind == AK_J_STRING ? ak_j_mark_safe(j, from->items[i]) :
                                                         from->items[i]);
    return to;
}

struct ak_jval ak_j_mark_safe(struct ak_jenv *j, struct ak_jval v)
{
    if (ak_j_is_form(v, AK_J_PLAIN_LIST) || ak_j_is_form(v, AK_J_TUPLE))
        return ak_j_from_list(mark_items(j, v.as.list));
    if (v.kind != AK_J_STRING || v.as.string->safe)
        return v;
    struct ak_jstr *s = ak_j_alloc(j, 1, sizeof *s);
    *s = *v.as.string;
    s->safe = true;
    return (struct ak_jval){ .kind = AK_J_STRING, .as.string = s };
}

struct ak_jval ak_j_escape(struct ak_jenv *j, struct ak_jval v)
{
    struct ak_jout out = { 0 };
    if (ak_j_is_safe(v))
        return v;
    const struct ak_jstr *s = ak_j_str(j, v);
    ak_j_spend(j, s->n / 4);
    for (size_t i = 0; i < s->n; i++) {
        char c = s->bytes[i];
        const char *name = c == '&'  ? "&amp;" :
                           c == '<'  ? "&lt;" :
                           c == '>'  ? "&gt;" :
                           c == '"'  ? "&#34;" :
                           c == '\'' ? "&#39;" :
                                       NULL;
        if (name)
            ak_j_put_text(j, &out, name);
        else
            ak_j_put_bytes(j, &out, &c, 1);
    }
    return ak_j_mark_safe(j, ak_j_finish(j, &out));
}

static struct ak_jval escape_string(struct ak_jenv *j, struct ak_jval v)
{
    return v.kind == AK_J_STRING ? ak_j_escape(j, v) : v;
}

struct ak_jval ak_j_escape_all(struct ak_jenv *j, struct ak_jval v)
{
    if (v.kind == AK_J_DICT) {
        struct ak_jdict *dict = ak_j_dict(j);
        for (size_t i = 0; i < v.as.dict->n; i++)
            ak_j_put(j, dict, v.as.dict->pairs[i].key, escape_string(j, v.as.dict->pairs[i].value));
        return ak_j_from_dict(dict);
    }
    if (v.kind != AK_J_LIST || v.as.list->form > AK_J_TUPLE)
        return escape_string(j, v);
    struct ak_jlist *list = ak_j_list(j, v.as.list->form, v.as.list->n);
    for (size_t i = 0; i < v.as.list->n; i++)
        ak_j_append(j, list, escape_string(j, v.as.list->items[i]));
    return ak_j_from_list(list);
}

static bool is_named(const struct ak_jcallable *method, const char *name)
{
    return strcmp(method->builtin->name, name) == 0;
}

struct ak_jval ak_j_call_safe(struct ak_jenv *j, const struct ak_jcallable *method,
                              const struct ak_jargs *given)
{
    struct ak_jval values[4];
    struct ak_jargs args = *given;
    if (args.n <= 4) {
        for (size_t i = 0; i < args.n; i++)
            values[i] = args.values[i];
        if (is_named(method, "replace") && args.n > 1)
            values[1] = escape_string(j, values[1]);
        else if (is_named(method, "join") && args.n > 0)
            values[0] = ak_j_escape_all(j, ak_j_from_list(ak_j_iterate(j, values[0])));
        else if (is_named(method, "format"))
            for (size_t i = 0; i < args.n; i++)
                values[i] = escape_string(j, values[i]);
        args.values = values;
    }
    return ak_j_mark_safe(j, ak_j_call_builtin(j, method->builtin, method->self, &args));
}
