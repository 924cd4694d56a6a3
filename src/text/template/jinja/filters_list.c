/* Filters over iterables: plain ones, those that compare elements, and those that apply a filter or
 * a test to each. */
#include <string.h>

#include "text/template/jinja/builtins.h"

struct ak_jval ak_j_generator(struct ak_jlist *list)
{
    list->form = AK_J_GENERATOR;
    return ak_j_from_list(list);
}

static struct ak_jval copy_reversed(struct ak_jenv *j, const struct ak_jlist *from)
{
    struct ak_jlist *to = ak_j_list(j, AK_J_PLAIN_LIST, from->n);
    ak_j_spend(j, from->n);
    for (size_t i = from->n; i-- > 0;)
        ak_j_append(j, to, from->items[i]);
    return ak_j_from_list(to);
}

static struct ak_jval filter_length(struct ak_jenv *j, const struct ak_jval *a,
                                    const struct ak_jargs *rest)
{
    (void)rest;
    return ak_j_int((int64_t)ak_j_length(j, a[0]));
}

static struct ak_jval filter_list(struct ak_jenv *j, const struct ak_jval *a,
                                  const struct ak_jargs *rest)
{
    const struct ak_jlist *from = ak_j_iterate(j, a[0]);
    struct ak_jlist *to = ak_j_list(j, AK_J_PLAIN_LIST, from->n);
    (void)rest;
    ak_j_spend(j, from->n);
    for (size_t i = 0; i < from->n; i++)
        ak_j_append(j, to, from->items[i]);
    return ak_j_from_list(to);
}

static struct ak_jval filter_first(struct ak_jenv *j, const struct ak_jval *a,
                                   const struct ak_jargs *rest)
{
    (void)rest;
    if (ak_j_is_form(a[0], AK_J_GENERATOR) && a[0].as.list->at < a[0].as.list->n)
        return a[0].as.list->items[a[0].as.list->at++];
    const struct ak_jlist *items = ak_j_iterate(j, a[0]);
    return items->n > 0 ? items->items[0] :
                          ak_j_undefined_hint(j, "no first item, sequence was empty");
}

static struct ak_jval filter_last(struct ak_jenv *j, const struct ak_jval *a,
                                  const struct ak_jargs *rest)
{
    (void)rest;
    if (ak_j_is_form(a[0], AK_J_GENERATOR))
        ak_j_fail(j, "'generator' object is not reversible");
    const struct ak_jlist *items = ak_j_iterate(j, a[0]);
    return items->n > 0 ? items->items[items->n - 1] :
                          ak_j_undefined_hint(j, "no last item, sequence was empty");
}

static struct ak_jval filter_reverse(struct ak_jenv *j, const struct ak_jval *a,
                                     const struct ak_jargs *rest)
{
    (void)rest;
    if (!ak_j_is_iterable(a[0]))
        ak_j_fail(j, "argument must be iterable");
    bool stays_list = ak_j_is_form(a[0], AK_J_GENERATOR);
    struct ak_jval reversed = copy_reversed(j, ak_j_iterate(j, a[0]));
    if (a[0].kind == AK_J_STRING)
        return ak_j_join(j, ak_j_text(j, "").as.string, reversed.as.list, true);
    return stays_list ? reversed : ak_j_generator(reversed.as.list);
}

static struct ak_jval filter_items(struct ak_jenv *j, const struct ak_jval *a,
                                   const struct ak_jargs *rest)
{
    (void)rest;
    if (a[0].kind == AK_J_UNDEFINED)
        return ak_j_generator(ak_j_list(j, AK_J_PLAIN_LIST, 0));
    if (a[0].kind != AK_J_DICT)
        ak_j_fail(j, "can only get item pairs from a mapping");
    return ak_j_generator(ak_j_view(j, a[0].as.dict, AK_J_ITEMS));
}

static struct ak_jval filter_join(struct ak_jenv *j, const struct ak_jval *a,
                                  const struct ak_jargs *rest)
{
    const struct ak_jlist *items = ak_j_iterate(j, a[0]);
    struct ak_jlist *members = ak_j_list(j, AK_J_PLAIN_LIST, items->n);
    (void)rest;
    for (size_t i = 0; i < items->n; i++)
        ak_j_append(j, members,
                    ak_j_is_not_none(a[2]) ? ak_j_member_at(j, items->items[i], a[2], ak_j_none()) :
                                             items->items[i]);
    return ak_j_join(j, ak_j_is_given(a[1]) ? ak_j_str(j, a[1]) : ak_j_text(j, "").as.string,
                     members, false);
}

static struct ak_jval filter_sum(struct ak_jenv *j, const struct ak_jval *a,
                                 const struct ak_jargs *rest)
{
    const struct ak_jlist *items = ak_j_iterate(j, a[0]);
    struct ak_jval sum = ak_j_is_given(a[2]) ? a[2] : ak_j_int(0);
    (void)rest;
    if (sum.kind == AK_J_STRING)
        ak_j_fail(j, "sum() can't sum strings [use ''.join(seq) instead]");
    for (size_t i = 0; i < items->n; i++)
        sum = ak_j_operate(j, "+", sum,
                           ak_j_is_not_none(a[1]) ?
                               ak_j_member_at(j, items->items[i], a[1], ak_j_none()) :
                               items->items[i]);
    return sum;
}

/* batch: rows of `linecount` items, the last one padded. */
static struct ak_jval filter_batch(struct ak_jenv *j, const struct ak_jval *a,
                                   const struct ak_jargs *rest)
{
    const struct ak_jlist *items = ak_j_iterate(j, a[0]);
    int64_t size = ak_j_need_int(j, a[1], "linecount");
    struct ak_jlist *rows = ak_j_list(j, AK_J_PLAIN_LIST, 0), *row = NULL;
    (void)rest;
    for (size_t i = 0; i < items->n; i++) {
        if (!row || (int64_t)row->n == size) {
            row = ak_j_list(j, AK_J_PLAIN_LIST, 0);
            ak_j_append(j, rows, ak_j_from_list(row));
        }
        ak_j_spend(j, 1);
        ak_j_append(j, row, items->items[i]);
    }
    for (; row && ak_j_is_not_none(a[2]) && (int64_t)row->n < size; ak_j_spend(j, 1))
        ak_j_append(j, row, a[2]);
    return ak_j_generator(rows);
}

/* slice: `slices` columns; if lengths differ, the first ones are one longer. */
static struct ak_jval filter_slice(struct ak_jenv *j, const struct ak_jval *a,
                                   const struct ak_jargs *rest)
{
    const struct ak_jlist *items = ak_j_iterate(j, a[0]);
    int64_t n = ak_j_need_int(j, a[1], "slices");
    struct ak_jlist *slices = ak_j_list(j, AK_J_PLAIN_LIST, 0);
    size_t at = 0;
    (void)rest;
    if (n == 0)
        ak_j_fail(j, "integer division or modulo by zero");
    for (int64_t i = 0; i < n; i++) {
        bool longer = i < (int64_t)items->n % n;
        struct ak_jlist *slice = ak_j_list(j, AK_J_PLAIN_LIST, 0);
        ak_j_spend(j, 1);
        for (int64_t k = 0; k < (int64_t)items->n / n + longer; k++)
            ak_j_append(j, slice, items->items[at++]);
        if (ak_j_is_not_none(a[2]) && !longer)
            ak_j_append(j, slice, a[2]);
        ak_j_append(j, slices, ak_j_from_list(slice));
    }
    return ak_j_generator(slices);
}

const struct ak_jbuiltin ak_j_list_filters[] = {
    { "length", filter_length, 0, { NULL }, false, false },
    { "count", filter_length, 0, { NULL }, false, false },
    { "list", filter_list, 0, { NULL }, false, false },
    { "first", filter_first, 0, { NULL }, false, false },
    { "last", filter_last, 0, { NULL }, false, false },
    { "reverse", filter_reverse, 0, { NULL }, false, false },
    { "items", filter_items, 0, { NULL }, false, false },
    { "join", filter_join, 0, { "d", "attribute" }, false, false },
    { "sum", filter_sum, 0, { "attribute", "start" }, false, false },
    { "batch", filter_batch, 1, { "linecount", "fill_with" }, false, false },
    { "slice", filter_slice, 1, { "slices", "fill_with" }, false, false },
    { NULL, NULL, 0, { NULL }, false, false },
};

/* ---- Order -------------------------------------------------------------- */
struct ak_jval ak_j_sort_key(struct ak_jenv *j, struct ak_jval v, struct ak_jval case_sensitive)
{
    return v.kind == AK_J_STRING && !ak_j_is_true(case_sensitive) ? ak_j_lower(j, v.as.string) : v;
}

static struct ak_jlist *copy(struct ak_jenv *j, const struct ak_jlist *from)
{
    struct ak_jlist *to = ak_j_list(j, AK_J_PLAIN_LIST, from->n);
    ak_j_spend(j, from->n);
    for (size_t i = 0; i < from->n; i++)
        ak_j_append(j, to, from->items[i]);
    return to;
}

/* The sort keys of an item by "a.b,c", most significant first. */
static struct ak_jval get_keys(struct ak_jenv *j, struct ak_jval item, struct ak_jval attribute,
                               struct ak_jval case_sensitive)
{
    struct ak_jlist *keys = ak_j_list(j, AK_J_PLAIN_LIST, 1);
    const struct ak_jstr *s = attribute.kind == AK_J_STRING ? attribute.as.string : NULL;
    for (size_t begin = 0, end; s && begin <= s->n; begin = end + 1) {
        const char *comma = begin < s->n ? memchr(s->bytes + begin, ',', s->n - begin) : NULL;
        end = comma ? (size_t)(comma - s->bytes) : s->n;
        struct ak_jval member =
            ak_j_member_at(j, item, ak_j_substring(j, s, begin, end), ak_j_none());
        ak_j_append(j, keys, ak_j_sort_key(j, member, case_sensitive));
    }
    if (!s)
        ak_j_append(
            j, keys,
            ak_j_sort_key(j, ak_j_member_at(j, item, attribute, ak_j_none()), case_sensitive));
    return ak_j_from_list(keys);
}

static struct ak_jval filter_sort(struct ak_jenv *j, const struct ak_jval *a,
                                  const struct ak_jargs *rest)
{
    struct ak_jlist *items = copy(j, ak_j_iterate(j, a[0]));
    struct ak_jval *keys = ak_j_alloc(j, items->n, sizeof *keys);
    (void)rest;
    for (size_t i = 0; i < items->n; i++)
        keys[i] = get_keys(j, items->items[i], a[3], a[2]);
    ak_j_sort(j, items->items, keys, items->n, ak_j_is_true(a[1]));
    return ak_j_from_list(items);
}

static struct ak_jval filter_dictsort(struct ak_jenv *j, const struct ak_jval *a,
                                      const struct ak_jargs *rest)
{
    bool by_value = ak_j_string_is(a[2], "value");
    (void)rest;
    if (ak_j_is_given(a[2]) && !by_value && !ak_j_string_is(a[2], "key"))
        ak_j_fail(j, "you can only sort by either \"key\" or \"value\"");
    if (a[0].kind == AK_J_UNDEFINED)
        ak_j_fail_undefined(j, a[0]);
    if (a[0].kind != AK_J_DICT)
        ak_j_fail(j, "'%s' object has no attribute 'items'", ak_j_type_name(a[0]));
    struct ak_jlist *pairs = ak_j_view(j, a[0].as.dict, AK_J_ITEMS);
    struct ak_jval *keys = ak_j_alloc(j, pairs->n, sizeof *keys);
    for (size_t i = 0; i < pairs->n; i++)
        keys[i] = ak_j_sort_key(j, pairs->items[i].as.list->items[by_value], a[1]);
    ak_j_sort(j, pairs->items, keys, pairs->n, ak_j_is_true(a[3]));
    pairs->form = AK_J_PLAIN_LIST;
    return ak_j_from_list(pairs);
}

static struct ak_jval filter_unique(struct ak_jenv *j, const struct ak_jval *a,
                                    const struct ak_jargs *rest)
{
    const struct ak_jlist *items = ak_j_iterate(j, a[0]);
    struct ak_jlist *kept = ak_j_list(j, AK_J_PLAIN_LIST, 0);
    struct ak_jdict *seen = ak_j_dict(j);
    (void)rest;
    for (size_t i = 0; i < items->n; i++) {
        struct ak_jval key =
            ak_j_sort_key(j, ak_j_member_at(j, items->items[i], a[2], ak_j_none()), a[1]);
        if (ak_j_get(j, seen, key))
            continue;
        ak_j_put(j, seen, key, ak_j_none());
        ak_j_append(j, kept, items->items[i]);
    }
    return ak_j_generator(kept);
}

/* Groups of the items with equal attributes, in the order of these. The grouper of a group is the
 * attribute of its first item. */
static struct ak_jval filter_groupby(struct ak_jenv *j, const struct ak_jval *a,
                                     const struct ak_jargs *rest)
{
    struct ak_jlist *items = copy(j, ak_j_iterate(j, a[0])), *group = NULL,
                    *groups = ak_j_list(j, AK_J_PLAIN_LIST, 0);
    struct ak_jval *keys = ak_j_alloc(j, items->n, sizeof *keys), last = { .kind = AK_J_MISSING };
    (void)rest;
    for (size_t i = 0; i < items->n; i++)
        keys[i] = ak_j_sort_key(j, ak_j_member_at(j, items->items[i], a[1], a[2]), a[3]);
    ak_j_sort(j, items->items, keys, items->n, false);
    for (size_t i = 0; i < items->n; i++) {
        struct ak_jval member = ak_j_member_at(j, items->items[i], a[1], a[2]),
                       key = ak_j_sort_key(j, member, a[3]);
        if (!group || !ak_j_is_equal(j, key, last)) {
            group = ak_j_list(j, AK_J_PLAIN_LIST, 0);
            struct ak_jval pair = ak_j_pair(j, member, ak_j_from_list(group));
            pair.as.list->is_group = true;
            ak_j_append(j, groups, pair);
        }
        ak_j_append(j, group, items->items[i]);
        last = key;
    }
    return ak_j_from_list(groups);
}

static struct ak_jval find_extreme(struct ak_jenv *j, const struct ak_jval *a, const char *op)
{
    const struct ak_jlist *items = ak_j_iterate(j, a[0]);
    if (items->n == 0)
        return ak_j_undefined_hint(j, "no aggregated item, sequence was empty");
    struct ak_jval best = items->items[0],
                   best_key = ak_j_sort_key(j, ak_j_member_at(j, best, a[2], ak_j_none()), a[1]);
    for (size_t i = 1; i < items->n; i++) {
        struct ak_jval key =
            ak_j_sort_key(j, ak_j_member_at(j, items->items[i], a[2], ak_j_none()), a[1]);
        if (!ak_j_compare(j, op, key, best_key))
            continue;
        best = items->items[i];
        best_key = key;
    }
    return best;
}

static struct ak_jval filter_min(struct ak_jenv *j, const struct ak_jval *a,
                                 const struct ak_jargs *rest)
{
    (void)rest;
    return find_extreme(j, a, "<");
}

static struct ak_jval filter_max(struct ak_jenv *j, const struct ak_jval *a,
                                 const struct ak_jargs *rest)
{
    (void)rest;
    return find_extreme(j, a, ">");
}

const struct ak_jbuiltin ak_j_order_filters[] = {
    { "sort", filter_sort, 0, { "reverse", "case_sensitive", "attribute" }, false, false },
    { "groupby", filter_groupby, 1, { "attribute", "default", "case_sensitive" }, false, false },
    { "dictsort", filter_dictsort, 0, { "case_sensitive", "by", "reverse" }, false, false },
    { "unique", filter_unique, 0, { "case_sensitive", "attribute" }, false, false },
    { "min", filter_min, 0, { "case_sensitive", "attribute" }, false, false },
    { "max", filter_max, 0, { "case_sensitive", "attribute" }, false, false },
    { NULL, NULL, 0, { NULL }, false, false },
};

/* ---- Selection ---------------------------------------------------------- */
/* A part of a path: digits are an index, anything else is a name. */
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

/* Elements for which a test, by default their truth, gives `wanted`. `by_member`: the first
 * argument names the attribute to test. */
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
