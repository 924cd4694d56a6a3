/* Strings of a template: jinja2 reads them by Python's "unicode-escape", after it has written
 * each character beyond ASCII as such an escape. */
#include <string.h>

#include "template/jinja/string.h"
#include "template/jinja/token.h"

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

/* A backslash before a character beyond ASCII meets the backslash of that one's escape. */
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

/* *at is behind the backslash. */
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
