/* UTF-8 against the tables of the Unicode standard and against utf8proc. */
#include "tests/test.h"
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/utf8.h"

/* Writes one letter a character: itself where it is ASCII, else '?' for what is
 * no UTF-8 and '.' for a longer character. */
static void picture(const char *text, size_t n, char *out)
{
    for (size_t at = 0; at < n;) {
        struct ak_utf8 c = ak_utf8_next(text + at, n - at);
        *out++ = (char)(!c.valid ? '?' : c.bytes == 1 ? text[at] : '.');
        at += c.bytes;
    }
    *out = '\0';
}

/* The examples of chapter 3, tables 3-8 to 3-11: how many U+FFFD there are to be. */
START_TEST(ill_formed_parts)
{
    static const struct {
        const char *bytes, *want;
    } cases[] = {
        { "\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41", "????????A" },
        { "\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41", "????????A" },
        { "\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42", "?????A??B" },
        { "\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41", "????A" },
    };
    char got[32];

    picture(cases[_i].bytes, strlen(cases[_i].bytes), got);
    ck_assert_str_eq(got, cases[_i].want);
}
END_TEST

START_TEST(every_character)
{
    for (int32_t code = 0; code < 0x110000; code++) {
        if (code >= 0xD800 && code < 0xE000)
            continue;
        char bytes[4];
        long n = utf8proc_encode_char(code, (utf8proc_uint8_t *)bytes);
        struct ak_utf8 c = ak_utf8_next(bytes, (size_t)n);
        if (!c.valid || c.bytes != n || c.code != (uint32_t)code)
            ck_abort_msg("U+%04X", (unsigned)code);
        for (long cut = 1; cut < n; cut++) {
            c = ak_utf8_next(bytes, (size_t)cut);
            if (c.valid || !c.truncated || c.bytes != cut)
                ck_abort_msg("U+%04X cut after %ld bytes", (unsigned)code, cut);
        }
    }
}
END_TEST

/* All sequences of up to three bytes: utf8proc agrees about what is valid. */
START_TEST(every_sequence)
{
    for (uint32_t i = 0; i < 1u << 24; i++) {
        char bytes[3] = { (char)(i >> 16), (char)(i >> 8), (char)i };
        utf8proc_int32_t code;
        long n = utf8proc_iterate((const utf8proc_uint8_t *)bytes, 3, &code);
        struct ak_utf8 c = ak_utf8_next(bytes, 3);
        if (c.valid != (n > 0) || (c.valid && c.bytes != n))
            ck_abort_msg("bytes %06X", i);
    }
}
END_TEST

START_TEST(valid_prefix)
{
    const char text[] = "sixteen letters \xC3\xA9 and then \xE2\x82 more";

    ck_assert_uint_eq(ak_utf8_valid_bytes(text, sizeof text - 1), 28);
    ck_assert_uint_eq(ak_utf8_valid_bytes(text, 17), 16);
    ck_assert_uint_eq(ak_utf8_valid_bytes(text, 18), 18);
    ck_assert_uint_eq(ak_utf8_valid_bytes(text, 0), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("utf8");
    TCase *tcase = tcase_create("utf8");

    tcase_add_loop_test(tcase, ill_formed_parts, 0, 4);
    tcase_add_test(tcase, every_character);
    tcase_add_test(tcase, every_sequence);
    tcase_add_test(tcase, valid_prefix);
    suite_add_tcase(suite, tcase);
    return test_run(suite);
}
