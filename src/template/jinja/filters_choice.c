/* map, select and reject: filters and tests over each element. */
#include "template/jinja/builtins.h"
#include "template/jinja/filters.h"

/* "0" is an index, anything else a name. */
static struct ak_jval get_part(struct ak_jenv *j, const struct ak_jstr *path, size_t begin,
                               size_t end)
{
    int64_t index;
    bool digits = end > begin;
    for (size_t i = begin; i < end; i++)
        digits = digits && path->bytes[i] >= '0' && path->bytes[i] <= '9';
    if (digits && ak_j_parse_int(path->bytes + begin, end - begin, 10, &index))
        return ak_j_int(index);
    return ak_j_substring(j, path, begin, end);
}

struct ak_jval ak_j_member_at(struct ak_jenv *j, struct ak_jval item, struct ak_jval path,
                              struct ak_jval otherwise)
{
    if (!ak_j_is_not_none(path))
        return item;
    if (path.kind != AK_J_STRING)
        return ak_j_get_item(j, item, path);
    const struct ak_jstr *s = path.as.string;
    for (size_t begin = 0, end; begin <= s->n; begin = end + 1) {
        for (end = begin; end < s->n && s->bytes[end] != '.';)
            end++;
        item = ak_j_get_item(j, item, get_part(j, s, begin, end));
        if (item.kind == AK_J_UNDEFINED && ak_j_is_not_none(otherwise))
            item = otherwise;
    }
    return item;
}

static struct ak_jargs args_from(const struct ak_jargs *args, size_t first)
{
    struct ak_jargs rest = *args;
    if (first > 0)
        rest.values += first;
    rest.n -= first;
    return rest;
}

static struct ak_jval get_named(const struct ak_jargs *args, const char *name)
{
    for (size_t i = 0; i < args->n_named; i++)
        if (ak_j_string_is(args->named[i].key, name))
            return args->named[i].value;
    return (struct ak_jval){ .kind = AK_J_MISSING };
}

static void check_map_names(struct ak_jenv *j, const struct ak_jargs *args)
{
    for (size_t i = 0; i < args->n_named; i++)
        if (!ak_j_string_is(args->named[i].key, "attribute") &&
            !ak_j_string_is(args->named[i].key, "default"))
            ak_j_fail(j, "unexpected keyword argument %s", ak_j_show(j, args->named[i].key));
}

static struct ak_jval map_members(struct ak_jenv *j, struct ak_jval over,
                                  const struct ak_jargs *args)
{
    const struct ak_jlist *items = ak_j_iterate(j, over);
    struct ak_jlist *out = ak_j_list(j, AK_J_PLAIN_LIST, items->n);
    check_map_names(j, args);
    for (size_t i = 0; i < items->n; i++)
        ak_j_append(j, out,
                    ak_j_member_at(j, items->items[i], get_named(args, "attribute"),
                                   get_named(args, "default")));
    return ak_j_generator(out);
}

static struct ak_jval filter_map(struct ak_jenv *j, const struct ak_jval *a,
                                 const struct ak_jargs *args)
{
    if (!ak_j_is_true(a[0]))
        return ak_j_generator(ak_j_list(j, AK_J_PLAIN_LIST, 0));
    if (args->n == 0 && ak_j_is_given(get_named(args, "attribute")))
        return map_members(j, a[0], args);
    if (args->n == 0)
        ak_j_fail(j, "map requires a filter argument");
    const struct ak_jbuiltin *filter =
        ak_j_find_filter(ak_j_need_string(j, args->values[0], "a filter's name"));
    if (!filter)
        ak_j_fail_as(j, AKUNU_ERROR_UNSUPPORTED, "there is no filter named %s",
                     ak_j_show(j, args->values[0]));
    const struct ak_jlist *items = ak_j_iterate(j, a[0]);
    struct ak_jlist *out = ak_j_list(j, AK_J_PLAIN_LIST, items->n);
    struct ak_jargs rest = args_from(args, 1);
    for (size_t i = 0; i < items->n; i++)
        ak_j_append(j, out, ak_j_call_builtin(j, filter, items->items[i], &rest));
    return ak_j_generator(out);
}

/* Elements for which a test, or their truth, gives `wanted`; `by_member`: the first argument
 * says of which member of them. */
static struct ak_jval select_items(struct ak_jenv *j, struct ak_jval over,
                                   const struct ak_jargs *args, bool wanted, bool by_member)
{
    struct ak_jlist *kept = ak_j_list(j, AK_J_PLAIN_LIST, 0);
    const struct ak_jbuiltin *test = NULL;
    if (!ak_j_is_true(over))
        return ak_j_generator(kept);
    if (by_member && args->n == 0)
        ak_j_fail(j, "missing parameter for attribute name");
    if (args->n > by_member) {
        test = ak_j_find_test(ak_j_need_string(j, args->values[by_member], "a test's name"));
        if (!test)
            ak_j_fail_as(j, AKUNU_ERROR_UNSUPPORTED, "there is no test named %s",
                         ak_j_show(j, args->values[by_member]));
    }
    const struct ak_jlist *items = ak_j_iterate(j, over);
    struct ak_jargs rest = args_from(args, test ? by_member + 1u : args->n);
    for (size_t i = 0; i < items->n; i++) {
        struct ak_jval v = by_member ?
                               ak_j_member_at(j, items->items[i], args->values[0], ak_j_none()) :
                               items->items[i];
        if (ak_j_is_true(test ? ak_j_call_builtin(j, test, v, &rest) : v) == wanted)
            ak_j_append(j, kept, items->items[i]);
        ak_j_spend(j, 1);
    }
    return ak_j_generator(kept);
}

static struct ak_jval filter_select(struct ak_jenv *j, const struct ak_jval *a,
                                    const struct ak_jargs *args)
{
    return select_items(j, a[0], args, true, false);
}

static struct ak_jval filter_reject(struct ak_jenv *j, const struct ak_jval *a,
                                    const struct ak_jargs *args)
{
    return select_items(j, a[0], args, false, false);
}

static struct ak_jval filter_selectattr(struct ak_jenv *j, const struct ak_jval *a,
                                        const struct ak_jargs *args)
{
    return select_items(j, a[0], args, true, true);
}

static struct ak_jval filter_rejectattr(struct ak_jenv *j, const struct ak_jval *a,
                                        const struct ak_jargs *args)
{
    return select_items(j, a[0], args, false, true);
}

const struct ak_jbuiltin ak_j_choice_filters[] = {
    { "map", filter_map, 0, { NULL }, true, false },
    { "select", filter_select, 0, { NULL }, true, false },
    { "reject", filter_reject, 0, { NULL }, true, false },
    { "selectattr", filter_selectattr, 0, { NULL }, true, false },
    { "rejectattr", filter_rejectattr, 0, { NULL }, true, false },
    { NULL, NULL, 0, { NULL }, false, false },
};
