check_PROGRAMS += tests/test_kernels
tests_test_kernels_SOURCES = tests/test_kernels.c
tests_test_kernels_CFLAGS = $(AK_TEST_CFLAGS)
tests_test_kernels_LDADD = $(AK_TEST_LIBS)
