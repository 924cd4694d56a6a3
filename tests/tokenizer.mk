check_PROGRAMS += tests/test_tokenizer
tests_test_tokenizer_SOURCES = tests/test_tokenizer.c
tests_test_tokenizer_CFLAGS = $(AK_TEST_CFLAGS)
tests_test_tokenizer_LDADD = $(AK_TEST_LIBS)
