/* String methods that split: split, rsplit, partition, splitlines. */
#include <string.h>

#include "text/template/jinja/builtins.h"

static void add_piece(struct ak_jenv *j, struct ak_jlist *list, const struct ak_jstr *s,
                      size_t begin, size_t end)
{
    ak_j_spend(j, 1);
    ak_j_append(j, list, ak_j_substring(j, s, begin, end));
}

static void reverse(struct ak_jlist *list)
{
    for (size_t i = 0; i < list->n / 2; i++) {
        struct ak_jval swap = list->items[i];
        list->items[i] = list->items[list->n - 1 - i];
        list->items[list->n - 1 - i] = swap;
    }
}

static size_t before(const struct ak_jstr *s, size_t at)
{
    do
        at--;
    while (at > 0 && ((unsigned char)s->bytes[at] & 0xC0) == 0x80);
    return at;
}

/* ---- At runs of whitespace ---------------------------------------------- */
static size_t skip_spaces(const struct ak_jstr *s, size_t at, bool spaces)
{
    for (size_t next; at < s->n && ak_j_is_whitespace(ak_j_char_at(s, at, &next)) == spaces;)
        at = next;
    return at;
}

static size_t skip_spaces_back(const struct ak_jstr *s, size_t at, bool spaces)
{
    for (size_t next;
         at > 0 && ak_j_is_whitespace(ak_j_char_at(s, before(s, at), &next)) == spaces;)
        at = before(s, at);
    return at;
}

static void split_spaces(struct ak_jenv *j, struct ak_jlist *list, const struct ak_jstr *s,
                         int64_t max_splits)
{
    for (size_t at = skip_spaces(s, 0, true), end; at < s->n;
         at = skip_spaces(s, end, true), max_splits--) {
        end = max_splits == 0 ? s->n : skip_spaces(s, at, false);
        add_piece(j, list, s, at, end);
        if (max_splits == 0)
            return;
    }
}

static void rsplit_spaces(struct ak_jenv *j, struct ak_jlist *list, const struct ak_jstr *s,
                          int64_t max_splits)
{
    for (size_t at = skip_spaces_back(s, s->n, true), begin; at > 0;
         at = skip_spaces_back(s, begin, true), max_splits--) {
        begin = max_splits == 0 ? 0 : skip_spaces_back(s, at, false);
        add_piece(j, list, s, begin, at);
        if (max_splits == 0)
            break;
    }
    reverse(list);
}

/* ---- At a separator ----------------------------------------------------- */
static void split_at(struct ak_jenv *j, struct ak_jlist *list, const struct ak_jstr *s,
                     const struct ak_jstr *separator, int64_t max_splits)
{
    size_t at = 0;
    for (size_t found; max_splits != 0 && (found = ak_j_find(s, separator, at)) != SIZE_MAX;
         max_splits--) {
        add_piece(j, list, s, at, found);
        at = found + separator->n;
    }
    add_piece(j, list, s, at, s->n);
}

static void rsplit_at(struct ak_jenv *j, struct ak_jlist *list, const struct ak_jstr *s,
                      const struct ak_jstr *separator, int64_t max_splits)
{
    size_t end = s->n;
    ak_j_spend(j, s->n / 64 * separator->n);
    for (size_t found; max_splits != 0 && (found = ak_j_find_last(s, separator, end)) != SIZE_MAX;
         max_splits--) {
        add_piece(j, list, s, found + separator->n, end);
        end = found;
    }
    add_piece(j, list, s, 0, end);
    reverse(list);
}

static struct ak_jval split(struct ak_jenv *j, const struct ak_jval *a, bool from_right)
{
    struct ak_jlist *list = ak_j_list(j, AK_J_PLAIN_LIST, 0);
    const struct ak_jstr *s = a[0].as.string;
    int64_t max_splits = ak_j_is_given(a[2]) ? ak_j_need_int(j, a[2], "maxsplit") : -1;
    ak_j_spend(j, s->n / 16);
    if (!ak_j_is_given(a[1]) || a[1].kind == AK_J_NONE) {
        (from_right ? rsplit_spaces : split_spaces)(j, list, s, max_splits);
        return ak_j_from_list(list);
    }
    const struct ak_jstr *separator = ak_j_need_string(j, a[1], "the separator");
    if (separator->n == 0)
        ak_j_fail(j, "empty separator");
    (from_right ? rsplit_at : split_at)(j, list, s, separator, max_splits);
    return ak_j_from_list(list);
}

struct ak_jval ak_j_cut_last_word(struct ak_jenv *j, const struct ak_jstr *s)
{
    static const struct ak_jstr space = { .bytes = " ", .n = 1, .n_chars = 1 };
    size_t at = ak_j_find_last(s, &space, s->n);
    return ak_j_substring(j, s, 0, at == SIZE_MAX ? s->n : at);
}

static struct ak_jval method_split(struct ak_jenv *j, const struct ak_jval *a,
                                   const struct ak_jargs *rest)
{
    (void)rest;
    return split(j, a, false);
}

static struct ak_jval method_rsplit(struct ak_jenv *j, const struct ak_jval *a,
                                    const struct ak_jargs *rest)
{
    (void)rest;
    return split(j, a, true);
}

static struct ak_jval partition(struct ak_jenv *j, const struct ak_jval *a, bool last)
{
    const struct ak_jstr *s = a[0].as.string,
                         *separator = ak_j_need_string(j, a[1], "the separator");
    struct ak_jlist *parts = ak_j_list(j, AK_J_TUPLE, 3);
    if (separator->n == 0)
        ak_j_fail(j, "empty separator");
    ak_j_spend(j, last ? s->n / 64 * separator->n : s->n / 16);
    size_t found = last ? ak_j_find_last(s, separator, s->n) : ak_j_find(s, separator, 0);
    size_t begin = found != SIZE_MAX ? found :
                   last              ? 0 :
                                       s->n,
           end = found != SIZE_MAX ? found + separator->n : begin;
    add_piece(j, parts, s, 0, begin);
    add_piece(j, parts, s, begin, end);
    add_piece(j, parts, s, end, s->n);
    return ak_j_from_list(parts);
}

static struct ak_jval method_partition(struct ak_jenv *j, const struct ak_jval *a,
                                       const struct ak_jargs *rest)
{
    (void)rest;
    return partition(j, a, false);
}

static struct ak_jval method_rpartition(struct ak_jenv *j, const struct ak_jval *a,
                                        const struct ak_jargs *rest)
{
    (void)rest;
    return partition(j, a, true);
}

/* ---- At newlines -------------------------------------------------------- */
static bool ends_line(uint32_t c)
{
    return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
           c == 0x2029;
}

struct ak_jlist *ak_j_split_lines(struct ak_jenv *j, const struct ak_jstr *s, bool keep_ends)
{
    struct ak_jlist *lines = ak_j_list(j, AK_J_PLAIN_LIST, 0);
    size_t begin = 0;
    ak_j_spend(j, s->n / 16);
    for (size_t at = 0, next; at < s->n; at = next) {
        uint32_t c = ak_j_char_at(s, at, &next);
        if (!ends_line(c))
            continue;
        if (c == '\r' && next < s->n && s->bytes[next] == '\n')
            next++;
        add_piece(j, lines, s, begin, keep_ends ? next : at);
        begin = next;
    }
    if (begin < s->n)
        add_piece(j, lines, s, begin, s->n);
    return lines;
}

static struct ak_jval method_splitlines(struct ak_jenv *j, const struct ak_jval *a,
                                        const struct ak_jargs *rest)
{
    (void)rest;
    return ak_j_from_list(ak_j_split_lines(j, a[0].as.string, ak_j_is_true(a[1])));
}

const struct ak_jbuiltin ak_j_string_splits[] = {
    { "split", method_split, 0, { "sep", "maxsplit" }, false, false },
    { "rsplit", method_rsplit, 0, { "sep", "maxsplit" }, false, false },
    { "partition", method_partition, 1, { "sep" }, false, false },
    { "rpartition", method_rpartition, 1, { "sep" }, false, false },
    { "splitlines", method_splitlines, 0, { "keepends" }, false, false },
    { NULL, NULL, 0, { NULL }, false, false },
};
