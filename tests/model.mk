check_PROGRAMS += tests/test_model
tests_test_model_SOURCES = tests/test_model.c tests/golden_model.h
tests_test_model_CFLAGS = $(AK_TEST_CFLAGS)
tests_test_model_LDADD = $(AK_TEST_LIBS)
