/* Character classes from the categories of utf8proc. Some differ from Unicode's properties on
 * purpose: tokenizers define them so, and their tokens must be reproduced. */
#include "base/unicode.h"

#include <string.h>
#include <utf8proc.h>

static utf8proc_category_t category(uint32_t c)
{
    return utf8proc_category((utf8proc_int32_t)c);
}

bool ak_is_whitespace(uint32_t c)
{
    return (c >= 9 && c <= 13) || c == ' ' || c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
           c == 0x205F || c == 0x3000;
}

bool ak_is_mark(uint32_t c)
{
    utf8proc_category_t k = category(c);
    return k == UTF8PROC_CATEGORY_MN || k == UTF8PROC_CATEGORY_MC || k == UTF8PROC_CATEGORY_ME;
}

bool ak_is_nonspacing_mark(uint32_t c)
{
    return category(c) == UTF8PROC_CATEGORY_MN;
}

bool ak_is_control(uint32_t c)
{
    utf8proc_category_t k = category(c);
    return k == UTF8PROC_CATEGORY_CC || k == UTF8PROC_CATEGORY_CF || k == UTF8PROC_CATEGORY_CO;
}

bool ak_is_punctuation(uint32_t c)
{
    utf8proc_category_t k = category(c);

    if (c < 0x80 && k >= UTF8PROC_CATEGORY_SM && k <= UTF8PROC_CATEGORY_SO)
        return true;
    return k >= UTF8PROC_CATEGORY_PC && k <= UTF8PROC_CATEGORY_PO;
}

bool ak_is_number(uint32_t c)
{
    utf8proc_category_t k = category(c);
    return k >= UTF8PROC_CATEGORY_ND && k <= UTF8PROC_CATEGORY_NO;
}

bool ak_is_word_char(uint32_t c)
{
    utf8proc_category_t k = category(c);
    return (k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_NL) || k == UTF8PROC_CATEGORY_PC ||
           c == 0x200C || c == 0x200D;
}

bool ak_is_chinese(uint32_t c)
{
    return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) ||
           (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B73F) ||
           (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
           (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

size_t ak_utf8_encode(uint32_t c, char out[4])
{
    return (size_t)utf8proc_encode_char((utf8proc_int32_t)c, (utf8proc_uint8_t *)out);
}

size_t ak_to_lower(uint32_t c, char out[4])
{
    if (c == 0x130) { /* the only character that lowers to two: i, U+0307 */
        memcpy(out, "i\xCC\x87", 3);
        return 3;
    }
    return ak_utf8_encode((uint32_t)utf8proc_tolower((utf8proc_int32_t)c), out);
}
