check_PROGRAMS += tests/test_hf
tests_test_hf_SOURCES = tests/test_hf.c tests/golden_model.h tests/gguf_files.c tests/gguf_files.h tests/st_files.c tests/st_files.h
tests_test_hf_CFLAGS = $(AK_TEST_CFLAGS)
tests_test_hf_LDADD = $(AK_TEST_LIBS)
