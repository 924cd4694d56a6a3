#include "template/jinja/markup.h"

#include <string.h>

#include "template/jinja/exec.h"

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
