check_PROGRAMS += tests/test_utf8
tests_test_utf8_SOURCES = tests/test_utf8.c
tests_test_utf8_CFLAGS = $(AK_TEST_CFLAGS)
tests_test_utf8_LDADD = $(AK_TEST_LIBS)
