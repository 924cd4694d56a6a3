check_PROGRAMS += tests/test_gguf
tests_test_gguf_SOURCES = tests/test_gguf.c tests/gguf_files.c tests/gguf_files.h
tests_test_gguf_CFLAGS = $(AK_TEST_CFLAGS)
tests_test_gguf_LDADD = $(AK_TEST_LIBS)
