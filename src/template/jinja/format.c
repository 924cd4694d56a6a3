/* "{}".format(values): fields with attributes, conversions, and formats with fields of their own.
 */
#include <string.h>

#include "template/jinja/format.h"

struct fields {
    const struct ak_jargs *args;
    size_t next; /* of those without a name */
    bool counted, numbered;
};

static void put_fields(struct ak_jenv *j, struct ak_jout *out, const struct ak_jstr *s,
                       struct fields *fields, unsigned depth);

static struct ak_jval numbered_value(struct ak_jenv *j, struct fields *fields, int64_t number)
{
    if (fields->counted && fields->numbered)
        ak_j_fail(j, "a format cannot have both fields with numbers and fields without");
    if (number < 0 || (uint64_t)number >= fields->args->n)
        ak_j_fail(j, "replacement index %lld is out of range for %zu arguments", (long long)number,
                  fields->args->n);
    return fields->args->values[number];
}

static struct ak_jval first_value(struct ak_jenv *j, struct fields *fields, struct ak_jval name)
{
    const struct ak_jstr *s = name.as.string;
    int64_t number;
    if (s->n == 0) {
        fields->counted = true;
        return numbered_value(j, fields, (int64_t)fields->next++);
    }
    if (s->bytes[0] >= '0' && s->bytes[0] <= '9' && ak_j_parse_int(s->bytes, s->n, 10, &number)) {
        fields->numbered = true;
        return numbered_value(j, fields, number);
    }
    for (size_t i = 0; i < fields->args->n_named; i++)
        if (ak_j_strings_equal(fields->args->named[i].key.as.string, s))
            return fields->args->named[i].value;
    ak_j_fail(j, "the format names %s, which is not given", ak_j_show(j, name));
}

/* "name.attribute[index]" */
static struct ak_jval field_value(struct ak_jenv *j, struct fields *fields, const struct ak_jstr *s)
{
    size_t at = strcspn(s->bytes, ".[");
    struct ak_jval value = first_value(j, fields, ak_j_substring(j, s, 0, at));
    while (at < s->n) {
        bool is_item = s->bytes[at++] == '[';
        size_t n = strcspn(s->bytes + at, is_item ? "]" : ".[");
        struct ak_jval name = ak_j_substring(j, s, at, at + n);
        int64_t index;
        at += n + is_item;
        if (n == 0 || at > s->n)
            ak_j_fail(j, "a field of the format has an empty attribute");
        if (is_item && ak_j_parse_int(name.as.string->bytes, n, 10, &index))
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

static bool skip(const struct ak_jstr *s, size_t *at, char c)
{
    bool found = *at < s->n && s->bytes[*at] == c;
    *at += found;
    return found;
}

static struct ak_jspec read_spec(struct ak_jenv *j, const struct ak_jstr *s)
{
    struct ak_jspec spec = { .precision = -1 };
    size_t at = 0;
    read_fill(s, &at, &spec);
    if (at < s->n && strchr("+- ", s->bytes[at]) && s->bytes[at])
        spec.sign = s->bytes[at++];
    spec.alternate = skip(s, &at, '#');
    if (skip(s, &at, '0') && !spec.align) {
        spec.fill = '0';
        spec.align = '=';
    }
    spec.width = ak_j_read_width(j, s, &at, AK_J_WIDTH_MAX);
    if (at < s->n && (s->bytes[at] == ',' || s->bytes[at] == '_'))
        spec.grouping = s->bytes[at++];
    if (skip(s, &at, '.'))
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

static void put_formatted(struct ak_jenv *j, struct ak_jout *out, struct ak_jval v,
                          const struct ak_jstr *format)
{
    struct ak_jspec spec = read_spec(j, format);
    bool is_int = v.kind == AK_J_INT || (v.kind == AK_J_BOOL && format->n > 0);
    if (is_int && (!spec.conversion || strchr("dxobn", spec.conversion)))
        ak_j_put_formatted_int(j, out, ak_j_need_int(j, v, "a field"), &spec);
    else if ((is_int || v.kind == AK_J_FLOAT) &&
             (!spec.conversion || strchr("feg%n", spec.conversion)))
        ak_j_put_formatted_float(
            j, out, v.kind == AK_J_FLOAT ? v.as.number : (double)ak_j_need_int(j, v, "a field"),
            &spec);
    else if (v.kind == AK_J_STRING && (!spec.conversion || spec.conversion == 's'))
        ak_j_put_formatted_text(j, out, v.as.string, &spec);
    else if (format->n == 0)
        ak_j_put_value(j, out, v);
    else
        ak_j_fail(j, "unsupported format for an object of type '%s'", ak_j_type_name(v));
}

/* What stands between the braces: "name!conversion:format". */
static void put_field(struct ak_jenv *j, struct ak_jout *out, const struct ak_jstr *s,
                      struct fields *fields, unsigned depth)
{
    size_t n = 0;
    int open = 0;
    for (; n < s->n && (open > 0 || (s->bytes[n] != ':' && s->bytes[n] != '!')); n++)
        open += s->bytes[n] == '[' ? 1 : s->bytes[n] == ']' && open > 0 ? -1 : 0;
    struct ak_jval name = ak_j_string(j, s->bytes, n);
    struct ak_jval value = field_value(j, fields, name.as.string);
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
        ak_j_fail(j, "':' is expected after the conversion specifier");
    if (n < s->n)
        put_fields(j, &format, ak_j_substring(j, s, n + 1, s->n).as.string, fields, depth + 1);
    put_formatted(j, out, value, ak_j_finish(j, &format).as.string);
}

static void put_fields(struct ak_jenv *j, struct ak_jout *out, const struct ak_jstr *s,
                       struct fields *fields, unsigned depth)
{
    if (depth > 2)
        ak_j_fail(j, "the fields of a format nest too deep");
    for (size_t at = 0; at < s->n; at++) {
        char c = s->bytes[at];
        if (c != '{' && c != '}') {
            ak_j_put_bytes(j, out, &s->bytes[at], 1);
        } else if (at + 1 < s->n && s->bytes[at + 1] == c && (depth == 0)) {
            ak_j_put_bytes(j, out, &s->bytes[at++], 1);
        } else if (c == '}') {
            ak_j_fail(j, "a single '}' stands in the format");
        } else {
            size_t begin = at + 1;
            int open = 1;
            for (at = begin; at < s->n && open > 0; at++)
                open += s->bytes[at] == '{' ? 1 : s->bytes[at] == '}' ? -1 : 0;
            if (open > 0)
                ak_j_fail(j, "a '{' of the format is not closed");
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
