check_PROGRAMS += tests/test_kv
tests_test_kv_SOURCES = tests/test_kv.c tests/fake_backend.h
tests_test_kv_CFLAGS = $(AK_TEST_CFLAGS)
tests_test_kv_LDADD = $(AK_TEST_LIBS)
