check_PROGRAMS += tests/test_tokenizer_json
tests_test_tokenizer_json_SOURCES = tests/test_tokenizer_json.c
tests_test_tokenizer_json_CFLAGS = $(AK_TEST_CFLAGS)
tests_test_tokenizer_json_LDADD = $(AK_TEST_LIBS)
