/* Filters that lay text out: indent, truncate, wordwrap, striptags, … */
#include <string.h>

#include "base/unicode.h"
#include "template/jinja/builtins.h"

static struct ak_jval filter_center(struct ak_jenv *j, const struct ak_jval *a,
                                    const struct ak_jargs *rest)
{
    (void)rest;
    return ak_j_center(j, ak_j_str(j, a[0]),
                       ak_j_is_given(a[1]) ? ak_j_need_int(j, a[1], "width") : 80, ' ');
}

/* ---- indent ------------------------------------------------------------- */
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

/* ---- wordwrap ----------------------------------------------------------- */
struct wrap {
    struct ak_jenv *j;
    struct ak_jout out;
    const struct ak_jstr *newline;
    int64_t width, used;    /* characters of a line; of the current one so far */
    bool break_long, first; /* words may be broken; nothing was written yet */
    struct ak_jstr spaces;  /* whitespace before the next word */
};

static void begin_line(struct wrap *w)
{
    if (w->used > 0)
        ak_j_put_str(w->j, &w->out, w->newline);
    w->used = 0;
    w->spaces = (struct ak_jstr){ 0 };
}

static void put_part(struct wrap *w, const struct ak_jstr *s)
{
    ak_j_put_str(w->j, &w->out, s);
    w->used += (int64_t)s->n_chars;
    w->first = false;
}

static void put_long_word(struct wrap *w, const struct ak_jstr *word)
{
    struct ak_jstr left = *word;
    while ((int64_t)left.n_chars > w->width - w->used && w->width > 0) {
        size_t n = ak_j_byte_offset(w->j, &left, (size_t)(w->width - w->used));
        struct ak_jstr *part = ak_j_substring(w->j, &left, 0, n).as.string;
        put_part(w, part);
        left = *ak_j_substring(w->j, &left, n, left.n).as.string;
        begin_line(w);
    }
    put_part(w, &left);
}

static void put_word(struct wrap *w, const struct ak_jstr *word)
{
    int64_t n = (int64_t)word->n_chars, n_spaces = (int64_t)w->spaces.n_chars;
    if (w->used + n_spaces + n <= w->width) {
        put_part(w, &w->spaces);
        put_part(w, word);
    } else if (n > w->width && w->break_long && w->used + n_spaces < w->width) {
        put_part(w, &w->spaces);
        put_long_word(w, word);
    } else {
        begin_line(w);
        if (n > w->width && w->break_long)
            put_long_word(w, word);
        else
            put_part(w, word);
    }
    w->spaces = (struct ak_jstr){ 0 };
}

/* A word ends at whitespace and after a hyphen between letters. */
static size_t word_end(const struct ak_jstr *s, size_t at, bool hyphens)
{
    size_t begin = at, next;
    for (; at < s->n; at = next) {
        uint32_t c = ak_j_char_at(s, at, &next), after;
        if (ak_j_is_space(c))
            break;
        size_t behind;
        if (!hyphens || c != '-' || at < begin + 2 || next >= s->n)
            continue;
        after = ak_j_char_at(s, next, &behind);
        if (ak_is_word_char(after) && !ak_is_number(after) &&
            ak_is_word_char((unsigned char)s->bytes[at - 1]))
            return next;
    }
    return at;
}

static void wrap_line(struct wrap *w, const struct ak_jstr *line, bool hyphens)
{
    w->used = 0;
    w->spaces = (struct ak_jstr){ 0 };
    for (size_t at = 0, end; at < line->n; at = end) {
        size_t word_begin = at, next = at;
        while (word_begin < line->n && ak_j_is_space(ak_j_char_at(line, word_begin, &next)))
            word_begin = next;
        if (word_begin > at)
            w->spaces = *ak_j_substring(w->j, line, at, word_begin).as.string;
        end = word_end(line, word_begin, hyphens);
        if (end > word_begin)
            put_word(w, ak_j_substring(w->j, line, word_begin, end).as.string);
        ak_j_spend(w->j, 1 + (end - at) / 4);
    }
}

static struct ak_jval filter_wordwrap(struct ak_jenv *j, const struct ak_jval *a,
                                      const struct ak_jargs *rest)
{
    static const struct ak_jstr newline = { .bytes = "\n", .n = 1, .n_chars = 1 };
    struct wrap w = { .j = j,
                      .newline = ak_j_is_not_none(a[3]) ? ak_j_need_string(j, a[3], "wrapstring") :
                                                          &newline };
    const struct ak_jlist *lines =
        ak_j_split_lines(j, ak_j_need_string(j, a[0], "what is wrapped"), false);
    w.width = ak_j_is_given(a[1]) ? ak_j_need_int(j, a[1], "width") : 79;
    w.break_long = !ak_j_is_given(a[2]) || ak_j_is_true(a[2]);
    (void)rest;
    if (w.width <= 0)
        ak_j_fail(j, "invalid width %lld (must be > 0)", (long long)w.width);
    for (size_t i = 0; i < lines->n; i++) {
        if (i > 0)
            ak_j_put_str(j, &w.out, w.newline);
        wrap_line(&w, lines->items[i].as.string, !ak_j_is_given(a[4]) || ak_j_is_true(a[4]));
    }
    return ak_j_finish(j, &w.out);
}

/* ---- striptags ---------------------------------------------------------- */
/* Removes comments and tags. */
static struct ak_jstr *strip_tags(struct ak_jenv *j, const struct ak_jstr *s)
{
    struct ak_jout out = { 0 };
    for (size_t at = 0; at < s->n;) {
        bool comment = s->n - at >= 4 && memcmp(s->bytes + at, "<!--", 4) == 0;
        const char *end = s->bytes[at] != '<' ? NULL :
                          comment             ? memmem(s->bytes + at, s->n - at, "-->", 3) :
                                                memchr(s->bytes + at, '>', s->n - at);
        if (!end)
            ak_j_put_bytes(j, &out, &s->bytes[at++], 1);
        else
            at = (size_t)(end - s->bytes) + (comment ? 3 : 1);
        ak_j_spend(j, end ? 1 : s->bytes[at - 1] == '<' ? (s->n - at) / 16 : 0);
    }
    return ak_j_finish(j, &out).as.string;
}

static const struct {
    const char *name;
    uint32_t code;
} entities[] = { { "&amp;", '&' }, { "&lt;", '<' },   { "&gt;", '>' },   { "&quot;", '"' },
                 { "&#34;", '"' }, { "&#39;", '\'' }, { "&nbsp;", 0xA0 } };

static struct ak_jval decode_entities(struct ak_jenv *j, const struct ak_jstr *s)
{
    struct ak_jout out = { 0 };
    for (size_t at = 0; at < s->n;) {
        size_t n = 0;
        for (size_t i = 0; s->bytes[at] == '&' && n == 0 && i < sizeof entities / sizeof *entities;
             i++) {
            size_t length = strlen(entities[i].name);
            if (s->n - at < length || memcmp(s->bytes + at, entities[i].name, length) != 0)
                continue;
            ak_j_put_char(j, &out, entities[i].code);
            n = length;
        }
        if (n == 0)
            ak_j_put_bytes(j, &out, &s->bytes[at], 1);
        at += n ? n : 1;
    }
    return ak_j_finish(j, &out);
}

static struct ak_jval filter_striptags(struct ak_jenv *j, const struct ak_jval *a,
                                       const struct ak_jargs *rest)
{
    const struct ak_jstr *s = strip_tags(j, ak_j_str(j, a[0]));
    struct ak_jout out = { 0 };
    bool after_space = false;
    (void)rest;
    ak_j_spend(j, s->n / 2);
    for (size_t at = 0, next; at < s->n; at = next) {
        bool space = ak_j_is_space(ak_j_char_at(s, at, &next));
        if (!space && after_space && out.n > 0)
            ak_j_put_text(j, &out, " ");
        if (!space)
            ak_j_put_bytes(j, &out, s->bytes + at, next - at);
        after_space = space;
    }
    return decode_entities(j, ak_j_finish(j, &out).as.string);
}

const struct ak_jbuiltin ak_j_layout_filters[] = {
    { "center", filter_center, 0, { "width" }, false, true },
    { "indent", filter_indent, 0, { "width", "first", "blank" }, false, true },
    { "truncate", filter_truncate, 0, { "length", "killwords", "end", "leeway" }, false, true },
    { "wordcount", filter_wordcount, 0, { NULL }, false, false },
    { "wordwrap",
      filter_wordwrap,
      0,
      { "width", "break_long_words", "wrapstring", "break_on_hyphens" },
      false,
      false },
    { "striptags", filter_striptags, 0, { NULL }, false, false },
    { NULL, NULL, 0, { NULL }, false, false },
};
