/* Filters that take HTML apart and that quote URLs: striptags, urlencode. */
#include <string.h>

#include "text/template/jinja/builtins.h"

/* ---- Character references ----------------------------------------------- */
static const struct {
    const char *name;
    uint32_t c;
    bool legacy; /* counts without a semicolon too */
} entities[] = {
#define ENTITY(name, c) { #name, c, false },
#define ENTITY_LEGACY(name, c) { #name, c, true },
#include "text/template/jinja/entities.def"
#undef ENTITY
#undef ENTITY_LEGACY
};

/* What HTML reads numbers of control characters as, which are Windows' letters; 0: itself. */
static const uint32_t windows[32] = {
    0x20ac, 0,      0x201a, 0x0192, 0x201e, 0x2026, 0x2020, 0x2021, 0x02c6, 0x2030, 0x0160,
    0x2039, 0x0152, 0,      0x017d, 0,      0,      0x2018, 0x2019, 0x201c, 0x201d, 0x2022,
    0x2013, 0x2014, 0x02dc, 0x2122, 0x0161, 0x203a, 0x0153, 0,      0x017e, 0x0178,
};

/* The character of a numeric reference; UINT32_MAX: none, the reference disappears. */
static uint32_t char_of_number(uint64_t n)
{
    if (n == 0 || n > 0x10FFFF || (n >= 0xD800 && n <= 0xDFFF))
        return 0xFFFD;
    if (n >= 0x80 && n <= 0x9F)
        return windows[n - 0x80] ? windows[n - 0x80] : (uint32_t)n;
    bool is_control = n < 0x20 && n != '\t' && n != '\n' && n != '\f' && n != '\r';
    bool is_none = (n >= 0xFDD0 && n <= 0xFDEF) || (n & 0xFFFE) == 0xFFFE;
    return is_control || n == 0x7F || is_none ? UINT32_MAX : (uint32_t)n;
}

static bool is_digit(char c, unsigned base)
{
    return (c >= '0' && c <= '9') || (base == 16 && (c | 0x20) >= 'a' && (c | 0x20) <= 'f');
}

/* Reads "#38;" and "#x26" at the start of the text. Returns its bytes; 0: it is none. */
static size_t put_number(struct ak_jenv *j, struct ak_jout *out, const char *text, size_t n)
{
    unsigned base = n > 1 && (text[1] | 0x20) == 'x' ? 16 : 10;
    size_t begin = base == 16 ? 2 : 1, at = begin;
    uint64_t value = 0;
    for (; at < n && is_digit(text[at], base); at++) {
        unsigned digit =
            text[at] <= '9' ? (unsigned)(text[at] - '0') : (unsigned)((text[at] | 0x20) - 'a') + 10;
        value = value > 0x10FFFF ? value : value * base + digit;
    }
    if (at == begin)
        return 0;
    uint32_t c = char_of_number(value);
    if (c != UINT32_MAX)
        ak_j_put_char(j, out, c);
    return at + (at < n && text[at] == ';');
}

/* The same of a name, the longest one that fits. */
static size_t put_name(struct ak_jenv *j, struct ak_jout *out, const char *text, size_t n)
{
    size_t best = 0, longest = 0;
    ak_j_spend(j, 8);
    for (size_t i = 0; i < sizeof entities / sizeof *entities; i++) {
        size_t length = strlen(entities[i].name);
        if (length > n || memcmp(text, entities[i].name, length) != 0)
            continue;
        bool ends = length < n && text[length] == ';';
        if ((ends || entities[i].legacy) && length + ends > longest) {
            longest = length + ends;
            best = i;
        }
    }
    if (longest > 0)
        ak_j_put_char(j, out, entities[best].c);
    return longest;
}

/* As Python's html.unescape, with the names of entities.def. */
static struct ak_jval unescape(struct ak_jenv *j, const struct ak_jstr *s)
{
    struct ak_jout out = { 0 };
    ak_j_spend(j, s->n / 4);
    for (size_t at = 0; at < s->n;) {
        const char *text = s->bytes + at + 1;
        size_t left = s->n - at - 1, used = 0;
        if (s->bytes[at] == '&' && left > 0)
            used = *text == '#' ? put_number(j, &out, text, left) : put_name(j, &out, text, left);
        if (used == 0)
            ak_j_put_bytes(j, &out, s->bytes + at, 1);
        at += 1 + used;
    }
    return ak_j_finish(j, &out);
}

/* ---- striptags ---------------------------------------------------------- */
/* The end of the tag or comment that begins the text; NULL: it has none. */
static const char *end_of_tag(const char *text, size_t n)
{
    bool is_comment = n >= 4 && memcmp(text, "<!--", 4) == 0;
    const char *end = is_comment ? memmem(text + 4, n - 4, "-->", 3) : memchr(text, '>', n);
    return end ? end + (is_comment ? 3 : 1) : NULL;
}

/* Runs of whitespace as one space, and none at the ends. */
static struct ak_jval collapse_spaces(struct ak_jenv *j, const struct ak_jstr *s)
{
    struct ak_jout out = { 0 };
    bool waits = false;
    ak_j_spend(j, s->n / 4);
    for (size_t at = 0, next; at < s->n; at = next) {
        bool is_space = ak_j_is_whitespace(ak_j_char_at(s, at, &next));
        if (!is_space && waits && out.n > 0)
            ak_j_put_text(j, &out, " ");
        if (!is_space)
            ak_j_put_bytes(j, &out, s->bytes + at, next - at);
        waits = is_space;
    }
    return ak_j_finish(j, &out);
}

static struct ak_jval filter_striptags(struct ak_jenv *j, const struct ak_jval *a,
                                       const struct ak_jargs *rest)
{
    const struct ak_jstr *s = ak_j_str(j, a[0]);
    struct ak_jout out = { 0 };
    const char *at = s->bytes, *end = s->bytes + s->n, *next;
    (void)rest;
    ak_j_spend(j, s->n / 4);
    for (const char *tag; at < end && (tag = memchr(at, '<', (size_t)(end - at))) &&
                          (next = end_of_tag(tag, (size_t)(end - tag)));
         at = next)
        ak_j_put_bytes(j, &out, at, (size_t)(tag - at));
    if (at < end)
        ak_j_put_bytes(j, &out, at, (size_t)(end - at));
    return unescape(j, collapse_spaces(j, ak_j_finish(j, &out).as.string).as.string);
}

/* ---- urlencode ---------------------------------------------------------- */
static void put_quoted(struct ak_jenv *j, struct ak_jout *out, struct ak_jval v, bool in_query)
{
    static const char hex[] = "0123456789ABCDEF";
    const struct ak_jstr *s = ak_j_str(j, v);
    ak_j_spend(j, s->n / 4);
    for (size_t i = 0; i < s->n; i++) {
        unsigned char c = (unsigned char)s->bytes[i];
        bool is_letter = (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
        const char escape[3] = { '%', hex[c >> 4], hex[c & 15] };
        if (c == ' ' && in_query)
            ak_j_put_text(j, out, "+");
        else if (is_letter || (c && strchr(in_query ? "_.-~" : "_.-~/", c)))
            ak_j_put_bytes(j, out, s->bytes + i, 1);
        else
            ak_j_put_bytes(j, out, escape, sizeof escape);
    }
}

/* A text, or the pairs of a dict or of a list as a query. */
static struct ak_jval filter_urlencode(struct ak_jenv *j, const struct ak_jval *a,
                                       const struct ak_jargs *rest)
{
    struct ak_jout out = { 0 };
    (void)rest;
    if (a[0].kind == AK_J_STRING || !ak_j_is_iterable(a[0])) {
        put_quoted(j, &out, a[0], false);
        return ak_j_finish(j, &out);
    }
    const struct ak_jlist *pairs =
        a[0].kind == AK_J_DICT ? ak_j_view(j, a[0].as.dict, AK_J_ITEMS) : ak_j_iterate(j, a[0]);
    for (size_t i = 0; i < pairs->n; i++) {
        const struct ak_jlist *pair = ak_j_iterate(j, pairs->items[i]);
        if (pair->n != 2)
            ak_j_fail(j, "urlencode: a pair has %zu members, where 2 are expected", pair->n);
        if (i > 0)
            ak_j_put_text(j, &out, "&");
        put_quoted(j, &out, pair->items[0], true);
        ak_j_put_text(j, &out, "=");
        put_quoted(j, &out, pair->items[1], true);
    }
    return ak_j_finish(j, &out);
}

const struct ak_jbuiltin ak_j_markup_filters[] = {
    { "striptags", filter_striptags, 0, { NULL }, false, false },
    { "urlencode", filter_urlencode, 0, { NULL }, false, false },
    { NULL, NULL, 0, { NULL }, false, false },
};
