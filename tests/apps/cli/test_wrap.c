/* Wrapping of a streamed text at the margin: what is shown, and that it does not depend on the
 * pieces in which the text comes. */
#include "tests/test.h"
#include <stdlib.h>
#include <string.h>

#include "apps/cli/run/wrap.h"

/* Feeds a text in pieces of 1 … max_piece bytes, 0: in one; free the result. */
static char *wrap(const char *text, unsigned columns, size_t max_piece, unsigned seed)
{
    char *shown = NULL;
    size_t n_shown = 0, n = strlen(text);
    struct app_output out = { .file = open_memstream(&shown, &n_shown) };
    struct cli_wrap w;
    ck_assert_ptr_nonnull(out.file);
    cli_wrap_begin(&w, &out);
    w.columns = columns;
    for (size_t i = 0; i < n;) {
        size_t piece = max_piece ? 1 + (seed = seed * 1103515245 + 12345) / 65536 % max_piece : n;
        piece = piece < n - i ? piece : n - i;
        cli_wrap_push(&w, text + i, piece);
        i += piece;
    }
    cli_wrap_end(&w);
    fclose(out.file);
    return shown;
}

#define SHI "\xe4\xb8\x96" /* wide */
#define JIE "\xe7\x95\x8c"
#define STOP "\xe3\x80\x82"      /* closing: never begins a line */
#define OPEN "\xe3\x80\x8c"      /* opening: never ends one */
#define ACUTE "\xcc\x81"         /* combining */
#define WOMAN "\xf0\x9f\x91\xa9" /* a picture */
#define JOIN "\xe2\x80\x8d"      /* of pictures */
#define COMPUTER "\xf0\x9f\x92\xbb"

static const struct {
    unsigned columns;
    const char *text, *shown;
} cases[] = {
    { 10, "one two three", "one two\nthree" },
    { 13, "one two three", "one two three" },
    { 12, "one two three", "one two\nthree" },
    { 0, "one two three four", "one two three four" },
    /* a line that is exactly full, and blanks at the margin */
    { 7, "one two three", "one two\nthree" },
    { 7, "one two   three", "one two\nthree" },
    { 7, "one two  ", "one two" },
    { 9, "one two  \nx", "one two  \nx" },
    { 7, "one two  \n\nx", "one two\n\nx" },
    { 20, "a  b   c", "a  b   c" },
    { 10, "a\tb c", "a\tb\nc" },
    { 9, "a\tbc d", "a\nbc d" },
    /* words longer than a line stay whole for whoever copies them: the terminal breaks them */
    { 5, "abcdefghij", "abcdefghij" },
    { 5, "ab cdefghij kl", "ab\ncdefghij\nkl" },
    { 5, "abcdefgh ij kl", "abcdefgh\nij kl" },
    { 5, "abcdefg ij kl", "abcdefg ij\nkl" },
    { 6, "abcdefg ij kl", "abcdefg ij\nkl" },
    /* wide characters break between each other, at the margin less one column too */
    { 4, SHI JIE SHI JIE, SHI JIE "\n" SHI JIE },
    { 5, SHI JIE SHI JIE, SHI JIE "\n" SHI JIE },
    { 5, "ab" SHI JIE, "ab" SHI "\n" JIE },
    { 4, SHI "abc", SHI "\nabc" },
    { 4, SHI JIE STOP SHI, SHI "\n" JIE STOP "\n" SHI },
    { 4, SHI OPEN JIE SHI, SHI "\n" OPEN JIE "\n" SHI },
    /* marks take no column and stay with their letter, joined pictures stay together */
    { 3, "a" ACUTE "b" ACUTE "c" ACUTE " d", "a" ACUTE "b" ACUTE "c" ACUTE "\nd" },
    { 4, SHI JIE ACUTE SHI, SHI JIE ACUTE "\n" SHI },
    { 5, SHI WOMAN JOIN COMPUTER, SHI "\n" WOMAN JOIN COMPUTER },
    /* lines that the model indents, and code */
    { 8, "  one two three\nfour five", "  one two three\nfour\nfive" },
    { 8, "\tone two\none two three", "\tone two\none two\nthree" },
    { 8, "```c\nint main(void) {\n}\n```\none two three",
      "```c\nint main(void) {\n}\n```\none two\nthree" },
    { 8, "~~~~\na b c d e f\n~~~\n```\na b c d e f\n~~~~\na b c d e f",
      "~~~~\na b c d e f\n~~~\n```\na b c d e f\n~~~~\na b c d\ne f" },
    { 8, "```\na b c d e f\n``` x\na b c d e f", "```\na b c d e f\n``` x\na b c d e f" },
    { 8, "- x\n   ```\n   a b c d e\n   ```\na b c d e",
      "- x\n   ```\n   a b c d e\n   ```\na b c d\ne" },
    { 8, "```a b``` c d\na b c d e", "```a\nb``` c d\na b c d\ne" },
    { 8, "a ```\na b c d e", "a ```\na b c d\ne" },
    { 8, "``\na b c d e", "``\na b c d\ne" },
    /* what a terminal would obey is dropped, in one byte or two; what is malformed is shown */
    { 80,
      "a\033[31mb\rc\ad\x7f"
      "e\xc2\x9b"
      "31m",
      "a[31mbcde31m" },
    { 80, "a\x9b\xe4\xb8z\xff", "a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz\xef\xbf\xbd" },
    { 80, "", "" },
    { 80, "\n\n", "\n\n" },
};
enum { N_CASES = sizeof cases / sizeof *cases };

START_TEST(whole)
{
    char *text = wrap(cases[_i].text, cases[_i].columns, 0, 0);
    ck_assert_str_eq(text, cases[_i].shown);
    free(text);
}
END_TEST

START_TEST(pieces)
{
    for (unsigned seed = 1; seed <= 40; seed++) {
        char *text = wrap(cases[_i].text, cases[_i].columns, 1 + seed % 4, seed);
        ck_assert_str_eq(text, cases[_i].shown);
        free(text);
    }
}
END_TEST

/* Long texts of random pieces: the cuts do not matter, no character is lost, and no line of words
 * that fit is too long. */
START_TEST(random_texts)
{
    static const char *const parts[] = { "a",
                                         "bc",
                                         "def",
                                         " ",
                                         "  ",
                                         "\t",
                                         "\n",
                                         SHI,
                                         JIE STOP,
                                         OPEN,
                                         "e" ACUTE,
                                         WOMAN JOIN COMPUTER,
                                         "`",
                                         "```",
                                         "~~~\n",
                                         "\xe4\xb8",
                                         "a longer sentence of plain words. " };
    enum { N_PARTS = sizeof parts / sizeof *parts };
    unsigned state = (unsigned)_i + 1;
    char text[4096] = "";
    for (int i = 0; i < 120; i++)
        strcat(text, parts[(state = state * 1103515245 + 12345) / 65536 % N_PARTS]);
    for (unsigned columns = 1; columns < 60; columns += 7) {
        char *uncut = wrap(text, columns, 0, 0);
        for (unsigned seed = 1; seed < 6; seed++) {
            char *cut = wrap(text, columns, 1 + seed, seed);
            ck_assert_str_eq(cut, uncut);
            free(cut);
        }
        free(uncut);
    }
    char *plain = wrap(text, 0, 3, 7), *wrapped = wrap(text, 10, 3, 7);
    const char *p = plain, *q = wrapped;
    while (*p && *q) {
        p += strspn(p, " \t\n");
        q += strspn(q, " \t\n");
        ck_assert_int_eq(*p, *q);
        p += *p != '\0';
        q += *q != '\0';
    }
    ck_assert_uint_eq(strspn(p, " \t\n"), strlen(p));
    ck_assert_uint_eq(strspn(q, " \t\n"), strlen(q));
    free(plain);
    free(wrapped);
}
END_TEST

START_TEST(margins)
{
    static const char text[] =
        "The quick brown fox jumps over the lazy dog, and the dog does not mind at all.";
    for (unsigned columns = 5; columns < 90; columns++) {
        char *shown = wrap(text, columns, 3, columns), *next;
        for (char *line = shown; line; line = next) {
            next = strchr(line, '\n');
            size_t n = next ? (size_t)(next - line) : strlen(line);
            ck_assert_uint_le(n, columns);
            /* the first word of the next line had no place on this one */
            if (next)
                ck_assert_uint_gt(n + 1 + strcspn(next + 1, " \n"), columns);
            next = next ? next + 1 : NULL;
        }
        free(shown);
    }
}
END_TEST

/* The terminal changes its size while a line is written. */
START_TEST(resized)
{
    char *shown = NULL;
    size_t n = 0;
    struct app_output out = { .file = open_memstream(&shown, &n) };
    struct cli_wrap w;
    cli_wrap_begin(&w, &out);
    w.columns = 20;
    cli_wrap_push(&w, "one two three ", 14);
    w.columns = 8; /* the terminal shows "one two " and "three" now */
    cli_wrap_push(&w, "four five ", 10);
    w.columns = 40;
    cli_wrap_push(&w, "six seven eight", 15);
    cli_wrap_end(&w);
    fclose(out.file);
    ck_assert_str_eq(shown, "one two three\nfour\nfive six seven eight");
    free(shown);
}
END_TEST

/* A letter with more marks than are held back, and as many spaces. */
START_TEST(endless)
{
    char *text = malloc(20000), *shown;
    ck_assert_ptr_nonnull(text);
    strcpy(text, "a");
    for (int i = 0; i < 3000; i++)
        strcat(text, ACUTE);
    shown = wrap(text, 10, 0, 0);
    ck_assert_str_eq(shown, text);
    free(shown);
    memset(text, ' ', 3000);
    strcpy(text + 3000, "b");
    text[0] = 'a';
    shown = wrap(text, 10, 7, 1);
    ck_assert_int_eq(shown[strlen(shown) - 1], 'b');
    free(shown);
    free(text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("wrap");
    TCase *tests = tcase_create("wrap");
    tcase_add_loop_test(tests, whole, 0, N_CASES);
    tcase_add_loop_test(tests, pieces, 0, N_CASES);
    tcase_add_loop_test(tests, random_texts, 0, 30);
    tcase_add_test(tests, margins);
    tcase_add_test(tests, resized);
    tcase_add_test(tests, endless);
    suite_add_tcase(suite, tests);
    return test_run(suite);
}
