check_PROGRAMS += tests/test_whisper_ggml
tests_test_whisper_ggml_SOURCES = tests/test_whisper_ggml.c tests/gguf_files.c tests/gguf_files.h
tests_test_whisper_ggml_CFLAGS = $(AK_TEST_CFLAGS)
tests_test_whisper_ggml_LDADD = $(AK_TEST_LIBS)
