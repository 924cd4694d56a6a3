/* Marks of wide numbers. The name of the member is U+FFFF, which is no character: no program uses
 * it as a name. A text that does so anyway has a number there, since only numbers are taken. */
#include "base/json/wide.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MEMBER "\xef\xbf\xbf"

static const char *const words[] = { "NaN", "Infinity", "-Infinity" };

size_t ak_wide_skip_mark(const char *text, size_t n)
{
    return n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}

/* ---- Numbers of a text -------------------------------------------------- */
struct number {
    size_t n;        /* bytes */
    bool is_integer; /* neither a point nor an exponent */
    long magnitude;  /* the value is below 10^magnitude; of 0, nothing to rely on */
};

static size_t count_digits(const char *text, size_t n)
{
    size_t i = 0;
    while (i < n && text[i] >= '0' && text[i] <= '9')
        i++;
    return i;
}

/* An exponent, which saturates. */
static long read_exponent(const char *text, size_t n, bool negative)
{
    enum { EXPONENT_MAX = 1 << 29 };
    long value = 0;
    for (size_t i = 0; i < n && value < EXPONENT_MAX; i++)
        value = value * 10 + (text[i] - '0');
    return negative ? -value : value;
}

/* A number of JSON at the start of the text; false: there is none. */
static bool read_json_number(const char *text, size_t n, struct number *out)
{
    size_t at = n > 0 && text[0] == '-', whole = count_digits(text + at, n - at), leading = 0;
    if (whole == 0 || (whole > 1 && text[at] == '0'))
        return false;
    *out = (struct number){ .is_integer = true, .magnitude = (long)whole };
    if (text[at] == '0')
        out->magnitude = 0;
    at += whole;
    if (at < n && text[at] == '.') {
        size_t part = count_digits(text + at + 1, n - at - 1);
        if (part == 0)
            return false;
        while (leading < part && text[at + 1 + leading] == '0')
            leading++;
        if (out->magnitude == 0)
            out->magnitude = -(long)leading;
        out->is_integer = false;
        at += 1 + part;
    }
    if (at < n && (text[at] == 'e' || text[at] == 'E')) {
        size_t sign = at + 1 < n && (text[at + 1] == '-' || text[at + 1] == '+');
        size_t digits = count_digits(text + at + 1 + sign, n - at - 1 - sign);
        if (digits == 0)
            return false;
        out->magnitude += read_exponent(text + at + 1 + sign, digits, text[at + 1] == '-');
        out->is_integer = false;
        at += 1 + sign + digits;
    }
    out->n = at;
    return true;
}

/* Is the integer beyond 64 bits? */
static bool is_long(const char *text, const struct number *number)
{
    enum { SHORT = 18, LONG = 19 }; /* digits that always fit, and those that may */
    char copy[LONG + 2];
    if (number->magnitude <= SHORT)
        return false;
    if (number->magnitude > LONG)
        return true;
    memcpy(copy, text, number->n);
    copy[number->n] = '\0';
    errno = 0;
    (void)strtoll(copy, NULL, 10);
    return errno == ERANGE;
}

/* Does the number exceed every double? Compares the first digits with those of the largest. */
static bool is_huge(const char *text, const struct number *number)
{
    enum { MAGNITUDE_MAX = 309, DIGITS = 17 };
    static const char largest[] = "17976931348623157"; /* DBL_MAX is 1.7976931348623157e308 */
    char digits[DIGITS + 1] = "00000000000000000";
    size_t n = 0;
    if (number->magnitude < MAGNITUDE_MAX)
        return false;
    for (size_t i = 0; i < number->n && text[i] != 'e' && text[i] != 'E' && n < DIGITS; i++)
        if (text[i] >= '0' && text[i] <= '9' && (n > 0 || text[i] != '0'))
            digits[n++] = text[i];
    return n > 0 && (number->magnitude > MAGNITUDE_MAX || strcmp(digits, largest) > 0);
}

/* ---- Marking ------------------------------------------------------------ */
static size_t put(char *out, size_t at, const char *text, size_t n)
{
    if (out)
        memcpy(out + at, text, n);
    return at + n;
}

/* How a token outside strings is written. */
enum { AS_IT_IS, AS_REAL, AS_WIDE };

static int classify(const char *text, size_t n, unsigned flags, size_t *length)
{
    struct number number;
    for (size_t i = 0; (flags & AK_WIDE_PYTHON) && i < sizeof words / sizeof *words; i++) {
        *length = strlen(words[i]);
        if (*length <= n && memcmp(text, words[i], *length) == 0)
            return AS_WIDE;
    }
    if (!read_json_number(text, n, &number)) { /* not JSON: its digits are no number of their own */
        for (*length = 1; *length < n && strchr("0123456789+-.eE", text[*length]);)
            ++*length;
        return AS_IT_IS;
    }
    *length = number.n;
    if (is_huge(text, &number))
        return AS_WIDE;
    if (!number.is_integer || !is_long(text, &number))
        return AS_IT_IS;
    return flags & AK_WIDE_DIGITS ? AS_WIDE : AS_REAL;
}

/* The end of the string that begins at `at`, after its quote. */
static size_t skip_string(const char *text, size_t n, size_t at)
{
    for (at++; at < n && text[at] != '"'; at++)
        at += text[at] == '\\';
    return at < n ? at + 1 : n;
}

size_t ak_wide_mark(const char *text, size_t n, unsigned flags, char *out)
{
    size_t n_out = 0, kept = 0; /* text[kept … at) is still to be copied */
    for (size_t at = 0, length; at < n; at += length) {
        char c = text[at];
        length = 1;
        if (c == '"')
            length = skip_string(text, n, at) - at;
        if (c != '-' && (c < '0' || c > '9') && c != 'N' && c != 'I')
            continue;
        int form = classify(text + at, n - at, flags, &length);
        if (form == AS_IT_IS)
            continue;
        n_out = put(out, n_out, text + kept, at - kept);
        kept = at + length;
        if (form == AS_WIDE)
            n_out = put(out, n_out, "{\"" MEMBER "\":\"", 8);
        n_out = put(out, n_out, text + at, length);
        n_out = form == AS_WIDE ? put(out, n_out, "\"}", 2) : put(out, n_out, ".0", 2);
    }
    return n > kept ? put(out, n_out, text + kept, n - kept) : n_out;
}

/* ---- Marked values ------------------------------------------------------ */
static bool is_wide(const char *text, size_t n)
{
    size_t length;
    return classify(text, n, AK_WIDE_DIGITS | AK_WIDE_PYTHON, &length) == AS_WIDE && length == n;
}

const char *ak_wide_text(const json_t *value)
{
    const json_t *member = json_object_size(value) == 1 ? json_object_get(value, MEMBER) : NULL;
    return json_is_string(member) &&
                   is_wide(json_string_value(member), json_string_length(member)) ?
               json_string_value(member) :
               NULL;
}

bool ak_wide_is_integer(const char *text)
{
    struct number number;
    return read_json_number(text, strlen(text), &number) && number.is_integer;
}

double ak_wide_double(const char *text)
{
    struct number number;
    if (strcmp(text, "NaN") == 0)
        return NAN;
    if (read_json_number(text, strlen(text), &number) && !is_huge(text, &number))
        return strtod(text, NULL); /* an integer: it has no decimal point */
    return *text == '-' ? -INFINITY : INFINITY;
}

/* The number marked at the start of the text, which is `n` bytes of it; *end: what follows. NULL:
 * none is. */
static const char *find_marked(const char *text, size_t *n, const char **end)
{
    static const char space[] = " \t\r\n", member[] = "\"" MEMBER "\":";
    if (*text++ != '{')
        return NULL;
    text += strspn(text, space);
    if (strncmp(text, member, sizeof member - 1) != 0)
        return NULL;
    text += sizeof member - 1;
    text += strspn(text, space);
    if (*text++ != '"')
        return NULL;
    *n = strcspn(text, "\"");
    if (!text[*n] || !is_wide(text, *n))
        return NULL;
    *end = text + *n + 1;
    *end += strspn(*end, space);
    return *(*end)++ == '}' ? text : NULL;
}

void ak_wide_unmark(char *text)
{
    char *out = text;
    const char *at = text, *end = text + strlen(text);
    while (at < end) {
        const char *from = at, *next = at + 1;
        size_t n = 1;
        if (*at == '"')
            next = at + (n = skip_string(at, (size_t)(end - at), 0));
        else if (*at == '{' && !(from = find_marked(at, &n, &next)))
            from = at, n = 1, next = at + 1;
        memmove(out, from, n);
        out += n;
        at = next;
    }
    *out = '\0';
}
