check_PROGRAMS += tests/test_sampler
tests_test_sampler_SOURCES = tests/test_sampler.c
tests_test_sampler_CFLAGS = $(AK_TEST_CFLAGS)
tests_test_sampler_LDADD = $(AK_TEST_LIBS)

check_PROGRAMS += tests/test_samplers
tests_test_samplers_SOURCES = tests/test_samplers.c
tests_test_samplers_CFLAGS = $(AK_TEST_CFLAGS)
tests_test_samplers_LDADD = $(AK_TEST_LIBS)

check_PROGRAMS += tests/test_sampling
tests_test_sampling_SOURCES = tests/test_sampling.c
tests_test_sampling_CFLAGS = $(AK_TEST_CFLAGS)
tests_test_sampling_LDADD = $(AK_TEST_LIBS)
