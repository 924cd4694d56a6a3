check_PROGRAMS += tests/test_steps
tests_test_steps_SOURCES = tests/test_steps.c tests/table_rig.h
tests_test_steps_CFLAGS = $(AK_TEST_CFLAGS)
tests_test_steps_LDADD = $(AK_TEST_LIBS)
