/* Strings: construction, characters, search, stripping, buffers, and the escapes of literals. */
#include <string.h>

#include "base/unicode.h"
#include "base/utf8.h"
#include "text/template/jinja/parser.h"
#include "text/template/jinja/string.h"

/* Spare bytes after a concatenated string. A string that grows piece by piece appends there instead
 * of being copied, provided that it ends where the used bytes end. */
struct ak_jspare {
    char *bytes;
    size_t used, capacity;
};

enum { SPARE_BYTES_MIN = 256, STEP_BYTES = 16 };

size_t ak_j_count_chars(const char *bytes, size_t n)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += ((unsigned char)bytes[i] & 0xC0) != 0x80;
    return count;
}

static struct ak_jval make_string(struct ak_jenv *j, const char *bytes, size_t n, size_t n_chars)
{
    struct ak_jstr *s = ak_j_alloc(j, 1, sizeof *s);
    s->bytes = bytes;
    s->n = n;
    s->n_chars = n_chars;
    return (struct ak_jval){ .kind = AK_J_STRING, .as.string = s };
}

struct ak_jval ak_j_string_at(struct ak_jenv *j, const char *bytes, size_t n)
{
    ak_j_spend(j, n / STEP_BYTES);
    return make_string(j, bytes, n, ak_j_count_chars(bytes, n));
}

struct ak_jval ak_j_string(struct ak_jenv *j, const char *bytes, size_t n)
{
    char *copy = ak_j_alloc(j, n + 1, 1);
    if (n)
        memcpy(copy, bytes, n);
    return ak_j_string_at(j, copy, n);
}

struct ak_jval ak_j_text(struct ak_jenv *j, const char *terminated)
{
    return ak_j_string(j, terminated, strlen(terminated));
}

struct ak_jval ak_j_concat(struct ak_jenv *j, const struct ak_jstr *a, const struct ak_jstr *b)
{
    struct ak_jspare *spare = a->spare;
    ak_j_spend(j, b->n / STEP_BYTES);
    bool fits = spare && a->bytes + a->n == spare->bytes + spare->used &&
                spare->capacity - spare->used >= b->n;
    if (!fits) {
        ak_j_spend(j, a->n / STEP_BYTES);
        size_t n = a->n + b->n;
        spare = ak_j_alloc(j, 1, sizeof *spare);
        spare->capacity = n < SPARE_BYTES_MIN ? n : 2 * n;
        spare->bytes = ak_j_alloc(j, spare->capacity, 1);
        if (a->n)
            memcpy(spare->bytes, a->bytes, a->n);
        spare->used = a->n;
    }
    if (b->n)
        memcpy(spare->bytes + spare->used, b->bytes, b->n);
    struct ak_jval v =
        make_string(j, fits ? a->bytes : spare->bytes, a->n + b->n, a->n_chars + b->n_chars);
    spare->used += b->n;
    v.as.string->spare = spare;
    return v;
}

size_t ak_j_byte_offset(struct ak_jenv *j, const struct ak_jstr *s, size_t i)
{
    if (ak_j_is_ascii(s) || i == 0)
        return i;
    if (i >= s->n_chars)
        return s->n;
    ak_j_spend(j, i / STEP_BYTES);
    size_t at = 0;
    while (i > 0)
        i -= ((unsigned char)s->bytes[++at] & 0xC0) != 0x80;
    return at;
}

uint32_t ak_j_char_at(const struct ak_jstr *s, size_t at, size_t *next)
{
    struct ak_utf8 c = ak_utf8_next(s->bytes + at, s->n - at);
    *next = at + c.bytes;
    return c.valid ? c.code : 0xFFFD;
}

struct ak_jval ak_j_substring(struct ak_jenv *j, const struct ak_jstr *s, size_t begin, size_t end)
{
    if (end < begin)
        end = begin;
    if (ak_j_is_ascii(s))
        return make_string(j, s->bytes + begin, end - begin, end - begin);
    return ak_j_string_at(j, s->bytes + begin, end - begin);
}

bool ak_j_string_is(struct ak_jval v, const char *text)
{
    size_t n = strlen(text);
    return v.kind == AK_J_STRING && v.as.string->n == n && memcmp(v.as.string->bytes, text, n) == 0;
}

bool ak_j_strings_equal(const struct ak_jstr *a, const struct ak_jstr *b)
{
    return a == b || (a->n == b->n && (a->n == 0 || memcmp(a->bytes, b->bytes, a->n) == 0));
}

/* UTF-8 bytes sort like characters. */
int ak_j_strings_order(const struct ak_jstr *a, const struct ak_jstr *b)
{
    size_t n = a->n < b->n ? a->n : b->n;
    int order = n ? memcmp(a->bytes, b->bytes, n) : 0;
    if (order != 0)
        return order < 0 ? -1 : 1;
    return a->n < b->n ? -1 : a->n > b->n;
}

size_t ak_j_find(const struct ak_jstr *s, const struct ak_jstr *part, size_t from)
{
    if (from > s->n)
        return SIZE_MAX;
    if (part->n == 0)
        return from;
    const char *found = memmem(s->bytes + from, s->n - from, part->bytes, part->n);
    return found ? (size_t)(found - s->bytes) : SIZE_MAX;
}

size_t ak_j_find_last(const struct ak_jstr *s, const struct ak_jstr *part, size_t end)
{
    if (part->n > end)
        return SIZE_MAX;
    for (size_t at = end - part->n + 1; at-- > 0;)
        if (part->n == 0 ||
            (s->bytes[at] == part->bytes[0] && memcmp(s->bytes + at, part->bytes, part->n) == 0))
            return at;
    return SIZE_MAX;
}

bool ak_j_is_whitespace(uint32_t c)
{
    return ak_is_whitespace(c) || (c >= 0x1C && c <= 0x1F);
}

static bool is_among(const struct ak_jstr *chars, uint32_t c)
{
    if (!chars)
        return ak_j_is_whitespace(c);
    for (size_t at = 0; at < chars->n;)
        if (ak_j_char_at(chars, at, &at) == c)
            return true;
    return false;
}

static size_t find_previous(const struct ak_jstr *s, size_t at)
{
    do
        at--;
    while (at > 0 && ((unsigned char)s->bytes[at] & 0xC0) == 0x80);
    return at;
}

void ak_j_strip_range(const struct ak_jstr *s, const struct ak_jstr *chars, bool left, bool right,
                      size_t *begin, size_t *end)
{
    size_t next;
    *begin = 0;
    *end = s->n;
    while (left && *begin < *end && is_among(chars, ak_j_char_at(s, *begin, &next)))
        *begin = next;
    while (right && *end > *begin &&
           is_among(chars, ak_j_char_at(s, find_previous(s, *end), &next)))
        *end = find_previous(s, *end);
}

/* ---- Text that grows ---------------------------------------------------- */
void ak_j_put_bytes(struct ak_jenv *j, struct ak_jout *out, const char *bytes, size_t n)
{
    ak_j_spend(j, n / STEP_BYTES);
    if (n > AK_JINJA_OUTPUT_BYTES_MAX - out->n)
        ak_j_fail_as(j, AKUNU_ERROR_UNSUPPORTED,
                     "the template makes a text of more than %d MiB, the limit",
                     AK_JINJA_OUTPUT_BYTES_MAX >> 20);
    if (n > out->capacity - out->n) {
        size_t capacity = 2 * (out->n + n) < 64 ? 64 : 2 * (out->n + n);
        out->bytes = ak_j_grow(j, out->bytes, out->capacity, capacity, 1);
        out->capacity = capacity;
    }
    if (n)
        memcpy(out->bytes + out->n, bytes, n);
    out->n += n;
}

void ak_j_put_text(struct ak_jenv *j, struct ak_jout *out, const char *terminated)
{
    ak_j_put_bytes(j, out, terminated, strlen(terminated));
}

void ak_j_put_char(struct ak_jenv *j, struct ak_jout *out, uint32_t c)
{
    char bytes[4];
    ak_j_put_bytes(j, out, bytes, ak_utf8_encode(c, bytes));
}

void ak_j_put_str(struct ak_jenv *j, struct ak_jout *out, const struct ak_jstr *s)
{
    ak_j_put_bytes(j, out, s->bytes, s->n);
}

void ak_j_put_repeated(struct ak_jenv *j, struct ak_jout *out, const struct ak_jstr *s,
                       uint64_t times)
{
    if (s->n == 0)
        return;
    for (; times > 0; times--) {
        ak_j_spend(j, 1);
        ak_j_put_str(j, out, s);
    }
}

struct ak_jval ak_j_finish(struct ak_jenv *j, const struct ak_jout *out)
{
    return ak_j_string_at(j, out->n ? out->bytes : "", out->n);
}

/* ---- Escapes of literals ------------------------------------------------ */
static const char simple[] = "\\'\"abfnrtv", meaning[] = "\\'\"\a\b\f\n\r\t\v";

static uint32_t read_hex(struct ak_jenv *j, const char *text, size_t n, size_t *at, size_t digits)
{
    uint32_t code = 0;
    size_t end = *at + digits;
    for (; *at < end; (*at)++) {
        char c = *at < n ? text[*at] : ' ';
        bool letter = (c | 0x20) >= 'a' && (c | 0x20) <= 'f';
        if (!letter && (c < '0' || c > '9'))
            ak_j_fail_as(j, AKUNU_ERROR_FORMAT,
                         "a string has an escape with fewer than %zu hexadecimal digits", digits);
        code = code * 16 + (uint32_t)(letter ? (c | 0x20) - 'a' + 10 : c - '0');
    }
    return code;
}

static void put_code(struct ak_jenv *j, struct ak_jout *out, uint32_t code)
{
    if (code > 0x10FFFF)
        ak_j_fail_as(j, AKUNU_ERROR_FORMAT,
                     "a string has the escape of U+%X, which is beyond Unicode", code);
    ak_j_put_char(j, out, code >= 0xD800 && code < 0xE000 ? 0xFFFD : code);
}

static void put_octal(struct ak_jenv *j, struct ak_jout *out, const char *text, size_t n,
                      size_t *at)
{
    uint32_t code = 0;
    for (size_t end = *at + 3; *at < n && *at < end && text[*at] >= '0' && text[*at] <= '7';
         (*at)++)
        code = code * 8 + (uint32_t)(text[*at] - '0');
    put_code(j, out, code);
}

/* jinja2 decodes literals by "unicode-escape" after writing characters beyond ASCII as escapes. So
 * a backslash before such a character escapes the backslash of that escape. */
static void put_escape_of(struct ak_jenv *j, struct ak_jout *out, const char *text, size_t n,
                          size_t *at)
{
    static const char hex[] = "0123456789abcdef";
    struct ak_jstr rest = { .bytes = text, .n = n };
    uint32_t c = ak_j_char_at(&rest, *at, at);
    ak_j_put_text(j, out, c < 0x100 ? "\\x" : c < 0x10000 ? "\\u" : "\\U");
    for (int shift = c < 0x100 ? 4 : c < 0x10000 ? 12 : 28; shift >= 0; shift -= 4)
        ak_j_put_bytes(j, out, &hex[(c >> shift) & 15], 1);
}

/* Decodes one escape; *at is after the backslash. */
static void put_escape(struct ak_jenv *j, struct ak_jout *out, const char *text, size_t n,
                       size_t *at)
{
    char c = text[*at];
    const char *found = c ? strchr(simple, c) : NULL;
    if (found) {
        ak_j_put_bytes(j, out, &meaning[found - simple], 1);
        (*at)++;
    } else if (c == '\n') {
        (*at)++;
    } else if (c >= '0' && c <= '7') {
        put_octal(j, out, text, n, at);
    } else if (c == 'x' || c == 'u' || c == 'U') {
        (*at)++;
        put_code(j, out, read_hex(j, text, n, at, c == 'x' ? 2 : c == 'u' ? 4 : 8));
    } else if (c == 'N') {
        ak_j_fail_as(j, AKUNU_ERROR_UNSUPPORTED,
                     "a string has an escape \\N, which is not supported");
    } else if ((unsigned char)c >= 0x80) {
        put_escape_of(j, out, text, n, at);
    } else {
        ak_j_put_text(j, out, "\\");
    }
}

struct ak_jval ak_j_unescape(struct ak_jenv *j, const char *text, size_t n)
{
    struct ak_jout out = { 0 };
    for (size_t at = 0; at < n;) {
        const char *backslash = memchr(text + at, '\\', n - at);
        size_t plain = backslash ? (size_t)(backslash - text) - at : n - at;
        ak_j_put_bytes(j, &out, text + at, plain);
        at += plain;
        if (at < n && ++at < n)
            put_escape(j, &out, text, n, &at);
    }
    return ak_j_finish(j, &out);
}
