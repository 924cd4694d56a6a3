check_PROGRAMS += tests/test_hf_quant
tests_test_hf_quant_SOURCES = tests/test_hf_quant.c tests/golden_model.h tests/gguf_files.c tests/gguf_files.h tests/st_files.c tests/st_files.h
tests_test_hf_quant_CFLAGS = $(AK_TEST_CFLAGS)
tests_test_hf_quant_LDADD = $(AK_TEST_LIBS)
