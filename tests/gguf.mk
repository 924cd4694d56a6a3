check_PROGRAMS += tests/test_gguf
tests_test_gguf_SOURCES = tests/test_gguf.c tests/gguf_files.c tests/gguf_files.h
tests_test_gguf_CFLAGS = $(AK_TEST_CFLAGS)
tests_test_gguf_LDADD = $(AK_TEST_LIBS)

check_PROGRAMS += tests/test_gguf_checks
tests_test_gguf_checks_SOURCES = tests/test_gguf_checks.c tests/gguf_files.c tests/gguf_files.h tests/st_files.c tests/st_files.h
tests_test_gguf_checks_CFLAGS = $(AK_TEST_CFLAGS)
tests_test_gguf_checks_LDADD = $(AK_TEST_LIBS)
