/* Filters that compare elements: sort, group, unique, least and greatest. */
#include <string.h>

#include "template/jinja/builtins.h"
#include "template/jinja/case.h"
#include "template/jinja/filters.h"

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

/* "a.b,c": the keys of an item, one after another. */
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

/* Pairs of a key, as its first element has it, and the elements. */
static struct ak_jval filter_groupby(struct ak_jenv *j, const struct ak_jval *a,
                                     const struct ak_jargs *rest)
{
    struct ak_jlist *items = copy(j, ak_j_iterate(j, a[0])),
                    *groups = ak_j_list(j, AK_J_PLAIN_LIST, 0), *group = NULL;
    struct ak_jval *keys = ak_j_alloc(j, items->n, sizeof *keys), last = ak_j_none();
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
            pair.as.list->grouped = true;
            ak_j_append(j, groups, pair);
        }
        ak_j_append(j, group, items->items[i]);
        last = key;
    }
    return ak_j_from_list(groups);
}

const struct ak_jbuiltin ak_j_order_filters[] = {
    { "sort", filter_sort, 0, { "reverse", "case_sensitive", "attribute" }, false, false },
    { "dictsort", filter_dictsort, 0, { "case_sensitive", "by", "reverse" }, false, false },
    { "unique", filter_unique, 0, { "case_sensitive", "attribute" }, false, false },
    { "min", filter_min, 0, { "case_sensitive", "attribute" }, false, false },
    { "max", filter_max, 0, { "case_sensitive", "attribute" }, false, false },
    { "groupby", filter_groupby, 1, { "attribute", "default", "case_sensitive" }, false, false },
    { NULL, NULL, 0, { NULL }, false, false },
};
