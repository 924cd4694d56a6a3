#include "base/utf8.h"

#include <string.h>

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
            low = 0xA0; /* shorter forms exist */
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
