check_PROGRAMS += tests/test_prompt_cache
tests_test_prompt_cache_SOURCES = tests/test_prompt_cache.c tests/golden_model.h
tests_test_prompt_cache_CFLAGS = $(AK_TEST_CFLAGS)
tests_test_prompt_cache_LDADD = $(AK_TEST_LIBS)
