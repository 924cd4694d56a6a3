check_PROGRAMS += tests/test_grammar
# made by name, for tests/golden/json_schema_suite.py
EXTRA_PROGRAMS += tests/grammar_batch
tests_test_grammar_SOURCES = tests/test_grammar.c
tests_test_grammar_CFLAGS = $(AK_TEST_CFLAGS)
tests_test_grammar_LDADD = $(AK_TEST_LIBS)
tests_grammar_batch_SOURCES = tests/grammar_batch.c
tests_grammar_batch_CFLAGS = $(AK_TEST_CFLAGS)
tests_grammar_batch_LDADD = $(AK_TEST_LIBS)

check_PROGRAMS += tests/test_constraint
tests_test_constraint_SOURCES = tests/test_constraint.c tests/golden_model.h
tests_test_constraint_CFLAGS = $(AK_TEST_CFLAGS)
tests_test_constraint_LDADD = $(AK_TEST_LIBS)
