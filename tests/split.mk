check_PROGRAMS += tests/test_split
tests_test_split_SOURCES = tests/test_split.c tests/golden_model.h
tests_test_split_CFLAGS = $(AK_TEST_CFLAGS)
tests_test_split_LDADD = $(AK_TEST_LIBS)
