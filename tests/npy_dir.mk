check_PROGRAMS += tests/test_npy_dir
tests_test_npy_dir_SOURCES = tests/test_npy_dir.c tests/gguf_files.c tests/gguf_files.h tests/st_files.c tests/st_files.h
tests_test_npy_dir_CFLAGS = $(AK_TEST_CFLAGS)
tests_test_npy_dir_LDADD = $(AK_TEST_LIBS)
