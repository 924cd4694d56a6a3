check_PROGRAMS += tests/test_profile
tests_test_profile_SOURCES = tests/test_profile.c
tests_test_profile_CFLAGS = $(AK_TEST_CFLAGS)
tests_test_profile_LDADD = $(AK_TEST_LIBS)
