/* Numbers of JSON texts that jansson cannot hold: integers beyond 64 bits, reals beyond a double,
 * and the NaN, Infinity and -Infinity that Python writes. A text is marked before jansson reads it:
 * each such number becomes an object that holds its digits as a string, which is here called a wide
 * number. The library and the programs both compile this folder, which allocates nothing. */
#ifndef AK_BASE_JSON_WIDE_H
#define AK_BASE_JSON_WIDE_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

enum {
    AK_WIDE_DIGITS =
        1, /* keep the digits of integers beyond 64 bits, which become reals otherwise */
    AK_WIDE_PYTHON = 2 /* accept NaN, Infinity and -Infinity; jansson refuses them otherwise */
};

/* Bytes of a byte order mark at the start of the text: 3 or 0. */
size_t ak_wide_skip_mark(const char *text, size_t n);

/* Writes the text with its wide numbers marked to `out`, and returns its length; `out` NULL:
 * returns the length alone, which is n if there is nothing to change. What is not JSON stays as it
 * is. */
size_t ak_wide_mark(const char *text, size_t n, unsigned flags, char *out);

/* The number as it was written; NULL: the value is not a wide number. */
const char *ak_wide_text(const json_t *value);

/* Is the wide number an integer? */
bool ak_wide_is_integer(const char *text);

/* The nearest double of a wide number: an infinity beyond the largest, or NaN. */
double ak_wide_double(const char *text);

/* Undoes the marking in a text that jansson wrote, in place: the text becomes shorter. */
void ak_wide_unmark(char *text);

#endif
