check_PROGRAMS += tests/test_convert
tests_test_convert_SOURCES = tests/test_convert.c tests/gguf_files.c tests/gguf_files.h tests/st_files.c tests/st_files.h
tests_test_convert_CFLAGS = $(AK_TEST_CFLAGS)
tests_test_convert_LDADD = $(AK_TEST_LIBS)
