check_PROGRAMS += tests/test_jinja
tests_test_jinja_SOURCES = tests/test_jinja.c
tests_test_jinja_CFLAGS = $(AK_TEST_CFLAGS)
tests_test_jinja_LDADD = $(AK_TEST_LIBS)
