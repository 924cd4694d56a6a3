check_PROGRAMS += tests/test_speculate
tests_test_speculate_SOURCES = tests/test_speculate.c tests/golden_model.h
tests_test_speculate_CFLAGS = $(AK_TEST_CFLAGS)
tests_test_speculate_LDADD = $(AK_TEST_LIBS)
