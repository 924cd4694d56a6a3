/* Values as Python and as Gemma write them, made into JSON while they come.
 *
 * Python: f(a=1, b='x', c=[True, None], d={'k': "v"}) from the bracket on.
 * Gemma:  {a:1,b:<|"|>x<|"|>,c:[true,null],d:{k:<|"|>v<|"|>}} */
#ifndef AK_TEXT_CALLS_LITERAL_H
#define AK_TEXT_CALLS_LITERAL_H

#include <stdbool.h>

#include "base/buffer.h"

enum { AK_LITERAL_MOST_DEPTH = 64 };

struct ak_literal {
    const char *quote; /* Gemma's around strings; NULL: Python */
    uint8_t state;     /* of literal.c; all zero: before the arguments' bracket */
    uint8_t depth;
    char ends[AK_LITERAL_MOST_DEPTH]; /* what closes that which is open */
    bool any[AK_LITERAL_MOST_DEPTH];  /* it has an element */
    char end;                         /* Python's quote of the string that is open */
    bool name;                        /* the string is the name of a member */
};

enum ak_literal_step { AK_LITERAL_MORE, AK_LITERAL_DONE, AK_LITERAL_BAD, AK_LITERAL_FAILED };

/* Takes what it can of the n bytes: *used. What is cut at the end stays for the next time,
 * at most AK_LITERAL_MOST_HELD bytes. `closed`: nothing more comes. */
enum { AK_LITERAL_MOST_HELD = 512 };
enum ak_literal_step ak_literal_read(struct ak_literal *l, const char *text, size_t n, bool closed,
                                     size_t *used, struct ak_buffer *json, struct ak_error *error);

/* The whole text as a list or a dict of Python's. AK_LITERAL_BAD: it is none. */
enum ak_literal_step ak_literal_value(const char *text, size_t n, struct ak_buffer *json,
                                      struct ak_error *error);

#endif
