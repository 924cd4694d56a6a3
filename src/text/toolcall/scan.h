/* Incremental scanners of values: a validator of JSON, byte by byte, and a converter of Python and
 * Gemma literals to JSON. */
#ifndef AK_TEXT_TOOLCALL_SCAN_H
#define AK_TEXT_TOOLCALL_SCAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"

/* ---- JSON --------------------------------------------------------------- */
/* Checks JSON (RFC 8259) in UTF-8 byte by byte and tells where its parts begin and end. Duplicate
 * names and lone surrogates are checked later, on the whole value (base/json.h). */
enum { AK_TC_SCAN_DEPTH_MAX = 64 };

enum ak_tc_scan_state {
    AK_TC_SCAN_VALUE,       /* before a value; the initial state */
    AK_TC_SCAN_FIRST_VALUE, /* before a value or the end of the list */
    AK_TC_SCAN_NAME,        /* before the name of a member */
    AK_TC_SCAN_FIRST_NAME,  /* before a name or the end of the object */
    AK_TC_SCAN_COLON,
    AK_TC_SCAN_VALUE_END, /* after a value */
    AK_TC_SCAN_STRING,    /* inside a string, as the next two */
    AK_TC_SCAN_ESCAPE,
    AK_TC_SCAN_HEX,
    AK_TC_SCAN_NUMBER,
    AK_TC_SCAN_WORD, /* true, false, null */
};

/* Zero-initialize. */
struct ak_tc_scan {
    uint8_t state;    /* enum ak_tc_scan_state */
    uint8_t depth;    /* number of open objects and lists */
    bool name;        /* the string is the name of a member */
    uint8_t n_left;   /* hexadecimal digits left of an escape */
    uint8_t number;   /* state within a number: enum number of scan.c */
    const char *word; /* the rest of true, false or null */
    uint64_t objects; /* bit d: an object, not a list, is open at depth d + 1 */
};

enum ak_tc_scan_result {
    AK_TC_SCAN_MORE, /* the byte belongs to the value, or is whitespace before it */
    AK_TC_SCAN_DONE, /* the byte ends an object, list or string at depth 0 */
    AK_TC_SCAN_BAD,  /* the byte is not allowed here */
};

/* Numbers and words at depth 0 have no recognizable end; they are AK_TC_SCAN_BAD. Callers read
 * objects, lists and strings. */
enum ak_tc_scan_result ak_tc_scan_byte(struct ak_tc_scan *s, char byte);

static inline bool ak_tc_is_whitespace(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

/* ---- Python and Gemma --------------------------------------------------- */
enum { AK_TC_LITERAL_DEPTH_MAX = 64 };

/* Converts values as Python and Gemma write them to JSON while they come.
 *
 * Python: f(a=1, b='x', c=[True, None], d={'k': "v"}), from the bracket on.
 * Gemma:  {a:1,b:<|"|>x<|"|>,c:[true,null],d:{k:<|"|>v<|"|>}}
 *
 * Initialize `quote`, the rest is zero. */
struct ak_tc_literal {
    const char *quote; /* Gemma: marker around strings; NULL: Python */
    uint8_t state;     /* enum state of literal.c; 0: before the bracket of the arguments */
    uint8_t depth;     /* number of open brackets */
    char closers[AK_TC_LITERAL_DEPTH_MAX];     /* per open bracket: its closing bracket */
    bool has_element[AK_TC_LITERAL_DEPTH_MAX]; /* per open bracket: an element was read */
    char quote_char;                           /* Python: quote of the open string */
    bool in_name;                              /* the open string is the name of a member */
};

enum ak_tc_literal_result {
    AK_TC_LITERAL_MORE,
    AK_TC_LITERAL_DONE,
    AK_TC_LITERAL_BAD,
    AK_TC_LITERAL_FAILED
};

/* Reads as many of the n bytes as it can: *used. An incomplete end is left for the next call, at
 * most AK_TC_LITERAL_HELD_MAX bytes. `closed`: no more text will come. */
enum { AK_TC_LITERAL_HELD_MAX = 512 };
enum ak_tc_literal_result ak_tc_literal_read(struct ak_tc_literal *l, const char *text, size_t n,
                                             bool closed, size_t *used, struct ak_buffer *json,
                                             struct ak_error *error);

/* Converts a whole text that is a Python list or dict. AK_TC_LITERAL_BAD: it is neither. */
enum ak_tc_literal_result ak_tc_literal_convert(const char *text, size_t n, struct ak_buffer *json,
                                                struct ak_error *error);

#endif
