check_PROGRAMS += tests/test_sampler
tests_test_sampler_SOURCES = tests/test_sampler.c
tests_test_sampler_CFLAGS = $(AK_TEST_CFLAGS)
tests_test_sampler_LDADD = $(AK_TEST_LIBS)
