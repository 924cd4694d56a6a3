/* UTF-8 decoding by table 3-7 of The Unicode Standard, and escaped text for messages. */
#include "base/utf8.h"

#include <stdio.h>
#include <string.h>

/* ---- Decoding ----------------------------------------------------------- */
struct ak_utf8 ak_utf8_next(const char *text, size_t n)
{
    const unsigned char *s = (const unsigned char *)text;
    unsigned lead = s[0], low = 0x80, high = 0xBF, length;
    uint32_t code;

    if (lead < 0x80)
        return (struct ak_utf8){ .code = lead, .bytes = 1, .valid = true };
    if (lead < 0xC2 || lead > 0xF4)
        return (struct ak_utf8){ .bytes = 1 };
    if (lead < 0xE0) {
        length = 2;
        code = lead & 0x1Fu;
    } else if (lead < 0xF0) {
        length = 3;
        code = lead & 0x0Fu;
        if (lead == 0xE0)
            low = 0xA0; /* overlong below */
        if (lead == 0xED)
            high = 0x9F; /* surrogates are no characters */
    } else {
        length = 4;
        code = lead & 0x07u;
        if (lead == 0xF0)
            low = 0x90;
        if (lead == 0xF4)
            high = 0x8F; /* beyond U+10FFFF */
    }
    for (unsigned i = 1; i < length; i++) {
        if (i == n)
            return (struct ak_utf8){ .bytes = (uint8_t)i, .truncated = true };
        if (s[i] < low || s[i] > high)
            return (struct ak_utf8){ .bytes = (uint8_t)i };
        code = code << 6 | (s[i] & 0x3Fu);
        low = 0x80;
        high = 0xBF;
    }
    return (struct ak_utf8){ .code = code, .bytes = (uint8_t)length, .valid = true };
}

size_t ak_utf8_valid_bytes(const char *text, size_t n)
{
    size_t at = 0;

    while (at < n) {
        uint64_t eight;
        if (n - at >= sizeof eight) {
            memcpy(&eight, text + at, sizeof eight);
            if ((eight & UINT64_C(0x8080808080808080)) == 0) { /* most text is ASCII */
                at += sizeof eight;
                continue;
            }
        }
        struct ak_utf8 c = ak_utf8_next(text + at, n - at);
        if (!c.valid)
            break;
        at += c.bytes;
    }
    return at;
}

/* ---- Text for messages -------------------------------------------------- */
enum { TEXT_BYTES = 100, PATH_BYTES = 300 };

static const char ellipsis[] = "…";

static bool is_control(const uint8_t *s, size_t length)
{
    return s[0] < 0x20 || s[0] == 0x7f || (length == 2 && s[0] == 0xc2 && s[1] < 0xa0);
}

/* Writes the escaped text, at most up to `limit`, with a NUL. Returns the position of the NUL. */
static char *escape(const uint8_t *s, size_t n, char *out, const char *limit)
{
    while (n > 0) {
        struct ak_utf8 c = ak_utf8_next((const char *)s, n);
        bool plain = c.valid && !is_control(s, c.bytes);
        size_t length = plain ? c.bytes : 1, wanted = plain ? length : 4;
        if (wanted + sizeof ellipsis > (size_t)(limit - out)) {
            memcpy(out, ellipsis, sizeof ellipsis);
            return out + sizeof ellipsis - 1;
        }
        if (plain)
            memcpy(out, s, length);
        else
            snprintf(out, wanted + 1, "\\x%02x", s[0]);
        out += wanted;
        s += length;
        n -= length;
    }
    *out = '\0';
    return out;
}

const char *ak_show(const void *bytes, size_t n, char *out)
{
    const uint8_t *s = bytes;
    size_t kept = n < TEXT_BYTES ? n : TEXT_BYTES;
    while (kept < n && kept > TEXT_BYTES - 4 && (s[kept] & 0xc0) == 0x80)
        kept--;
    char *end = escape(s, kept, out, out + AK_SHOW_BYTES);
    if (kept < n)
        memcpy(end, ellipsis, sizeof ellipsis);
    return out;
}

const char *ak_show_path(const char *path, char *out)
{
    size_t n = strlen(path), skipped = n > PATH_BYTES ? n - PATH_BYTES : 0;
    while (skipped > 0 && skipped < n && ((uint8_t)path[skipped] & 0xc0) == 0x80)
        skipped++;
    size_t mark = skipped ? sizeof ellipsis - 1 : 0;
    memcpy(out, ellipsis, mark);
    escape((const uint8_t *)path + skipped, n - skipped, out + mark, out + AK_SHOW_BYTES);
    return out;
}

bool ak_is_utf8(const void *bytes, size_t n)
{
    return ak_utf8_valid_bytes(bytes, n) == n;
}
