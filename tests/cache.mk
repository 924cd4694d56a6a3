check_PROGRAMS += tests/test_cache
tests_test_cache_SOURCES = tests/test_cache.c tests/golden_model.h
tests_test_cache_CFLAGS = $(AK_TEST_CFLAGS)
tests_test_cache_LDADD = $(AK_TEST_LIBS)
tests_test_cache_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=pwrite -Wl,--wrap=fallocate -Wl,--wrap=fsync -Wl,--wrap=futimens -Wl,--wrap=renameat
