check_PROGRAMS += tests/test_kernels_hash
tests_test_kernels_hash_SOURCES = tests/test_kernels_hash.c tests/evex.h
tests_test_kernels_hash_CFLAGS = $(AK_TEST_CFLAGS)
tests_test_kernels_hash_LDADD = $(AK_TEST_EVEX) $(AK_TEST_LIBS)
