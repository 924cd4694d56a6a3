check_PROGRAMS += tests/test_calls
tests_test_calls_SOURCES = tests/test_calls.c
tests_test_calls_CFLAGS = $(AK_TEST_CFLAGS)
tests_test_calls_LDADD = $(AK_TEST_LIBS)
