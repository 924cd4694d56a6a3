/* "format" % values, as in Python. */
#include <math.h>
#include <string.h>

#include "text/template/jinja/builtins.h"

struct values {
    const struct ak_jval *all; /* elements of a tuple, or the single value */
    size_t n, at;
    const struct ak_jdict *named; /* NULL: not a dict */
};

static struct ak_jval next_value(struct ak_jenv *j, struct values *values)
{
    if (values->at == values->n)
        ak_j_fail(j, "not enough arguments for format string");
    return values->all[values->at++];
}

/* Reads an optional "(name)" and looks its value up; false: there is none. */
static bool read_mapping_key(struct ak_jenv *j, const struct ak_jstr *s, size_t *at,
                             const struct values *values, struct ak_jval *out)
{
    int open = 1;
    if (*at == s->n || s->bytes[*at] != '(')
        return false;
    size_t begin = ++*at;
    for (; *at < s->n && open > 0; (*at)++)
        open += (s->bytes[*at] == '(') - (s->bytes[*at] == ')');
    if (open > 0)
        ak_j_fail(j, "incomplete format key");
    if (!values->named)
        ak_j_fail(j, "format requires a mapping");
    struct ak_jval name = ak_j_substring(j, s, begin, *at - 1);
    const struct ak_jval *found = ak_j_get(j, values->named, name);
    if (!found)
        ak_j_fail(j, "the format names the key %s, which the mapping lacks", ak_j_show(j, name));
    *out = *found;
    return true;
}

static void read_flags(const struct ak_jstr *s, size_t *at, struct ak_jspec *spec)
{
    bool zero = false;
    for (; *at < s->n && s->bytes[*at] && strchr("-+ #0", s->bytes[*at]); (*at)++) {
        char c = s->bytes[*at];
        if (c == '-')
            spec->align = '<';
        else if (c == '+' || (c == ' ' && !spec->sign))
            spec->sign = c;
        spec->alternate |= c == '#';
        zero |= c == '0';
    }
    if (zero && spec->align != '<') {
        spec->fill = '0';
        spec->align = '=';
    }
}

static int64_t read_size(struct ak_jenv *j, const struct ak_jstr *s, size_t *at,
                         struct values *values, int64_t max)
{
    if (*at == s->n || s->bytes[*at] != '*')
        return ak_j_read_width(j, s, at, max);
    ++*at;
    int64_t size = ak_j_need_int(j, next_value(j, values), "* of a format");
    if (size > max || size < -max)
        ak_j_fail_as(j, AKUNU_ERROR_UNSUPPORTED,
                     "format width or precision exceeds the limit of %lld", (long long)max);
    return size;
}

static double number_of(struct ak_jenv *j, struct ak_jval v)
{
    return v.kind == AK_J_FLOAT ? v.as.number : (double)ak_j_need_int(j, v, "a number in a format");
}

/* The integer to format. %d truncates a float, other conversions refuse it. */
static int64_t integer_of(struct ak_jenv *j, struct ak_jval v, char conversion)
{
    if (v.kind != AK_J_FLOAT || conversion != 'd')
        return ak_j_need_int(j, v, "an integer in a format");
    if (!(fabs(v.as.number) < 0x1p63))
        ak_j_fail(j, "cannot convert this float to an integer");
    return (int64_t)v.as.number;
}

static void put_character(struct ak_jenv *j, struct ak_jout *out, struct ak_jval v,
                          struct ak_jspec *spec)
{
    struct ak_jout text = { 0 };
    if (v.kind == AK_J_STRING && v.as.string->n_chars == 1) {
        ak_j_put_str(j, &text, v.as.string);
    } else {
        int64_t code = ak_j_need_int(j, v, "%c");
        if (code < 0 || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
            ak_j_fail(j, "%%c arg not in range(0x110000)");
        ak_j_put_char(j, &text, (uint32_t)code);
    }
    ak_j_put_formatted_text(j, out, ak_j_finish(j, &text).as.string, spec);
}

static void put_text(struct ak_jenv *j, struct ak_jout *out, struct ak_jval v,
                     struct ak_jspec *spec)
{
    struct ak_jout text = { 0 };
    if (spec->conversion == 's')
        ak_j_put_value(j, &text, v);
    else
        ak_j_put_repr(j, &text, v);
    spec->fill = 0;
    spec->align = spec->align == '<' ? '<' : '>';
    ak_j_put_formatted_text(j, out, ak_j_finish(j, &text).as.string, spec);
}

static void put_conversion(struct ak_jenv *j, struct ak_jout *out, struct ak_jval v,
                           struct ak_jspec *spec)
{
    switch (spec->conversion) {
    case 's':
    case 'r':
    case 'a': put_text(j, out, v, spec); break;
    case 'c':
        spec->fill = 0;
        spec->align = spec->align == '<' ? '<' : '>';
        put_character(j, out, v, spec);
        break;
    case 'i':
    case 'u': spec->conversion = 'd'; /* fallthrough */
    case 'd':
    case 'x':
    case 'o': ak_j_put_formatted_int(j, out, integer_of(j, v, spec->conversion), spec); break;
    case 'f':
    case 'e':
    case 'g': ak_j_put_formatted_float(j, out, number_of(j, v), spec); break;
    default: ak_j_fail(j, "unsupported format character in a %% format");
    }
}

/* Formats one conversion; *at is after the "%". */
static void put_one(struct ak_jenv *j, struct ak_jout *out, const struct ak_jstr *s, size_t *at,
                    struct values *values)
{
    struct ak_jspec spec = { .precision = -1 };
    struct ak_jval value;
    bool named = read_mapping_key(j, s, at, values, &value);
    read_flags(s, at, &spec);
    spec.width = read_size(j, s, at, values, AK_J_WIDTH_MAX);
    if (spec.width < 0) {
        spec.align = '<';
        spec.fill = 0;
        spec.width = -spec.width;
    }
    if (*at < s->n && s->bytes[*at] == '.') {
        ++*at;
        spec.precision = read_size(j, s, at, values, AK_J_PRECISION_MAX);
        spec.precision = spec.precision < 0 ? 0 : spec.precision;
    }
    while (*at < s->n && s->bytes[*at] && strchr("hlL", s->bytes[*at]))
        ++*at;
    if (*at == s->n)
        ak_j_fail(j, "incomplete format");
    spec.conversion = s->bytes[(*at)++];
    if (spec.conversion == '%') {
        ak_j_put_text(j, out, "%");
        return;
    }
    spec.upper = strchr("XEFG", spec.conversion) != NULL && spec.conversion;
    if (spec.upper)
        spec.conversion = (char)(spec.conversion - 'A' + 'a');
    put_conversion(j, out, named ? value : next_value(j, values), &spec);
}

struct ak_jval ak_j_format_percent(struct ak_jenv *j, const struct ak_jstr *s, struct ak_jval given)
{
    if (s->safe)
        given = ak_j_escape_all(j, given);
    struct values values = { .all = &given, .n = 1 };
    struct ak_jout out = { 0 };
    bool is_tuple = ak_j_is_form(given, AK_J_TUPLE);
    if (is_tuple) {
        values.all = given.as.list->items;
        values.n = given.as.list->n;
    }
    if (given.kind == AK_J_DICT)
        values.named = given.as.dict;
    for (size_t at = 0; at < s->n;) {
        const char *found = memchr(s->bytes + at, '%', s->n - at);
        size_t plain = found ? (size_t)(found - s->bytes) - at : s->n - at;
        ak_j_put_bytes(j, &out, s->bytes + at, plain);
        at += plain;
        if (at++ < s->n)
            put_one(j, &out, s, &at, &values);
    }
    bool mapping = given.kind == AK_J_DICT || (given.kind == AK_J_LIST && !is_tuple);
    if (values.at < values.n && !mapping)
        ak_j_fail(j, "not all arguments converted during string formatting");
    struct ak_jval text = ak_j_finish(j, &out);
    return s->safe ? ak_j_mark_safe(j, text) : text;
}
