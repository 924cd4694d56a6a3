/* Filters that lay text out: center, indent, truncate; and wordcount. */
#include "base/unicode.h"
#include "text/template/jinja/builtins.h"

static struct ak_jval filter_center(struct ak_jenv *j, const struct ak_jval *a,
                                    const struct ak_jargs *rest)
{
    (void)rest;
    return ak_j_center(j, ak_j_str(j, a[0]),
                       ak_j_is_given(a[1]) ? ak_j_need_int(j, a[1], "width") : 80, ' ');
}

static const struct ak_jstr *make_indent(struct ak_jenv *j, struct ak_jval width)
{
    static const struct ak_jstr space = { .bytes = " ", .n = 1, .n_chars = 1 };
    if (width.kind == AK_J_STRING)
        return width.as.string;
    return ak_j_repeat(j, &space, ak_j_is_given(width) ? ak_j_need_int(j, width, "width") : 4)
        .as.string;
}

static struct ak_jval filter_indent(struct ak_jenv *j, const struct ak_jval *a,
                                    const struct ak_jargs *rest)
{
    static const struct ak_jstr newline = { .bytes = "\n", .n = 1, .n_chars = 1 };
    const struct ak_jstr *s = ak_j_need_string(j, a[0], "what is indented"),
                         *by = make_indent(j, a[1]);
    const struct ak_jlist *lines =
        ak_j_split_lines(j, ak_j_concat(j, s, &newline).as.string, false);
    struct ak_jout out = { 0 };
    (void)rest;
    for (size_t i = 0; i < lines->n; i++) {
        const struct ak_jstr *line = lines->items[i].as.string;
        ak_j_put_text(j, &out, i ? "\n" : "");
        if (i == 0 ? ak_j_is_true(a[2]) : line->n > 0 || ak_j_is_true(a[3]))
            ak_j_put_str(j, &out, by);
        ak_j_put_str(j, &out, line);
    }
    return ak_j_finish(j, &out);
}

static struct ak_jval filter_truncate(struct ak_jenv *j, const struct ak_jval *a,
                                      const struct ak_jargs *rest)
{
    static const struct ak_jstr dots = { .bytes = "...", .n = 3, .n_chars = 3 };
    const struct ak_jstr *s = ak_j_need_string(j, a[0], "what is truncated");
    const struct ak_jstr *end = ak_j_is_given(a[3]) ? ak_j_need_string(j, a[3], "end") : &dots;
    int64_t length = ak_j_is_given(a[1]) ? ak_j_need_int(j, a[1], "length") : 255;
    int64_t leeway = ak_j_is_not_none(a[4]) ? ak_j_need_int(j, a[4], "leeway") : 5,
            n_end = (int64_t)end->n_chars;
    (void)rest;
    if (length < n_end)
        ak_j_fail(j, "expected length >= %lld, got %lld", (long long)n_end, (long long)length);
    if (leeway < 0)
        ak_j_fail(j, "expected leeway >= 0, got %lld", (long long)leeway);
    if ((int64_t)s->n_chars - leeway <= length)
        return a[0];
    struct ak_jval kept = ak_j_substring(j, s, 0, ak_j_byte_offset(j, s, (size_t)(length - n_end)));
    if (!ak_j_is_true(a[2]))
        kept = ak_j_cut_last_word(j, kept.as.string);
    return ak_j_concat(j, kept.as.string, end);
}

static struct ak_jval filter_wordcount(struct ak_jenv *j, const struct ak_jval *a,
                                       const struct ak_jargs *rest)
{
    const struct ak_jstr *s = ak_j_str(j, a[0]);
    int64_t count = 0;
    bool inside = false;
    (void)rest;
    ak_j_spend(j, s->n / 4);
    for (size_t at = 0; at < s->n;) {
        bool word = ak_is_word_char(ak_j_char_at(s, at, &at));
        count += word && !inside;
        inside = word;
    }
    return ak_j_int(count);
}

const struct ak_jbuiltin ak_j_layout_filters[] = {
    { "center", filter_center, 0, { "width" }, false, true },
    { "indent", filter_indent, 0, { "width", "first", "blank" }, false, true },
    { "truncate", filter_truncate, 0, { "length", "killwords", "end", "leeway" }, false, true },
    { "wordcount", filter_wordcount, 0, { NULL }, false, false },
    { NULL, NULL, 0, { NULL }, false, false },
};
