/* Methods of dicts, lists, cyclers and loops, and the lookup of methods by type and name. */
#include <string.h>

#include "text/template/jinja/builtins.h"
#include "text/template/jinja/string.h"

const struct ak_jbuiltin *ak_j_find_builtin(const struct ak_jbuiltin *table,
                                            const struct ak_jstr *name)
{
    for (; table->name; table++)
        if (strlen(table->name) == name->n && memcmp(table->name, name->bytes, name->n) == 0)
            return table;
    return NULL;
}

/* ---- dict --------------------------------------------------------------- */
static struct ak_jval dict_get(struct ak_jenv *j, const struct ak_jval *a,
                               const struct ak_jargs *rest)
{
    (void)rest;
    const struct ak_jval *found = ak_j_get(j, a[0].as.dict, a[1]);
    return found ? *found : ak_j_is_given(a[2]) ? a[2] : ak_j_none();
}

static struct ak_jval dict_items(struct ak_jenv *j, const struct ak_jval *a,
                                 const struct ak_jargs *rest)
{
    (void)rest;
    return ak_j_from_list(ak_j_view(j, a[0].as.dict, AK_J_ITEMS));
}

static struct ak_jval dict_keys(struct ak_jenv *j, const struct ak_jval *a,
                                const struct ak_jargs *rest)
{
    (void)rest;
    return ak_j_from_list(ak_j_view(j, a[0].as.dict, AK_J_KEYS));
}

static struct ak_jval dict_values(struct ak_jenv *j, const struct ak_jval *a,
                                  const struct ak_jargs *rest)
{
    (void)rest;
    return ak_j_from_list(ak_j_view(j, a[0].as.dict, AK_J_VALUES));
}

static struct ak_jval dict_copy(struct ak_jenv *j, const struct ak_jval *a,
                                const struct ak_jargs *rest)
{
    struct ak_jdict *copy = ak_j_dict(j);
    (void)rest;
    for (size_t i = 0; i < a[0].as.dict->n; i++)
        ak_j_put(j, copy, a[0].as.dict->pairs[i].key, a[0].as.dict->pairs[i].value);
    return ak_j_from_dict(copy);
}

static struct ak_jval dict_fromkeys(struct ak_jenv *j, const struct ak_jval *a,
                                    const struct ak_jargs *rest)
{
    struct ak_jdict *dict = ak_j_dict(j);
    const struct ak_jlist *keys = ak_j_iterate(j, a[1]);
    (void)rest;
    for (size_t i = 0; i < keys->n; i++)
        ak_j_put(j, dict, keys->items[i], ak_j_is_given(a[2]) ? a[2] : ak_j_none());
    return ak_j_from_dict(dict);
}

const struct ak_jbuiltin ak_j_dict_methods[] = {
    { "get", dict_get, 1, { "key", "default" }, false, false },
    { "items", dict_items, 0, { NULL }, false, false },
    { "keys", dict_keys, 0, { NULL }, false, false },
    { "values", dict_values, 0, { NULL }, false, false },
    { "copy", dict_copy, 0, { NULL }, false, false },
    { "fromkeys", dict_fromkeys, 1, { "iterable", "value" }, false, false },
    { NULL, NULL, 0, { NULL }, false, false },
};

/* ---- list, tuple, range ------------------------------------------------- */
static struct ak_jval list_index(struct ak_jenv *j, const struct ak_jval *a,
                                 const struct ak_jargs *rest)
{
    const struct ak_jlist *list = a[0].as.list;
    int64_t n = (int64_t)list->n, at = ak_j_is_given(a[2]) ? ak_j_need_int(j, a[2], "start") : 0,
            end = ak_j_is_given(a[3]) ? ak_j_need_int(j, a[3], "stop") : n;
    (void)rest;
    at = at < -n ? 0 : at < 0 ? at + n : at;
    end = end < -n ? 0 : end < 0 ? end + n : end > n ? n : end;
    for (; at < end; at++)
        if (ak_j_is_equal(j, list->items[at], a[1]))
            return ak_j_int(at);
    ak_j_fail(j, "%s is not in the %s", ak_j_show(j, a[1]), ak_j_type_name(a[0]));
}

static struct ak_jval list_count(struct ak_jenv *j, const struct ak_jval *a,
                                 const struct ak_jargs *rest)
{
    int64_t count = 0;
    (void)rest;
    for (size_t i = 0; i < a[0].as.list->n; i++)
        count += ak_j_is_equal(j, a[0].as.list->items[i], a[1]);
    return ak_j_int(count);
}

static struct ak_jval list_copy(struct ak_jenv *j, const struct ak_jval *a,
                                const struct ak_jargs *rest)
{
    struct ak_jlist *copy = ak_j_list(j, AK_J_PLAIN_LIST, a[0].as.list->n);
    (void)rest;
    for (size_t i = 0; i < a[0].as.list->n; i++)
        ak_j_append(j, copy, a[0].as.list->items[i]);
    return ak_j_from_list(copy);
}

static const struct ak_jbuiltin list_methods[] = {
    { "index", list_index, 1, { "value", "start", "stop" }, false, false },
    { "count", list_count, 1, { "value" }, false, false },
    { "copy", list_copy, 0, { NULL }, false, false },
    { NULL, NULL, 0, { NULL }, false, false },
};

/* ---- cycler ------------------------------------------------------------- */
static struct ak_jval cycler_next(struct ak_jenv *j, const struct ak_jval *a,
                                  const struct ak_jargs *rest)
{
    struct ak_jcycler *cycler = a[0].as.cycler;
    (void)j, (void)rest;
    struct ak_jval item = cycler->items->items[cycler->at];
    cycler->at = (cycler->at + 1) % cycler->items->n;
    return item;
}

static struct ak_jval cycler_reset(struct ak_jenv *j, const struct ak_jval *a,
                                   const struct ak_jargs *rest)
{
    (void)j, (void)rest;
    a[0].as.cycler->at = 0;
    return ak_j_none();
}

static const struct ak_jbuiltin cycler_methods[] = {
    { "next", cycler_next, 0, { NULL }, false, false },
    { "reset", cycler_reset, 0, { NULL }, false, false },
    { NULL, NULL, 0, { NULL }, false, false },
};

/* ---- Lookup ------------------------------------------------------------- */
static const struct ak_jbuiltin *string_method(const struct ak_jstr *name)
{
    const struct ak_jbuiltin *const tables[] = { ak_j_string_methods, ak_j_string_splits,
                                                 ak_j_string_queries };
    const struct ak_jbuiltin *found = NULL;
    for (size_t i = 0; !found && i < sizeof tables / sizeof *tables; i++)
        found = ak_j_find_builtin(tables[i], name);
    return found;
}

static bool is_among(const struct ak_jstr *name, const char *const *names)
{
    for (; *names; names++)
        if (strlen(*names) == name->n && memcmp(*names, name->bytes, name->n) == 0)
            return true;
    return false;
}

/* Names that jinja2's immutable sandbox refuses: methods that change a value, and attributes that
 * lead into Python. */
static bool is_refused(struct ak_jval v, const struct ak_jstr *name)
{
    static const char *const of_dict[] = {
        "clear", "pop", "popitem", "setdefault", "update", NULL
    };
    static const char *const of_list[] = { "append", "clear",  "pop",    "reverse", "insert",
                                           "sort",   "extend", "remove", NULL };
    static const char *const of_all[] = {
        "__class__",  "__doc__",    "__init__", "__dict__",         "__eq__",
        "__hash__",   "__repr__",   "__str__",  "__getattribute__", "__subclasshook__",
        "__reduce__", "__module__", NULL
    };
    if (name->n > 1 && name->bytes[0] == '_')
        return is_among(name, of_all);
    return (v.kind == AK_J_DICT && is_among(name, of_dict)) ||
           (ak_j_is_form(v, AK_J_PLAIN_LIST) && is_among(name, of_list));
}

const struct ak_jbuiltin *ak_j_find_method(struct ak_jval v, const struct ak_jstr *name,
                                           bool *unsafe)
{
    *unsafe = is_refused(v, name);
    if (*unsafe)
        return NULL;
    switch (v.kind) {
    case AK_J_STRING: return string_method(name);
    case AK_J_DICT: return ak_j_find_builtin(ak_j_dict_methods, name);
    case AK_J_LOOP: return ak_j_find_builtin(ak_j_loop_methods, name);
    case AK_J_CYCLER: return ak_j_find_builtin(cycler_methods, name);
    case AK_J_LIST: {
        const struct ak_jbuiltin *method =
            v.as.list->form <= AK_J_RANGE ? ak_j_find_builtin(list_methods, name) : NULL;
        return method && method->fn == list_copy && v.as.list->form != AK_J_PLAIN_LIST ? NULL :
                                                                                         method;
    }
    default: return NULL;
    }
}
