check_PROGRAMS += tests/test_embed
tests_test_embed_SOURCES = tests/test_embed.c tests/golden_model.h
tests_test_embed_CFLAGS = $(AK_TEST_CFLAGS)
tests_test_embed_LDADD = $(AK_TEST_LIBS)
