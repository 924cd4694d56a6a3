check_PROGRAMS += tests/test_opencl
tests_test_opencl_SOURCES = tests/test_opencl.c tests/table_rig.h tests/gguf_files.c tests/gguf_files.h
tests_test_opencl_CFLAGS = $(AK_TEST_CFLAGS)
tests_test_opencl_LDADD = $(AK_TEST_LIBS)
