/* One value, laid out as a format asks. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "template/jinja/format.h"

int64_t ak_j_read_width(struct ak_jenv *j, const struct ak_jstr *s, size_t *at, int64_t max)
{
    int64_t value = 0;
    for (; *at < s->n && s->bytes[*at] >= '0' && s->bytes[*at] <= '9'; (*at)++) {
        value = value * 10 + (s->bytes[*at] - '0');
        if (value > max)
            ak_j_fail_as(j, AKUNU_ERROR_UNSUPPORTED,
                         "a format asks for more than %lld characters, the limit", (long long)max);
    }
    return value;
}

static void put_fill(struct ak_jenv *j, struct ak_jout *out, uint32_t fill, int64_t n)
{
    for (; n > 0; n--)
        ak_j_put_char(j, out, fill ? fill : ' ');
}

/* `head` is a number's sign and prefix, behind which '=' fills. */
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

/* Separators between every `size` digits of the n that `digits` begins with. */
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
    size_t whole = 0;
    while (whole < digits.n && digits.bytes[whole] >= '0' && digits.bytes[whole] <= '9')
        whole++;
    put_grouped(j, &body, digits.bytes, whole, spec->grouping, 3);
    ak_j_put_bytes(j, &body, digits.bytes + whole, digits.n - whole);
    put_number(j, out, signbit(value) && !isnan(value), "", &body, spec);
}
