check_PROGRAMS += tests/test_session
tests_test_session_SOURCES = tests/test_session.c tests/fake_backend.h
tests_test_session_CFLAGS = $(AK_TEST_CFLAGS)
tests_test_session_LDADD = $(AK_TEST_LIBS)
