#include "cli/utf8.h"

size_t cli_utf8_length(const char *text, size_t n)
{
    if (n == 0)
        return 0;
    unsigned char first = (unsigned char)text[0];
    if (first < 0x80)
        return 1;
    size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || n < length)
        return 0;

    /* The second byte's range excludes overlong forms, surrogates and what lies above U+10FFFF. */
    unsigned char second = (unsigned char)text[1];
    unsigned low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    unsigned high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    if (second < low || second > high)
        return 0;
    for (size_t i = 2; i < length; i++)
        if (((unsigned char)text[i] & 0xc0) != 0x80)
            return 0;
    return length;
}
