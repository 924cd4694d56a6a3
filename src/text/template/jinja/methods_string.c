/* String methods that strip, pad, find, replace and join. */
#include <string.h>

#include "text/template/jinja/builtins.h"
#include "text/template/jinja/exec.h"

static const struct ak_jstr *optional_chars(struct ak_jenv *j, struct ak_jval v)
{
    return ak_j_is_given(v) && v.kind != AK_J_NONE ? ak_j_need_string(j, v, "strip arg") : NULL;
}

static int64_t optional_int(struct ak_jenv *j, struct ak_jval v, int64_t otherwise,
                            const char *what)
{
    return ak_j_is_given(v) && v.kind != AK_J_NONE ? ak_j_need_int(j, v, what) : otherwise;
}

/* ---- Stripping and padding ---------------------------------------------- */
struct ak_jval ak_j_strip(struct ak_jenv *j, const struct ak_jstr *s, const struct ak_jstr *chars,
                          bool left, bool right)
{
    size_t begin, end;
    ak_j_spend(j, s->n / 16 * (chars ? 1 + chars->n : 1));
    ak_j_strip_range(s, chars, left, right, &begin, &end);
    return ak_j_substring(j, s, begin, end);
}

static struct ak_jval method_strip(struct ak_jenv *j, const struct ak_jval *a,
                                   const struct ak_jargs *rest)
{
    (void)rest;
    return ak_j_strip(j, a[0].as.string, optional_chars(j, a[1]), true, true);
}

static struct ak_jval method_lstrip(struct ak_jenv *j, const struct ak_jval *a,
                                    const struct ak_jargs *rest)
{
    (void)rest;
    return ak_j_strip(j, a[0].as.string, optional_chars(j, a[1]), true, false);
}

static struct ak_jval method_rstrip(struct ak_jenv *j, const struct ak_jval *a,
                                    const struct ak_jargs *rest)
{
    (void)rest;
    return ak_j_strip(j, a[0].as.string, optional_chars(j, a[1]), false, true);
}

static struct ak_jval pad(struct ak_jenv *j, const struct ak_jstr *s, int64_t left, int64_t right,
                          uint32_t fill)
{
    struct ak_jout one = { 0 }, out = { 0 };
    ak_j_put_char(j, &one, fill);
    struct ak_jstr *unit = ak_j_finish(j, &one).as.string;
    ak_j_put_repeated(j, &out, unit, left > 0 ? (uint64_t)left : 0);
    ak_j_put_str(j, &out, s);
    ak_j_put_repeated(j, &out, unit, right > 0 ? (uint64_t)right : 0);
    return ak_j_finish(j, &out);
}

struct ak_jval ak_j_center(struct ak_jenv *j, const struct ak_jstr *s, int64_t width, uint32_t fill)
{
    int64_t space = width > (int64_t)s->n_chars ? width - (int64_t)s->n_chars : 0;
    int64_t left = space / 2 + (space & width & 1);
    return pad(j, s, left, space - left, fill);
}

static uint32_t fill_of(struct ak_jenv *j, struct ak_jval v)
{
    size_t next;
    if (!ak_j_is_given(v))
        return ' ';
    const struct ak_jstr *s = ak_j_need_string(j, v, "the fill character");
    if (s->n_chars != 1)
        ak_j_fail(j, "the fill character must be exactly one character long");
    return ak_j_char_at(s, 0, &next);
}

static struct ak_jval method_center(struct ak_jenv *j, const struct ak_jval *a,
                                    const struct ak_jargs *rest)
{
    (void)rest;
    return ak_j_center(j, a[0].as.string, ak_j_need_int(j, a[1], "width"), fill_of(j, a[2]));
}

static struct ak_jval method_ljust(struct ak_jenv *j, const struct ak_jval *a,
                                   const struct ak_jargs *rest)
{
    int64_t n = (int64_t)a[0].as.string->n_chars, width = ak_j_need_int(j, a[1], "width");
    (void)rest;
    return pad(j, a[0].as.string, 0, width > n ? width - n : 0, fill_of(j, a[2]));
}

static struct ak_jval method_rjust(struct ak_jenv *j, const struct ak_jval *a,
                                   const struct ak_jargs *rest)
{
    int64_t n = (int64_t)a[0].as.string->n_chars, width = ak_j_need_int(j, a[1], "width");
    (void)rest;
    return pad(j, a[0].as.string, width > n ? width - n : 0, 0, fill_of(j, a[2]));
}

static struct ak_jval method_zfill(struct ak_jenv *j, const struct ak_jval *a,
                                   const struct ak_jargs *rest)
{
    const struct ak_jstr *s = a[0].as.string;
    struct ak_jout out = { 0 };
    int64_t width = ak_j_need_int(j, a[1], "width");
    size_t sign = s->n > 0 && (s->bytes[0] == '-' || s->bytes[0] == '+');
    (void)rest;
    ak_j_put_bytes(j, &out, s->bytes, sign);
    for (int64_t n = (int64_t)s->n_chars; n < width; n++)
        ak_j_put_text(j, &out, "0");
    ak_j_put_bytes(j, &out, s->bytes + sign, s->n - sign);
    return ak_j_finish(j, &out);
}

/* ---- Finding ------------------------------------------------------------ */
struct window {
    size_t begin, end; /* bytes */
    bool valid;        /* false: it begins after its end */
};

static struct window window_of(struct ak_jenv *j, const struct ak_jstr *s, struct ak_jval from,
                               struct ak_jval to)
{
    int64_t n = (int64_t)s->n_chars, begin = optional_int(j, from, 0, "slice indices"),
            end = optional_int(j, to, n, "slice indices");
    begin = begin < -n ? 0 : begin < 0 ? begin + n : begin;
    end = end < -n ? 0 : end < 0 ? end + n : end > n ? n : end;
    if (begin > end)
        return (struct window){ 0, 0, false };
    return (struct window){ ak_j_byte_offset(j, s, (size_t)begin),
                            ak_j_byte_offset(j, s, (size_t)end), true };
}

static int64_t find_substring(struct ak_jenv *j, const struct ak_jval *a, bool last)
{
    const struct ak_jstr *s = a[0].as.string,
                         *part = ak_j_need_string(j, a[1], "what is looked for");
    struct window window = window_of(j, s, a[2], a[3]);
    struct ak_jstr inside = { .bytes = s->bytes + window.begin, .n = window.end - window.begin };
    if (!window.valid)
        return -1;
    ak_j_spend(j, last ? inside.n / 64 * (part->n + 1) : inside.n / 16);
    size_t found = last ? ak_j_find_last(&inside, part, inside.n) : ak_j_find(&inside, part, 0);
    return found == SIZE_MAX ? -1 : (int64_t)ak_j_count_chars(s->bytes, window.begin + found);
}

static struct ak_jval method_find(struct ak_jenv *j, const struct ak_jval *a,
                                  const struct ak_jargs *rest)
{
    (void)rest;
    return ak_j_int(find_substring(j, a, false));
}

static struct ak_jval method_rfind(struct ak_jenv *j, const struct ak_jval *a,
                                   const struct ak_jargs *rest)
{
    (void)rest;
    return ak_j_int(find_substring(j, a, true));
}

static struct ak_jval index_of(struct ak_jenv *j, const struct ak_jval *a, bool last)
{
    int64_t at = find_substring(j, a, last);
    if (at < 0)
        ak_j_fail(j, "substring not found");
    return ak_j_int(at);
}

static struct ak_jval method_index(struct ak_jenv *j, const struct ak_jval *a,
                                   const struct ak_jargs *rest)
{
    (void)rest;
    return index_of(j, a, false);
}

static struct ak_jval method_rindex(struct ak_jenv *j, const struct ak_jval *a,
                                    const struct ak_jargs *rest)
{
    (void)rest;
    return index_of(j, a, true);
}

static struct ak_jval method_count(struct ak_jenv *j, const struct ak_jval *a,
                                   const struct ak_jargs *rest)
{
    const struct ak_jstr *s = a[0].as.string, *part = ak_j_need_string(j, a[1], "what is counted");
    struct window window = window_of(j, s, a[2], a[3]);
    struct ak_jstr inside = { .bytes = s->bytes + window.begin, .n = window.end - window.begin };
    int64_t count = 0;
    (void)rest;
    if (!window.valid)
        return ak_j_int(0);
    ak_j_spend(j, inside.n / 16);
    if (part->n == 0)
        return ak_j_int((int64_t)ak_j_count_chars(inside.bytes, inside.n) + 1);
    for (size_t at = 0; (at = ak_j_find(&inside, part, at)) != SIZE_MAX; at += part->n)
        count++;
    return ak_j_int(count);
}

static bool has_affix(struct ak_jenv *j, const struct ak_jstr *s, struct window window,
                      struct ak_jval affix, bool at_end)
{
    const struct ak_jstr *part =
        ak_j_need_string(j, affix, at_end ? "endswith first arg" : "startswith first arg");
    size_t n = window.end - window.begin;
    if (!window.valid || part->n > n)
        return false;
    return memcmp(s->bytes + (at_end ? window.end - part->n : window.begin), part->bytes,
                  part->n) == 0;
}

/* startswith, endswith: a string, or a tuple of alternatives. */
static struct ak_jval any_affix(struct ak_jenv *j, const struct ak_jval *a, bool at_end)
{
    struct window window = window_of(j, a[0].as.string, a[2], a[3]);
    if (!ak_j_is_form(a[1], AK_J_TUPLE))
        return ak_j_bool(has_affix(j, a[0].as.string, window, a[1], at_end));
    for (size_t i = 0; i < a[1].as.list->n; i++)
        if (has_affix(j, a[0].as.string, window, a[1].as.list->items[i], at_end))
            return ak_j_bool(true);
    return ak_j_bool(false);
}

static struct ak_jval method_startswith(struct ak_jenv *j, const struct ak_jval *a,
                                        const struct ak_jargs *rest)
{
    (void)rest;
    return any_affix(j, a, false);
}

static struct ak_jval method_endswith(struct ak_jenv *j, const struct ak_jval *a,
                                      const struct ak_jargs *rest)
{
    (void)rest;
    return any_affix(j, a, true);
}

static struct ak_jval method_removeprefix(struct ak_jenv *j, const struct ak_jval *a,
                                          const struct ak_jargs *rest)
{
    const struct ak_jstr *s = a[0].as.string;
    struct window whole = { 0, s->n, true };
    (void)rest;
    return has_affix(j, s, whole, a[1], false) ? ak_j_substring(j, s, a[1].as.string->n, s->n) :
                                                 a[0];
}

static struct ak_jval method_removesuffix(struct ak_jenv *j, const struct ak_jval *a,
                                          const struct ak_jargs *rest)
{
    const struct ak_jstr *s = a[0].as.string;
    struct window whole = { 0, s->n, true };
    (void)rest;
    return has_affix(j, s, whole, a[1], true) ? ak_j_substring(j, s, 0, s->n - a[1].as.string->n) :
                                                a[0];
}

/* ---- Replacing, joining ------------------------------------------------- */
/* Replaces the empty string, which occurs before each character and at the end. */
static struct ak_jval insert_between(struct ak_jenv *j, const struct ak_jstr *s,
                                     const struct ak_jstr *to, int64_t count)
{
    struct ak_jout out = { 0 };
    size_t at = 0, next;
    for (; count != 0; count--) {
        ak_j_put_str(j, &out, to);
        if (at == s->n)
            break;
        ak_j_char_at(s, at, &next);
        ak_j_put_bytes(j, &out, s->bytes + at, next - at);
        at = next;
        ak_j_spend(j, 1);
    }
    ak_j_put_bytes(j, &out, s->bytes + at, s->n - at);
    return ak_j_finish(j, &out);
}

struct ak_jval ak_j_replace(struct ak_jenv *j, const struct ak_jstr *s, const struct ak_jstr *from,
                            const struct ak_jstr *to, int64_t count)
{
    struct ak_jout out = { 0 };
    size_t at = 0;
    if (from->n == 0)
        return insert_between(j, s, to, count);
    ak_j_spend(j, s->n / 16);
    for (size_t found; count != 0 && (found = ak_j_find(s, from, at)) != SIZE_MAX; count--) {
        ak_j_put_bytes(j, &out, s->bytes + at, found - at);
        ak_j_put_str(j, &out, to);
        ak_j_spend(j, 1);
        at = found + from->n;
    }
    ak_j_put_bytes(j, &out, s->bytes + at, s->n - at);
    return ak_j_finish(j, &out);
}

static struct ak_jval method_replace(struct ak_jenv *j, const struct ak_jval *a,
                                     const struct ak_jargs *rest)
{
    const struct ak_jstr *from = ak_j_need_string(j, a[1], "replace() argument 1"),
                         *to = ak_j_need_string(j, a[2], "replace() argument 2");
    (void)rest;
    return ak_j_replace(j, a[0].as.string, from, to,
                        ak_j_is_given(a[3]) ? ak_j_need_int(j, a[3], "count") : -1);
}

struct ak_jval ak_j_join(struct ak_jenv *j, const struct ak_jstr *separator,
                         const struct ak_jlist *items, bool strict)
{
    struct ak_jout out = { 0 };
    for (size_t i = 0; i < items->n; i++) {
        ak_j_spend(j, 1);
        if (i > 0)
            ak_j_put_str(j, &out, separator);
        if (strict && items->items[i].kind != AK_J_STRING)
            ak_j_fail(j, "sequence item %zu: expected str instance, %s found", i,
                      ak_j_type_name(items->items[i]));
        ak_j_put_value(j, &out, items->items[i]);
    }
    return ak_j_finish(j, &out);
}

static struct ak_jval method_join(struct ak_jenv *j, const struct ak_jval *a,
                                  const struct ak_jargs *rest)
{
    (void)rest;
    return ak_j_join(j, a[0].as.string, ak_j_iterate(j, a[1]), true);
}

static struct ak_jval method_expandtabs(struct ak_jenv *j, const struct ak_jval *a,
                                        const struct ak_jargs *rest)
{
    const struct ak_jstr *s = a[0].as.string;
    struct ak_jout out = { 0 };
    int64_t size = ak_j_is_given(a[1]) ? ak_j_need_int(j, a[1], "tabsize") : 8, column = 0;
    (void)rest;
    for (size_t at = 0; at < s->n; at++) {
        char c = s->bytes[at];
        int64_t n = c == '\t' && size > 0 ? size - column % size : 0;
        column = c == '\n' || c == '\r' ? 0 :
                 c == '\t'              ? column + n :
                                          column + (((unsigned char)c & 0xC0) != 0x80);
        for (; n > 0; n--)
            ak_j_put_text(j, &out, " ");
        if (c != '\t')
            ak_j_put_bytes(j, &out, &c, 1);
        ak_j_spend(j, 1);
    }
    return ak_j_finish(j, &out);
}

static struct ak_jval method_format(struct ak_jenv *j, const struct ak_jval *a,
                                    const struct ak_jargs *rest)
{
    return ak_j_format(j, a[0].as.string, rest);
}

const struct ak_jbuiltin ak_j_string_methods[] = {
    { "strip", method_strip, 0, { "chars" }, false, false },
    { "lstrip", method_lstrip, 0, { "chars" }, false, false },
    { "rstrip", method_rstrip, 0, { "chars" }, false, false },
    { "center", method_center, 1, { "width", "fillchar" }, false, false },
    { "ljust", method_ljust, 1, { "width", "fillchar" }, false, false },
    { "rjust", method_rjust, 1, { "width", "fillchar" }, false, false },
    { "zfill", method_zfill, 1, { "width" }, false, false },
    { "find", method_find, 1, { "sub", "start", "end" }, false, false },
    { "rfind", method_rfind, 1, { "sub", "start", "end" }, false, false },
    { "index", method_index, 1, { "sub", "start", "end" }, false, false },
    { "rindex", method_rindex, 1, { "sub", "start", "end" }, false, false },
    { "count", method_count, 1, { "sub", "start", "end" }, false, false },
    { "startswith", method_startswith, 1, { "prefix", "start", "end" }, false, false },
    { "endswith", method_endswith, 1, { "suffix", "start", "end" }, false, false },
    { "removeprefix", method_removeprefix, 1, { "prefix" }, false, false },
    { "removesuffix", method_removesuffix, 1, { "suffix" }, false, false },
    { "replace", method_replace, 2, { "old", "new", "count" }, false, false },
    { "join", method_join, 1, { "iterable" }, false, false },
    { "expandtabs", method_expandtabs, 0, { "tabsize" }, false, false },
    { "format", method_format, 0, { NULL }, true, false },
    { NULL, NULL, 0, { NULL }, false, false },
};
