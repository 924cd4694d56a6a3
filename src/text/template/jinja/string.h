/* Strings of templates: UTF-8 bytes, indexed by characters as in Python. Also buffers to build
 * them, and conversions between values and text. */
#ifndef AK_TEXT_TEMPLATE_JINJA_STRING_H
#define AK_TEXT_TEMPLATE_JINJA_STRING_H

#include "text/template/jinja/value.h"

/* Does not copy: `bytes` must live as long as the arena. */
struct ak_jval ak_j_string_at(struct ak_jenv *j, const char *bytes, size_t n);
/* Copies. */
struct ak_jval ak_j_string(struct ak_jenv *j, const char *bytes, size_t n);
struct ak_jval ak_j_text(struct ak_jenv *j, const char *terminated);
struct ak_jval ak_j_concat(struct ak_jenv *j, const struct ak_jstr *a, const struct ak_jstr *b);

static inline bool ak_j_is_ascii(const struct ak_jstr *s)
{
    return s->n == s->n_chars;
}
/* Byte offset of character i <= n_chars. */
size_t ak_j_byte_offset(struct ak_jenv *j, const struct ak_jstr *s, size_t i);
size_t ak_j_count_chars(const char *bytes, size_t n);
/* The character at byte offset `at`; *next gets the offset of the next one. */
uint32_t ak_j_char_at(const struct ak_jstr *s, size_t at, size_t *next);
/* A substring by byte offsets; shares the bytes. */
struct ak_jval ak_j_substring(struct ak_jenv *j, const struct ak_jstr *s, size_t begin, size_t end);

bool ak_j_string_is(struct ak_jval v, const char *text);
bool ak_j_strings_equal(const struct ak_jstr *a, const struct ak_jstr *b);
int ak_j_strings_order(const struct ak_jstr *a, const struct ak_jstr *b);
/* Byte offset of the first occurrence at or after `from`; of the last one before `end`. SIZE_MAX:
 * none. */
size_t ak_j_find(const struct ak_jstr *s, const struct ak_jstr *part, size_t from);
size_t ak_j_find_last(const struct ak_jstr *s, const struct ak_jstr *part, size_t end);

bool ak_j_is_whitespace(uint32_t c); /* str.isspace, which includes a few control characters */
/* Byte range left after stripping the characters of `chars`; NULL: whitespace. */
void ak_j_strip_range(const struct ak_jstr *s, const struct ak_jstr *chars, bool left, bool right,
                      size_t *begin, size_t *end);

/* ---- Text buffers ------------------------------------------------------- */
struct ak_jout {
    char *bytes;
    size_t n, capacity;
};
void ak_j_put_bytes(struct ak_jenv *j, struct ak_jout *out, const char *bytes, size_t n);
void ak_j_put_text(struct ak_jenv *j, struct ak_jout *out, const char *terminated);
void ak_j_put_char(struct ak_jenv *j, struct ak_jout *out, uint32_t c);
void ak_j_put_str(struct ak_jenv *j, struct ak_jout *out, const struct ak_jstr *s);
void ak_j_put_repeated(struct ak_jenv *j, struct ak_jout *out, const struct ak_jstr *s,
                       uint64_t times);
/* Makes a string of the buffer's bytes without a copy. */
struct ak_jval ak_j_finish(struct ak_jenv *j, const struct ak_jout *out);

/* ---- repr.c: values as text --------------------------------------------- */
void ak_j_put_value(struct ak_jenv *j, struct ak_jout *out, struct ak_jval v); /* str(v) */
void ak_j_put_repr(struct ak_jenv *j, struct ak_jout *out, struct ak_jval v);  /* repr(v) */
struct ak_jstr *ak_j_str(struct ak_jenv *j, struct ak_jval v);                 /* str(v) */
/* repr(v), shortened, NUL-terminated; for messages */
const char *ak_j_show(struct ak_jenv *j, struct ak_jval v);
void ak_j_put_int(struct ak_jenv *j, struct ak_jout *out, int64_t i);
/* repr(x): the shortest decimal that reads back as x */
void ak_j_put_float(struct ak_jenv *j, struct ak_jout *out, double x);

/* ---- number.c: text as numbers ------------------------------------------ */
/* As Python's float(): allows surrounding whitespace, underscores between digits, inf and nan. */
bool ak_j_parse_float(const char *text, size_t n, double *out);
/* As Python's int(text, base); base 0: by prefix. False: not an integer of 64 bits. */
bool ak_j_parse_int(const char *text, size_t n, unsigned base, int64_t *out);
/* As C's printf with %.*f, e or g, but with a decimal point in any locale. */
void ak_j_put_printf(struct ak_jenv *j, struct ak_jout *out, char conversion, int precision,
                     bool alternate, double x);

#endif
