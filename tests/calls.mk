check_PROGRAMS += tests/test_calls
tests_test_calls_SOURCES = tests/test_calls.c
tests_test_calls_CFLAGS = $(AK_TEST_CFLAGS)
tests_test_calls_LDADD = $(AK_TEST_LIBS)
check_PROGRAMS += tests/test_call_grammar
tests_test_call_grammar_SOURCES = tests/test_call_grammar.c
tests_test_call_grammar_CFLAGS = $(AK_TEST_CFLAGS)
tests_test_call_grammar_LDADD = $(AK_TEST_LIBS)
