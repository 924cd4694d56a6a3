check_PROGRAMS += tests/test_kernels
tests_test_kernels_SOURCES = tests/test_kernels.c tests/evex.h
tests_test_kernels_CFLAGS = $(AK_TEST_CFLAGS)
tests_test_kernels_LDADD = $(AK_TEST_EVEX) $(AK_TEST_LIBS)

# The sources of the AVX-VNNI bundle once more, for machines with AVX-512 (tests/evex.h).
if HAVE_EVEX
AK_TEST_EVEX = tests/libevex.la
check_LTLIBRARIES = tests/libevex.la
tests_libevex_la_SOURCES = tests/evex.h tests/evex32.c tests/evex256.c
tests_libevex_la_CFLAGS = $(AM_CFLAGS) $(AK_KERNEL_CFLAGS) -mavx2 -mfma -mf16c -mavx512vl -mavx512vnni
endif
