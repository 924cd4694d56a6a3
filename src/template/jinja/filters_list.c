/* Filters over what can be iterated. */
#include "template/jinja/builtins.h"
#include "template/jinja/filters.h"
#include "template/jinja/text.h"

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

/* Rows of `linecount` items, the last one filled up. */
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

/* `slices` columns, the first ones longer by one where it does not come out even. */
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
