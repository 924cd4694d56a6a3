/* libcheck, as every test includes it: without the mark that each assertion leaves, which
 * is a write to a file. Tests with millions of assertions spent most of their time there. A
 * crash is reported at the start of its test instead. */
#ifndef AK_TESTS_TEST_H
#define AK_TESTS_TEST_H

#include <check.h>
#include <stdbool.h>
#include <stdlib.h>

#define _mark_point(file, line) ((void)0)

/* AKUNU_TEST_FULL=1: every combination is tried, where otherwise each value has its turn. */
static inline bool test_is_full(void)
{
    const char *full = getenv("AKUNU_TEST_FULL");
    return full && full[0] == '1';
}

/* Runs a suite, which it frees; returns the exit status of the program. */
static inline int test_run(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
