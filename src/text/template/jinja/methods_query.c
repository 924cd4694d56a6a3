/* String methods that test characters (isdigit, …) or change case. */
#include <utf8proc.h>

#include "base/unicode.h"
#include "text/template/jinja/builtins.h"

static utf8proc_category_t category(uint32_t c)
{
    return utf8proc_category((utf8proc_int32_t)c);
}

static bool is_decimal(uint32_t c)
{
    return category(c) == UTF8PROC_CATEGORY_ND;
}

/* Digits, including superscripts and subscripts. */
static bool is_digit(uint32_t c)
{
    return is_decimal(c) || c == 0xB2 || c == 0xB3 || c == 0xB9 || c == 0x2070 ||
           (c >= 0x2074 && c <= 0x2079) || (c >= 0x2080 && c <= 0x2089) ||
           (c >= 0x2460 && c <= 0x2468);
}

static bool is_numeric(uint32_t c)
{
    return ak_is_number(c);
}

static bool is_alnum(uint32_t c)
{
    return ak_j_is_letter(c) || is_numeric(c);
}

static bool is_ascii(uint32_t c)
{
    return c < 0x80;
}

static bool is_printable(uint32_t c)
{
    utf8proc_category_t k = category(c);
    return c == ' ' || (k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_SO);
}

static bool is_name_char(uint32_t c)
{
    return c == '_' || ak_is_word_char(c);
}

/* Whether `is` holds for all characters; `empty`: the result for an empty string. */
static struct ak_jval all_are(struct ak_jenv *j, const struct ak_jstr *s, bool (*is)(uint32_t c),
                              bool empty)
{
    bool all = s->n > 0 || empty;
    ak_j_spend(j, s->n / 4);
    for (size_t at = 0; all && at < s->n;)
        all = is(ak_j_char_at(s, at, &at));
    return ak_j_bool(all);
}

#define ASK(name, is, empty)                                                                       \
    static struct ak_jval name(struct ak_jenv *j, const struct ak_jval *a,                         \
                               const struct ak_jargs *rest)                                        \
    {                                                                                              \
        (void)rest;                                                                                \
        return all_are(j, a[0].as.string, is, empty);                                              \
    }
ASK(method_isalpha, ak_j_is_letter, false)
ASK(method_isdecimal, is_decimal, false)
ASK(method_isdigit, is_digit, false)
ASK(method_isnumeric, is_numeric, false)
ASK(method_isalnum, is_alnum, false)
ASK(method_isspace, ak_j_is_whitespace, false)
ASK(method_isascii, is_ascii, true)
ASK(method_isprintable, is_printable, true)
#undef ASK

static struct ak_jval method_isidentifier(struct ak_jenv *j, const struct ak_jval *a,
                                          const struct ak_jargs *rest)
{
    const struct ak_jstr *s = a[0].as.string;
    (void)rest;
    size_t next;
    bool digit_first = s->n > 0 && is_decimal(ak_j_char_at(s, 0, &next));
    return digit_first ? ak_j_bool(false) : all_are(j, s, is_name_char, false);
}

static struct ak_jval method_isupper(struct ak_jenv *j, const struct ak_jval *a,
                                     const struct ak_jargs *rest)
{
    (void)rest;
    return ak_j_bool(ak_j_is_upper(j, a[0].as.string));
}

static struct ak_jval method_islower(struct ak_jenv *j, const struct ak_jval *a,
                                     const struct ak_jargs *rest)
{
    (void)rest;
    return ak_j_bool(ak_j_is_lower(j, a[0].as.string));
}

static struct ak_jval method_istitle(struct ak_jenv *j, const struct ak_jval *a,
                                     const struct ak_jargs *rest)
{
    const struct ak_jstr *s = a[0].as.string;
    bool found = false, cased = false;
    (void)rest;
    ak_j_spend(j, s->n / 4);
    for (size_t at = 0; at < s->n;) {
        uint32_t c = ak_j_char_at(s, at, &at);
        bool lower = ak_j_is_lower_char(c);
        if (ak_j_is_cased(c) && lower != cased)
            return ak_j_bool(false);
        cased = ak_j_is_cased(c);
        found = found || cased;
    }
    return ak_j_bool(found);
}

/* ---- Changing the case -------------------------------------------------- */
static struct ak_jval method_upper(struct ak_jenv *j, const struct ak_jval *a,
                                   const struct ak_jargs *rest)
{
    (void)rest;
    return ak_j_upper(j, a[0].as.string);
}

static struct ak_jval method_lower(struct ak_jenv *j, const struct ak_jval *a,
                                   const struct ak_jargs *rest)
{
    (void)rest;
    return ak_j_lower(j, a[0].as.string);
}

static struct ak_jval method_capitalize(struct ak_jenv *j, const struct ak_jval *a,
                                        const struct ak_jargs *rest)
{
    (void)rest;
    return ak_j_capitalize(j, a[0].as.string);
}

static struct ak_jval method_casefold(struct ak_jenv *j, const struct ak_jval *a,
                                      const struct ak_jargs *rest)
{
    const struct ak_jstr *s = a[0].as.string;
    struct ak_jout out = { 0 };
    (void)rest;
    ak_j_spend(j, s->n / 4);
    for (size_t at = 0; at < s->n;) {
        utf8proc_int32_t folded[8];
        int last = 0;
        uint32_t c = ak_j_char_at(s, at, &at);
        utf8proc_ssize_t n =
            utf8proc_decompose_char((utf8proc_int32_t)c, folded, 8, UTF8PROC_CASEFOLD, &last);
        for (utf8proc_ssize_t i = 0; i < n && i < 8; i++)
            ak_j_put_char(j, &out, (uint32_t)folded[i]);
    }
    return ak_j_finish(j, &out);
}

static struct ak_jval method_swapcase(struct ak_jenv *j, const struct ak_jval *a,
                                      const struct ak_jargs *rest)
{
    const struct ak_jstr *s = a[0].as.string;
    struct ak_jout out = { 0 };
    (void)rest;
    ak_j_spend(j, s->n / 4);
    for (size_t at = 0, next; at < s->n; at = next) {
        uint32_t c = ak_j_char_at(s, at, &next);
        if (ak_j_is_upper_char(c))
            ak_j_put_lower(j, &out, s, at);
        else if (ak_j_is_lower_char(c))
            ak_j_put_upper(j, &out, c);
        else
            ak_j_put_char(j, &out, c);
    }
    return ak_j_finish(j, &out);
}

static struct ak_jval method_title(struct ak_jenv *j, const struct ak_jval *a,
                                   const struct ak_jargs *rest)
{
    const struct ak_jstr *s = a[0].as.string;
    struct ak_jout out = { 0 };
    bool inside = false;
    (void)rest;
    ak_j_spend(j, s->n / 4);
    for (size_t at = 0, next; at < s->n; at = next) {
        uint32_t c = ak_j_char_at(s, at, &next);
        if (inside)
            ak_j_put_lower(j, &out, s, at);
        else
            ak_j_put_title(j, &out, c);
        inside = ak_j_is_cased(c);
    }
    return ak_j_finish(j, &out);
}

const struct ak_jbuiltin ak_j_string_queries[] = {
    { "isalpha", method_isalpha, 0, { NULL }, false, false },
    { "isdecimal", method_isdecimal, 0, { NULL }, false, false },
    { "isdigit", method_isdigit, 0, { NULL }, false, false },
    { "isnumeric", method_isnumeric, 0, { NULL }, false, false },
    { "isalnum", method_isalnum, 0, { NULL }, false, false },
    { "isspace", method_isspace, 0, { NULL }, false, false },
    { "isascii", method_isascii, 0, { NULL }, false, false },
    { "isprintable", method_isprintable, 0, { NULL }, false, false },
    { "isidentifier", method_isidentifier, 0, { NULL }, false, false },
    { "isupper", method_isupper, 0, { NULL }, false, false },
    { "islower", method_islower, 0, { NULL }, false, false },
    { "istitle", method_istitle, 0, { NULL }, false, false },
    { "upper", method_upper, 0, { NULL }, false, false },
    { "lower", method_lower, 0, { NULL }, false, false },
    { "capitalize", method_capitalize, 0, { NULL }, false, false },
    { "casefold", method_casefold, 0, { NULL }, false, false },
    { "swapcase", method_swapcase, 0, { NULL }, false, false },
    { "title", method_title, 0, { NULL }, false, false },
    { NULL, NULL, 0, { NULL }, false, false },
};
