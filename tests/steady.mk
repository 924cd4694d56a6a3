check_PROGRAMS += tests/test_steady
tests_test_steady_SOURCES = tests/test_steady.c tests/golden_model.h
tests_test_steady_CFLAGS = $(AK_TEST_CFLAGS)
tests_test_steady_LDADD = $(AK_TEST_LIBS)
tests_test_steady_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=malloc -Wl,--wrap=calloc -Wl,--wrap=realloc -Wl,--wrap=aligned_alloc -Wl,--wrap=free \
	-Wl,--wrap=mmap -Wl,--wrap=munmap \
	-Wl,--wrap=pthread_mutex_lock -Wl,--wrap=pthread_cond_wait -Wl,--wrap=pthread_rwlock_rdlock -Wl,--wrap=pthread_once \
	-Wl,--wrap=strcmp -Wl,--wrap=strncmp -Wl,--wrap=memcmp -Wl,--wrap=strlen -Wl,--wrap=getenv
