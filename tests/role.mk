check_PROGRAMS += tests/test_role
tests_test_role_SOURCES = tests/test_role.c
tests_test_role_CFLAGS = $(AK_TEST_CFLAGS)
tests_test_role_LDADD = $(AK_TEST_LIBS)
