check_PROGRAMS += tests/test_message
tests_test_message_SOURCES = tests/test_message.c src/cli/message.c src/cli/utf8.c
tests_test_message_CFLAGS = $(AK_TEST_CFLAGS)
tests_test_message_LDADD = $(AK_TEST_LIBS)
