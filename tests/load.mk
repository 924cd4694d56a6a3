check_PROGRAMS += tests/test_load
tests_test_load_SOURCES = tests/test_load.c tests/gguf_files.c tests/gguf_files.h
tests_test_load_CFLAGS = $(AK_TEST_CFLAGS)
tests_test_load_LDADD = $(AK_TEST_LIBS)
