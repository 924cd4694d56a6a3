/* Well-formed UTF-8 (RFC 3629): no overlong forms, no surrogates. */
#ifndef AK_CLI_UTF8_H
#define AK_CLI_UTF8_H

#include <stddef.h>

/* Bytes of the character that `text` begins with, 0 where it is malformed or n is 0. */
size_t cli_utf8_length(const char *text, size_t n);

#endif
