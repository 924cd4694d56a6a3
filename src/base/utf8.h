/* UTF-8, one character at a time (The Unicode Standard, table 3-7). */
#ifndef AK_BASE_UTF8_H
#define AK_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ak_utf8 {
    uint32_t code; /* where valid */
    /* of the character; where not valid, of the longest part that could begin one: at least 1 */
    uint8_t bytes;
    bool valid;
    bool truncated; /* not valid only because the text ends inside the character */
};

/* Looks at the beginning of n ≥ 1 bytes. */
struct ak_utf8 ak_utf8_next(const char *text, size_t n);

/* The number of bytes from the start that are valid UTF-8. */
size_t ak_utf8_valid_bytes(const char *text, size_t n);

#endif
