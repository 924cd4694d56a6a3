/* Values as Python and as Gemma write them, made into JSON while they come.
 *
 * Python: f(a=1, b='x', c=[True, None], d={'k': "v"}) from the bracket on.
 * Gemma:  {a:1,b:<|"|>x<|"|>,c:[true,null],d:{k:<|"|>v<|"|>}} */
#ifndef AK_TOOLCALL_LITERAL_H
#define AK_TOOLCALL_LITERAL_H

#include <stdbool.h>

#include "base/buffer.h"

enum { AK_TC_LITERAL_DEPTH_MAX = 64 };

struct ak_tc_literal {
    const char *quote; /* Gemma's around strings; NULL: Python */
    uint8_t state;     /* of literal.c; all zero: before the arguments' bracket */
    uint8_t depth;
    char closers[AK_TC_LITERAL_DEPTH_MAX];     /* what closes that which is open */
    bool has_element[AK_TC_LITERAL_DEPTH_MAX]; /* it has an element */
    char quote_char;                           /* Python's quote of the string that is open */
    bool in_name;                              /* the string is the name of a member */
};

enum ak_tc_literal_result {
    AK_TC_LITERAL_MORE,
    AK_TC_LITERAL_DONE,
    AK_TC_LITERAL_BAD,
    AK_TC_LITERAL_FAILED
};

/* Takes what it can of the n bytes: *used. What is cut at the end stays for the next time,
 * at most AK_TC_LITERAL_HELD_MAX bytes. `closed`: nothing more comes. */
enum { AK_TC_LITERAL_HELD_MAX = 512 };
enum ak_tc_literal_result ak_tc_literal_read(struct ak_tc_literal *l, const char *text, size_t n,
                                             bool closed, size_t *used, struct ak_buffer *json,
                                             struct ak_error *error);

/* The whole text as a list or a dict of Python's. AK_TC_LITERAL_BAD: it is none. */
enum ak_tc_literal_result ak_tc_literal_convert(const char *text, size_t n, struct ak_buffer *json,
                                                struct ak_error *error);

#endif
