/* A byte at a time: is this JSON (RFC 8259), and where do its parts begin and end?
 * Bytes are taken to be UTF-8 already. What only a whole value tells, such as names
 * given twice and lone surrogates, is looked at afterwards (base/json.h). */
#ifndef AK_TOOLCALL_SCAN_H
#define AK_TOOLCALL_SCAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"

/* ---- JSON --------------------------------------------------------------- */

enum { AK_TC_SCAN_DEPTH_MAX = 64 };

enum ak_tc_scan_state {
    AK_TC_SCAN_VALUE,       /* a value must come; all zero: the beginning */
    AK_TC_SCAN_FIRST_VALUE, /* or the end of the list */
    AK_TC_SCAN_NAME,        /* a member's name must come */
    AK_TC_SCAN_FIRST_NAME,  /* or the end of the object */
    AK_TC_SCAN_COLON,
    AK_TC_SCAN_VALUE_END, /* a value is complete */
    AK_TC_SCAN_STRING,    /* inside a string … */
    AK_TC_SCAN_ESCAPE,
    AK_TC_SCAN_HEX,
    AK_TC_SCAN_NUMBER,
    AK_TC_SCAN_WORD, /* true, false, null */
};

struct ak_tc_scan {
    uint8_t state;  /* enum ak_tc_scan_state */
    uint8_t depth;  /* how many objects and lists are open */
    bool name;      /* the string is a member's name */
    uint8_t n_left; /* hexadecimal digits of an escape, or letters of a word */
    uint8_t number; /* how far a number is: its own states, in scan.c */
    const char *word;
    uint64_t objects; /* bit d: what is open at depth d + 1 is an object */
};

enum ak_tc_scan_result {
    AK_TC_SCAN_MORE, /* the byte belongs to the value, or to the blanks before it */
    AK_TC_SCAN_DONE, /* it was the last one of an object, a list or a string at depth 0 */
    AK_TC_SCAN_BAD,  /* it can stand nowhere here */
};

/* Numbers and words at depth 0 have no last byte and are AK_TC_SCAN_BAD: values of interest
 * are objects and lists. */
enum ak_tc_scan_result ak_tc_scan_byte(struct ak_tc_scan *s, char byte);

static inline bool ak_tc_is_whitespace(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

/* ---- Python and Gemma --------------------------------------------------- */

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
