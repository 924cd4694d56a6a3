/* Conversions between numbers and text, as in Python and independent of the locale. */
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/template/jinja/string.h"

/* The decimal point that C's conversions write; templates know only ".". */
static const char *point(void)
{
    return localeconv()->decimal_point;
}

static void put_with_point(struct ak_jenv *j, struct ak_jout *out, const char *text)
{
    const char *found = strstr(text, point());
    if (!found) {
        ak_j_put_text(j, out, text);
        return;
    }
    ak_j_put_bytes(j, out, text, (size_t)(found - text));
    ak_j_put_text(j, out, ".");
    ak_j_put_text(j, out, found + strlen(point()));
}

void ak_j_put_printf(struct ak_jenv *j, struct ak_jout *out, char conversion, int precision,
                     bool alternate, double x)
{
    char format[] = { '%', '#', '.', '*', conversion, '\0' };
    if (!alternate)
        memmove(format + 1, format + 2, sizeof format - 2);
    int n = snprintf(NULL, 0, format, precision, x);
    char *text = ak_j_alloc(j, (size_t)n + 1, 1);
    snprintf(text, (size_t)n + 1, format, precision, x);
    put_with_point(j, out, text);
}

void ak_j_put_int(struct ak_jenv *j, struct ak_jout *out, int64_t i)
{
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)i);
    ak_j_put_text(j, out, text);
}

/* ---- The shortest decimal that reads back as x -------------------------- */
struct decimal {
    char digits[20];
    int n, exponent; /* 0.d₁d₂… × 10^exponent */
};

static struct decimal shortest(double x)
{
    char text[40] = "";
    struct decimal d = { .n = 0 };
    for (int precision = 0; precision < 17; precision++) {
        snprintf(text, sizeof text, "%.*e", precision, x);
        if (strtod(text, NULL) == x)
            break;
    }
    const char *e = strchr(text, 'e');
    for (const char *c = text; c < e; c++)
        if (*c >= '0' && *c <= '9')
            d.digits[d.n++] = *c;
    d.exponent = atoi(e + 1) + 1;
    return d;
}

static void put_fixed(struct ak_jenv *j, struct ak_jout *out, const struct decimal *d)
{
    if (d->exponent <= 0)
        ak_j_put_text(j, out, "0.");
    for (int i = d->exponent; i < 0; i++)
        ak_j_put_text(j, out, "0");
    for (int i = 0; i < d->n || i < d->exponent; i++) {
        if (i == d->exponent && i > 0)
            ak_j_put_text(j, out, ".");
        ak_j_put_bytes(j, out, i < d->n ? &d->digits[i] : "0", 1);
    }
    if (d->exponent >= d->n)
        ak_j_put_text(j, out, ".0");
}

static void put_exponent(struct ak_jenv *j, struct ak_jout *out, const struct decimal *d)
{
    char text[16];
    ak_j_put_bytes(j, out, d->digits, 1);
    if (d->n > 1) {
        ak_j_put_text(j, out, ".");
        ak_j_put_bytes(j, out, d->digits + 1, (size_t)d->n - 1);
    }
    snprintf(text, sizeof text, "e%c%02d", d->exponent > 0 ? '+' : '-', abs(d->exponent - 1));
    ak_j_put_text(j, out, text);
}

void ak_j_put_float(struct ak_jenv *j, struct ak_jout *out, double x)
{
    ak_j_spend(j, 8);
    if (isnan(x)) {
        ak_j_put_text(j, out, "nan");
        return;
    }
    if (signbit(x))
        ak_j_put_text(j, out, "-");
    if (isinf(x)) {
        ak_j_put_text(j, out, "inf");
        return;
    }
    struct decimal d = shortest(fabs(x));
    if (d.exponent > -4 && d.exponent <= 16)
        put_fixed(j, out, &d);
    else
        put_exponent(j, out, &d);
}

/* ---- Reading ------------------------------------------------------------ */
static void trim(const char **text, size_t *n)
{
    while (*n > 0 && ak_j_is_whitespace((unsigned char)(*text)[0]))
        (*text)++, (*n)--;
    while (*n > 0 && ak_j_is_whitespace((unsigned char)(*text)[*n - 1]))
        (*n)--;
}

/* Number of characters that are digits with single underscores between them. */
static size_t digits_at(const char *text, size_t n)
{
    size_t i = 0;
    while (i < n &&
           ((text[i] >= '0' && text[i] <= '9') || (text[i] == '_' && i > 0 && text[i - 1] != '_')))
        i++;
    return i > 0 && text[i - 1] == '_' ? 0 : i;
}

static bool is_word(const char *text, size_t n, const char *word)
{
    for (size_t i = 0; i < n; i++)
        if (!word[i] || (text[i] | 0x20) != word[i])
            return false;
    return word[n] == '\0';
}

static bool parse_special(const char *text, size_t n, double sign, double *out)
{
    if (is_word(text, n, "inf") || is_word(text, n, "infinity"))
        *out = sign * INFINITY;
    else if (is_word(text, n, "nan"))
        *out = NAN;
    else
        return false;
    return true;
}

static bool is_decimal(const char *text, size_t n)
{
    size_t whole = digits_at(text, n), at = whole, part = 0;
    if (at < n && text[at] == '.') {
        part = digits_at(text + at + 1, n - at - 1);
        at += 1 + part;
    }
    if (whole + part == 0)
        return false;
    if (at < n && (text[at] | 0x20) == 'e') {
        at++;
        at += at < n && (text[at] == '+' || text[at] == '-');
        size_t exponent = digits_at(text + at, n - at);
        at += exponent;
        if (exponent == 0)
            return false;
    }
    return at == n;
}

bool ak_j_parse_float(const char *text, size_t n, double *out)
{
    char copy[512], *end = copy;
    trim(&text, &n);
    double sign = n > 0 && text[0] == '-' ? -1 : 1;
    if (n > 0 && (text[0] == '-' || text[0] == '+'))
        text++, n--;
    if (parse_special(text, n, sign, out))
        return true;
    if (n + 8 > sizeof copy || !is_decimal(text, n))
        return false;
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '.')
            end += snprintf(end, 8, "%s", point());
        else if (text[i] != '_')
            *end++ = text[i];
    }
    *end = '\0';
    *out = sign * strtod(copy, NULL);
    return true;
}

static unsigned digit_of(char c)
{
    return c >= '0' && c <= '9'                   ? (unsigned)(c - '0') :
           (c | 0x20) >= 'a' && (c | 0x20) <= 'z' ? (unsigned)((c | 0x20) - 'a') + 10 :
                                                    99;
}

static unsigned prefix_base(const char *text, size_t n)
{
    if (n < 2 || text[0] != '0')
        return 0;
    char c = text[1] | 0x20;
    return c == 'x' ? 16 : c == 'o' ? 8 : c == 'b' ? 2 : 0;
}

bool ak_j_parse_int(const char *text, size_t n, unsigned base, int64_t *out)
{
    uint64_t value = 0;
    trim(&text, &n);
    bool negative = n > 0 && text[0] == '-';
    if (n > 0 && (text[0] == '-' || text[0] == '+'))
        text++, n--;
    unsigned prefix = prefix_base(text, n);
    if (prefix && (base == 0 || base == prefix)) {
        text += 2, n -= 2;
        base = prefix;
        if (n > 0 && text[0] == '_')
            text++, n--;
    }
    base = base ? base : 10;
    if (n == 0 || text[0] == '_' || text[n - 1] == '_')
        return false;
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '_' && text[i - 1] != '_')
            continue;
        unsigned digit = digit_of(text[i]);
        if (digit >= base || __builtin_mul_overflow(value, base, &value) ||
            __builtin_add_overflow(value, digit, &value))
            return false;
    }
    if (value > (uint64_t)INT64_MAX + negative)
        return false;
    *out = negative ? (int64_t)(0 - value) : (int64_t)value;
    return true;
}
