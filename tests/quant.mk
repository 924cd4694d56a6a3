check_PROGRAMS += tests/test_quant
tests_test_quant_SOURCES = tests/test_quant.c tests/gguf_files.c tests/gguf_files.h
tests_test_quant_CFLAGS = $(AK_TEST_CFLAGS)
tests_test_quant_LDADD = $(AK_TEST_LIBS)
