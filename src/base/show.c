#include "base/show.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_BYTES = 100, PATH_BYTES = 300 };

static const char ellipsis[] = "…";

/* Bytes of the character at the start of n ≥ 1 bytes; 0 where it is no UTF-8
 * (The Unicode Standard, table 3-7). */
static size_t character_bytes(const uint8_t *s, size_t n)
{
    if (s[0] < 0x80)
        return 1;
    size_t length = s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf5 ? 4 : 0;
    if (length == 0 || length > n)
        return 0;
    uint8_t low = s[0] == 0xe0 ? 0xa0 : s[0] == 0xf0 ? 0x90 : 0x80;
    uint8_t high = s[0] == 0xed ? 0x9f : s[0] == 0xf4 ? 0x8f : 0xbf;
    if (s[1] < low || s[1] > high)
        return 0;
    for (size_t i = 2; i < length; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    return length;
}

static bool is_control(const uint8_t *s, size_t length)
{
    return s[0] < 0x20 || s[0] == 0x7f || (length == 2 && s[0] == 0xc2 && s[1] < 0xa0);
}

/* Returns the end of what it wrote, and stops before `limit`. */
static char *escape(const uint8_t *s, size_t n, char *out, const char *limit)
{
    while (n > 0) {
        size_t length = character_bytes(s, n);
        bool plain = length > 0 && !is_control(s, length);
        size_t wanted = plain ? length : 4;
        if (wanted + sizeof ellipsis > (size_t)(limit - out)) {
            memcpy(out, ellipsis, sizeof ellipsis);
            return out + sizeof ellipsis - 1;
        }
        if (plain)
            memcpy(out, s, length);
        else
            snprintf(out, wanted + 1, "\\x%02x", s[0]);
        out += wanted;
        s += plain ? length : 1;
        n -= plain ? length : 1;
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
    const uint8_t *s = bytes;
    while (n > 0) {
        size_t length = character_bytes(s, n);
        if (length == 0)
            return false;
        s += length;
        n -= length;
    }
    return true;
}
