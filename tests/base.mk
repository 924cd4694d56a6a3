check_PROGRAMS += tests/test_base
tests_test_base_SOURCES = tests/test_base.c
tests_test_base_CFLAGS = $(AK_TEST_CFLAGS)
tests_test_base_LDADD = $(AK_TEST_LIBS)
