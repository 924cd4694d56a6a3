check_PROGRAMS += tests/test_npy
tests_test_npy_SOURCES = tests/test_npy.c tests/gguf_files.c tests/gguf_files.h
tests_test_npy_CFLAGS = $(AK_TEST_CFLAGS)
tests_test_npy_LDADD = $(AK_TEST_LIBS)
