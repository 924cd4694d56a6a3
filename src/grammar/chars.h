/* Sets of characters, and how a character is spelled in bytes. */
#ifndef AK_TEXT_GRAMMAR_CHARS_H
#define AK_TEXT_GRAMMAR_CHARS_H

#include "grammar/build.h"

enum { AK_CHAR_MOST = 0x10ffff };

struct ak_char_range {
    uint32_t low, high;
};

/* Rising ranges with gaps between them and without surrogates, once it was settled. All
 * zero is the empty set; free with ak_char_set_free. */
struct ak_char_set {
    struct ak_char_range *ranges;
    uint32_t n, room;
};

/* The builder has the failure. */
void ak_char_set_add(struct ak_build *b, struct ak_char_set *s, uint32_t low, uint32_t high);
void ak_char_set_settle(struct ak_char_set *s);
/* a settled one; stays settled */
void ak_char_set_invert(struct ak_build *b, struct ak_char_set *s);
void ak_char_set_all(struct ak_build *b, struct ak_char_set *s); /* every character */
void ak_char_set_clip(struct ak_char_set *s, uint32_t low, uint32_t high);
bool ak_char_set_has(const struct ak_char_set *s, uint32_t c); /* a settled one */
void ak_char_set_copy(struct ak_build *b, struct ak_char_set *to, const struct ak_char_set *from);
void ak_char_set_free(struct ak_char_set *s);

/* One character of a settled set in UTF-8. */
uint32_t ak_build_chars(struct ak_build *b, const struct ak_char_set *s);

/* One character of a settled set within a JSON string. `any`: in every way that JSON has,
 * else plainly, and escaped where it must be. */
uint32_t ak_build_json_chars(struct ak_build *b, const struct ak_char_set *s, bool any);

#endif
