/* "{}".format(values): fields with attributes, conversions and nested fields; and the formatting of
 * a value by a specification, which percent.c uses too. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "text/template/jinja/builtins.h"

/* State of one call of format: its arguments, and how fields name them. */
struct fields {
    const struct ak_jargs *args;
    size_t next;                     /* index of the next positional argument */
    bool has_automatic, has_indexed; /* "{}" and "{0}" occurred: not both in one format */
};

static void put_fields(struct ak_jenv *j, struct ak_jout *out, const struct ak_jstr *s,
                       struct fields *fields, unsigned depth);

static struct ak_jval get_positional(struct ak_jenv *j, struct fields *fields, int64_t number)
{
    if (fields->has_automatic && fields->has_indexed)
        ak_j_fail(j, "a format string cannot mix numbered fields ({0}) and automatic ones ({})");
    if (number < 0 || (uint64_t)number >= fields->args->n)
        ak_j_fail(j, "replacement index %lld is out of range for %zu arguments", (long long)number,
                  fields->args->n);
    return fields->args->values[number];
}

static struct ak_jval get_argument(struct ak_jenv *j, struct fields *fields, struct ak_jval name)
{
    const struct ak_jstr *s = name.as.string;
    int64_t number;
    if (s->n == 0) {
        fields->has_automatic = true;
        return get_positional(j, fields, (int64_t)fields->next++);
    }
    if (s->bytes[0] >= '0' && s->bytes[0] <= '9' && ak_j_parse_int(s->bytes, s->n, 10, &number)) {
        fields->has_indexed = true;
        return get_positional(j, fields, number);
    }
    for (size_t i = 0; i < fields->args->n_named; i++)
        if (ak_j_strings_equal(fields->args->named[i].key.as.string, s))
            return fields->args->named[i].value;
    ak_j_fail(j, "format: missing argument %s", ak_j_show(j, name));
}

/* Evaluates "name.attribute[index]". */
static struct ak_jval evaluate_field(struct ak_jenv *j, struct fields *fields,
                                     const struct ak_jstr *s)
{
    size_t at = strcspn(s->bytes, ".[");
    struct ak_jval value = get_argument(j, fields, ak_j_substring(j, s, 0, at));
    while (at < s->n) {
        bool is_item = s->bytes[at++] == '[';
        size_t n = strcspn(s->bytes + at, is_item ? "]" : ".[");
        struct ak_jval name = ak_j_substring(j, s, at, at + n);
        int64_t index;
        at += n + is_item;
        if (at > s->n)
            ak_j_fail(j, "a format field lacks ']'");
        if (n == 0)
            ak_j_fail(j, "empty attribute or index in a format field");
        /* "-1" is a key */
        if (is_item && s->bytes[at - n - 1] != '-' &&
            ak_j_parse_int(name.as.string->bytes, n, 10, &index))
            name = ak_j_int(index);
        value = is_item ? ak_j_get_item(j, value, name) : ak_j_get_attribute(j, value, name);
    }
    return value;
}

static bool is_align(uint32_t c)
{
    return c == '<' || c == '>' || c == '=' || c == '^';
}

static void read_fill(const struct ak_jstr *s, size_t *at, struct ak_jspec *spec)
{
    size_t second;
    if (s->n == 0)
        return;
    uint32_t fill = ak_j_char_at(s, 0, &second);
    if (second < s->n && is_align((unsigned char)s->bytes[second])) {
        spec->fill = fill;
        spec->align = s->bytes[second];
        *at = second + 1;
    } else if (is_align(fill)) {
        spec->align = s->bytes[(*at)++];
    }
}

static bool skip_char(const struct ak_jstr *s, size_t *at, char c)
{
    bool found = *at < s->n && s->bytes[*at] == c;
    *at += found;
    return found;
}

static struct ak_jspec read_spec(struct ak_jenv *j, const struct ak_jstr *s, bool is_text)
{
    struct ak_jspec spec = { .precision = -1 };
    size_t at = 0;
    read_fill(s, &at, &spec);
    if (at < s->n && strchr("+- ", s->bytes[at]) && s->bytes[at])
        spec.sign = s->bytes[at++];
    spec.alternate = skip_char(s, &at, '#');
    if (!spec.fill && skip_char(s, &at, '0')) {
        spec.fill = '0';
        if (!spec.align && !is_text)
            spec.align = '=';
    }
    spec.width = ak_j_read_width(j, s, &at, AK_J_WIDTH_MAX);
    if (at < s->n && (s->bytes[at] == ',' || s->bytes[at] == '_'))
        spec.grouping = s->bytes[at++];
    if (skip_char(s, &at, '.'))
        spec.precision = ak_j_read_width(j, s, &at, AK_J_PRECISION_MAX);
    if (at < s->n)
        spec.conversion = s->bytes[at++];
    if (at < s->n)
        ak_j_fail(j, "invalid format specifier");
    spec.upper = spec.conversion && strchr("XEFG", spec.conversion);
    if (spec.upper)
        spec.conversion = (char)(spec.conversion - 'A' + 'a');
    return spec;
}

/* Fails if a specification asks for what its kind of value does not have. */
static void check_spec(struct ak_jenv *j, const struct ak_jspec *spec, bool is_text, bool is_whole)
{
    if (is_text && (spec->sign || spec->alternate || spec->grouping || spec->align == '='))
        ak_j_fail(j, "a format for a number is given, where the field is a string");
    if (is_whole && spec->precision >= 0)
        ak_j_fail(j, "precision not allowed in integer format specifier");
    if (spec->grouping && spec->conversion &&
        strchr(spec->grouping == ',' ? "xobn" : "n", spec->conversion))
        ak_j_fail(j, "cannot specify '%c' with '%c'", spec->grouping, spec->conversion);
}

static void put_formatted(struct ak_jenv *j, struct ak_jout *out, struct ak_jval v,
                          const struct ak_jstr *format)
{
    bool is_text = v.kind == AK_J_STRING;
    bool is_int = v.kind == AK_J_INT || (v.kind == AK_J_BOOL && format->n > 0);
    struct ak_jspec spec = read_spec(j, format, is_text);
    bool is_whole = is_int && (!spec.conversion || strchr("dxobn", spec.conversion));
    check_spec(j, &spec, is_text, is_whole);
    if (is_whole)
        ak_j_put_formatted_int(j, out, ak_j_need_int(j, v, "a field"), &spec);
    else if ((is_int || v.kind == AK_J_FLOAT) &&
             (!spec.conversion || strchr("feg%n", spec.conversion)))
        ak_j_put_formatted_float(
            j, out, v.kind == AK_J_FLOAT ? v.as.number : (double)ak_j_need_int(j, v, "a field"),
            &spec);
    else if (is_text && (!spec.conversion || spec.conversion == 's'))
        ak_j_put_formatted_text(j, out, v.as.string, &spec);
    else if (format->n == 0)
        ak_j_put_value(j, out, v);
    else
        ak_j_fail(j, "unsupported format for an object of type '%s'", ak_j_type_name(v));
}

/* Formats one field, given without its braces: "name!conversion:format". */
static void put_field(struct ak_jenv *j, struct ak_jout *out, const struct ak_jstr *s,
                      struct fields *fields, unsigned depth)
{
    size_t n = 0;
    int n_brackets = 0;
    for (; n < s->n && (n_brackets > 0 || (s->bytes[n] != ':' && s->bytes[n] != '!')); n++)
        n_brackets += s->bytes[n] == '[' ? 1 : s->bytes[n] == ']' && n_brackets > 0 ? -1 : 0;
    struct ak_jval name = ak_j_string(j, s->bytes, n);
    struct ak_jval value = evaluate_field(j, fields, name.as.string);
    struct ak_jout format = { 0 };
    if (n + 1 < s->n && s->bytes[n] == '!') {
        struct ak_jout text = { 0 };
        char conversion = s->bytes[n + 1];
        if (conversion == 's')
            ak_j_put_value(j, &text, value);
        else if (conversion == 'r' || conversion == 'a')
            ak_j_put_repr(j, &text, value);
        else
            ak_j_fail(j, "unknown conversion specifier %c", conversion);
        value = ak_j_finish(j, &text);
        n += 2;
    }
    if (n < s->n && s->bytes[n] != ':')
        ak_j_fail(j, "expected ':' after the conversion specifier");
    if (n < s->n)
        put_fields(j, &format, ak_j_substring(j, s, n + 1, s->n).as.string, fields, depth + 1);
    put_formatted(j, out, value, ak_j_finish(j, &format).as.string);
}

static void put_fields(struct ak_jenv *j, struct ak_jout *out, const struct ak_jstr *s,
                       struct fields *fields, unsigned depth)
{
    if (depth > 2)
        ak_j_fail(j, "format fields are nested too deeply (limit: 2)");
    for (size_t at = 0; at < s->n; at++) {
        char c = s->bytes[at];
        if (c != '{' && c != '}') {
            ak_j_put_bytes(j, out, &s->bytes[at], 1);
        } else if (at + 1 < s->n && s->bytes[at + 1] == c && depth == 0) {
            ak_j_put_bytes(j, out, &s->bytes[at++], 1);
        } else if (c == '}') {
            ak_j_fail(j, "single '}' in the format string; write '}}'");
        } else {
            size_t begin = at + 1;
            int n_braces = 1;
            for (at = begin; at < s->n && n_braces > 0; at++)
                n_braces += s->bytes[at] == '{' ? 1 : s->bytes[at] == '}' ? -1 : 0;
            if (n_braces > 0)
                ak_j_fail(j, "'{' in the format string is not closed");
            at--;
            put_field(j, out, ak_j_substring(j, s, begin, at).as.string, fields, depth);
        }
    }
}

struct ak_jval ak_j_format(struct ak_jenv *j, const struct ak_jstr *format,
                           const struct ak_jargs *args)
{
    struct ak_jout out = { 0 };
    struct fields fields = { .args = args };
    put_fields(j, &out, format, &fields, 0);
    return ak_j_finish(j, &out);
}

/* ---- Formatted values --------------------------------------------------- */
int64_t ak_j_read_width(struct ak_jenv *j, const struct ak_jstr *s, size_t *at, int64_t max)
{
    int64_t value = 0;
    for (; *at < s->n && s->bytes[*at] >= '0' && s->bytes[*at] <= '9'; (*at)++) {
        value = value * 10 + (s->bytes[*at] - '0');
        if (value > max)
            ak_j_fail_as(j, AKUNU_ERROR_UNSUPPORTED,
                         "format width or precision exceeds the limit of %lld", (long long)max);
    }
    return value;
}

static void put_fill(struct ak_jenv *j, struct ak_jout *out, uint32_t fill, int64_t n)
{
    for (; n > 0; n--)
        ak_j_put_char(j, out, fill ? fill : ' ');
}

/* `head`: sign and prefix of a number; '=' pads after it. */
static void put_aligned(struct ak_jenv *j, struct ak_jout *out, const char *head, const char *body,
                        size_t n_body, size_t n_chars, char align, const struct ak_jspec *spec)
{
    int64_t space = spec->width - (int64_t)(strlen(head) + n_chars);
    space = space > 0 ? space : 0;
    int64_t left = align == '>' ? space : align == '^' ? space / 2 : 0;
    put_fill(j, out, spec->fill, left);
    ak_j_put_text(j, out, head);
    put_fill(j, out, spec->fill, align == '=' ? space : 0);
    ak_j_put_bytes(j, out, body, n_body);
    put_fill(j, out, spec->fill, align == '=' ? 0 : space - left);
}

void ak_j_put_formatted_text(struct ak_jenv *j, struct ak_jout *out, const struct ak_jstr *text,
                             const struct ak_jspec *spec)
{
    size_t n = text->n, n_chars = text->n_chars;
    if (spec->precision >= 0 && (uint64_t)spec->precision < n_chars) {
        n_chars = (size_t)spec->precision;
        n = ak_j_byte_offset(j, text, n_chars);
    }
    put_aligned(j, out, "", text->bytes, n, n_chars, spec->align ? spec->align : '<', spec);
}

static void upper_case(char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (text[i] >= 'a' && text[i] <= 'z')
            text[i] = (char)(text[i] - 'a' + 'A');
}

/* Puts n digits with a separator between every `size` of them, counted from the right. */
static void put_grouped(struct ak_jenv *j, struct ak_jout *out, const char *digits, size_t n,
                        char separator, size_t size)
{
    for (size_t i = 0; i < n; i++) {
        if (separator && i > 0 && (n - i) % size == 0)
            ak_j_put_bytes(j, out, &separator, 1);
        ak_j_put_bytes(j, out, digits + i, 1);
    }
}

static void put_number(struct ak_jenv *j, struct ak_jout *out, bool negative, const char *prefix,
                       struct ak_jout *body, const struct ak_jspec *spec)
{
    char head[4];
    snprintf(head, sizeof head, "%s%s",
             negative          ? "-" :
             spec->sign == '+' ? "+" :
             spec->sign == ' ' ? " " :
                                 "",
             prefix);
    if (spec->upper) {
        upper_case(head, strlen(head));
        upper_case(body->bytes, body->n);
    }
    put_aligned(j, out, head, body->bytes, body->n, body->n, spec->align ? spec->align : '>', spec);
}

void ak_j_put_formatted_int(struct ak_jenv *j, struct ak_jout *out, int64_t value,
                            const struct ak_jspec *spec)
{
    unsigned base = spec->conversion == 'x' ? 16 :
                    spec->conversion == 'o' ? 8 :
                    spec->conversion == 'b' ? 2 :
                                              10;
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    char digits[AK_J_PRECISION_MAX + 64], *first = digits + sizeof digits;
    struct ak_jout body = { 0 };
    do
        *--first = "0123456789abcdef"[rest % base];
    while ((rest /= base) > 0);
    while (digits + sizeof digits - first < spec->precision)
        *--first = '0';
    put_grouped(j, &body, first, (size_t)(digits + sizeof digits - first), spec->grouping,
                base == 10 ? 3 : 4);
    const char *prefix = !spec->alternate || base == 10 ? "" :
                         base == 16                     ? "0x" :
                         base == 8                      ? "0o" :
                                                          "0b";
    put_number(j, out, value < 0, prefix, &body, spec);
}

static void put_digits(struct ak_jenv *j, struct ak_jout *out, double value,
                       const struct ak_jspec *spec)
{
    if (isnan(value) || isinf(value)) {
        ak_j_put_text(j, out, isnan(value) ? "nan" : "inf");
        ak_j_put_text(j, out, spec->conversion == '%' ? "%" : "");
        return;
    }
    char conversion = spec->conversion == 'n' ? 'g' :
                      spec->conversion == '%' ? 'f' :
                                                spec->conversion;
    int precision = spec->precision < 0 ? 6 : (int)spec->precision;
    if (!conversion && spec->precision < 0)
        ak_j_put_float(j, out, value);
    else
        ak_j_put_printf(j, out, conversion ? conversion : 'g',
                        conversion == 'g' && precision == 0 ? 1 : precision, spec->alternate,
                        spec->conversion == '%' ? value * 100 : value);
    if (spec->conversion == '%')
        ak_j_put_text(j, out, "%");
}

void ak_j_put_formatted_float(struct ak_jenv *j, struct ak_jout *out, double value,
                              const struct ak_jspec *spec)
{
    struct ak_jout digits = { 0 }, body = { 0 };
    put_digits(j, &digits, fabs(value), spec);
    size_t n_integer_digits = 0;
    while (n_integer_digits < digits.n && digits.bytes[n_integer_digits] >= '0' &&
           digits.bytes[n_integer_digits] <= '9')
        n_integer_digits++;
    put_grouped(j, &body, digits.bytes, n_integer_digits, spec->grouping, 3);
    ak_j_put_bytes(j, &body, digits.bytes + n_integer_digits, digits.n - n_integer_digits);
    put_number(j, out, signbit(value) && !isnan(value), "", &body, spec);
}
