/* Texts that end a text: the same whatever pieces it comes in, and nothing is told of what
 * may still become one of them. */
#include "tests/test.h"
#include <string.h>

#include "engine/generate/completion.h"

enum { TEXT_MAX = 256 };

struct stop_case {
    const char *stops[4];
    const char *text, *reported; /* told: of the text when it is over */
    bool ends;
};

static const struct stop_case stop_cases[] = {
    { { "User:" }, "Hello.\nUser: hi", "Hello.\n", true },
    { { "User:" }, "Hello.\nUse", "Hello.\nUse", false },
    { { "aab" }, "aaab", "a", true },          /* the beginning begins anew */
    { { "abab", "bb" }, "xababb", "x", true }, /* the one that ends first */
    { { "abc", "b" }, "zabc", "za", true },
    /* of those that end there the longest */
    { { "c", "abc", "bc" }, "zabc", "z", true },
    { { "abcd", "bce" }, "abce", "a", true },
    { { "abcd", "bce" }, "abcx bcd", "abcx bcd", false },
    { { "\n\n" }, "one\ntwo\n\nthree", "one\ntwo", true },
    { { "é" }, "caf\xc3\xa8 caf\xc3\xa9!", "caf\xc3\xa8 caf", true },
    { { "x" }, "x", "", true },
    { { NULL }, "anything", "anything", false },
};

static void append_text(char *reported, size_t *n, const char *text, size_t n_text)
{
    ck_assert_uint_lt(*n + n_text, TEXT_MAX);
    if (n_text > 0)
        memcpy(reported + *n, text, n_text);
    *n += n_text;
    reported[*n] = '\0';
}

/* What is reported of a text in pieces of `size` bytes; *held: most bytes that were kept back. */
static bool run(const struct stop_case *e, size_t size, char reported[TEXT_MAX], size_t *withheld)
{
    struct ak_gen_stops stops = { 0 };
    struct ak_error error = { 0 };
    size_t n_stops = 0, n_reported = 0, length = strlen(e->text);
    bool ended = false;
    reported[0] = '\0';
    *withheld = 0;
    while (e->stops[n_stops])
        n_stops++;
    ck_assert_int_eq(ak_gen_stops_begin(&stops, e->stops, n_stops, &error), AKUNU_OK);
    for (size_t at = 0; at < length && !ended; at += size) {
        const char *text = e->text + at;
        size_t n = ak_min_size(size, length - at), given = at + n;
        ck_assert_int_eq(ak_gen_stops_push(&stops, &text, &n, &ended, &error), AKUNU_OK);
        append_text(reported, &n_reported, text, n);
        *withheld = ended ? *withheld : ak_max_size(*withheld, given - n_reported);
    }
    if (!ended) {
        const char *text = NULL;
        size_t n;
        ak_gen_stops_end(&stops, &text, &n);
        append_text(reported, &n_reported, text, n);
    } else { /* the text has it behind what was reported */
        const char *found = e->stops[stops.found];
        ck_assert_int_eq(strncmp(e->text + n_reported, found, strlen(found)), 0);
    }
    ak_gen_stops_clear(&stops);
    return ended;
}

START_TEST(in_pieces)
{
    const struct stop_case *e = &stop_cases[_i];
    size_t longest = 0, withheld;
    for (size_t i = 0; e->stops[i]; i++)
        longest = ak_max_size(longest, strlen(e->stops[i]) - 1);
    for (size_t size = 1; size <= strlen(e->text); size++) {
        char reported[TEXT_MAX];
        bool ended = run(e, size, reported, &withheld);
        ck_assert_int_eq(ended, e->ends);
        ck_assert_str_eq(reported, e->reported);
        ck_assert_uint_le(withheld, longest);
    }
}
END_TEST

/* What is told after each byte: all but the longest end that may become a stop sequence. */
START_TEST(nothing_more_is_withheld)
{
    static const struct {
        const char *stops[3], *text;
        const char *reported[8]; /* by byte */
    } cases[] = {
        { { "ab" }, "xaay", { "x", "", "a", "ay" } },
        { { "x" }, "abc", { "a", "b", "c" } },
        { { "abc", "bd" }, "abab", { "", "", "ab", "" } },
        { { "abcd", "bc!" }, "abcz", { "", "", "", "abcz" } },
        { { "aaaa" }, "aaab", { "", "", "", "aaab" } },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct ak_gen_stops stops = { 0 };
        struct ak_error error = { 0 };
        size_t n_stops = 0, n;
        while (cases[i].stops[n_stops])
            n_stops++;
        ck_assert_int_eq(ak_gen_stops_begin(&stops, cases[i].stops, n_stops, &error), AKUNU_OK);
        for (size_t at = 0; cases[i].text[at]; at++) {
            const char *text = cases[i].text + at, *expected = cases[i].reported[at];
            bool ended = true; /* it is told to be false */
            n = 1;
            ck_assert_int_eq(ak_gen_stops_push(&stops, &text, &n, &ended, &error), AKUNU_OK);
            ck_assert(!ended);
            ck_assert_msg(n == strlen(expected) && memcmp(text, expected, n) == 0,
                          "case %zu: '%.*s' after byte %zu, expected '%s'", i, (int)n, text, at,
                          expected);
        }
        ak_gen_stops_clear(&stops);
    }
}
END_TEST

START_TEST(refused)
{
    static char long_one[AK_GEN_STOP_BYTES_MAX + 2];
    const char *many[AK_GEN_STOPS_MAX + 1], *empty[] = { "a", "" }, *too_long[] = { long_one };
    struct ak_gen_stops stops = { 0 };
    struct ak_error error = { 0 };
    memset(long_one, 'x', sizeof long_one - 1);
    for (size_t i = 0; i <= AK_GEN_STOPS_MAX; i++)
        many[i] = "a";
    ck_assert_int_eq(ak_gen_stops_begin(&stops, many, AK_GEN_STOPS_MAX + 1, &error),
                     AKUNU_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(error.message, "at most 64"));
    ck_assert_int_eq(ak_gen_stops_begin(&stops, empty, 2, &error), AKUNU_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(error.message, "stop sequence 2"));
    ck_assert_int_eq(ak_gen_stops_begin(&stops, too_long, 1, &error), AKUNU_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(error.message, "1025 bytes"));
    long_one[AK_GEN_STOP_BYTES_MAX] = '\0'; /* the longest, the most, and none */
    ck_assert_int_eq(ak_gen_stops_begin(&stops, too_long, 1, &error), AKUNU_OK);
    ck_assert_int_eq(ak_gen_stops_begin(&stops, many, AK_GEN_STOPS_MAX, &error), AKUNU_OK);
    ck_assert_int_eq(ak_gen_stops_begin(&stops, NULL, 0, &error), AKUNU_OK);
    ck_assert_int_eq(ak_gen_stops_begin(&stops, NULL, 1, &error), AKUNU_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(error.message, "1 stop sequences"));
    many[1] = NULL;
    ck_assert_int_eq(ak_gen_stops_begin(&stops, many, 2, &error), AKUNU_ERROR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(error.message, "stop sequence 2 has 0 bytes"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("stops");
    TCase *tcase = tcase_create("all");
    tcase_add_loop_test(tcase, in_pieces, 0, (int)(sizeof stop_cases / sizeof *stop_cases));
    tcase_add_test(tcase, nothing_more_is_withheld);
    tcase_add_test(tcase, refused);
    suite_add_tcase(suite, tcase);
    return test_run(suite);
}
