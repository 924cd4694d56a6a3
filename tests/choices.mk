check_PROGRAMS += tests/test_choices
tests_test_choices_SOURCES = tests/test_choices.c tests/golden_model.h
tests_test_choices_CFLAGS = $(AK_TEST_CFLAGS)
tests_test_choices_LDADD = $(AK_TEST_LIBS)

check_PROGRAMS += tests/test_stops
tests_test_stops_CFLAGS = $(AK_TEST_CFLAGS)
tests_test_stops_LDADD = $(AK_TEST_LIBS)
