/* Sets of characters, and how a character is spelled in bytes. */
#ifndef AK_GRAMMAR_CHARS_H
#define AK_GRAMMAR_CHARS_H

#include "grammar/builder.h"

enum { AK_GRAMMAR_CODE_POINT_MAX = 0x10ffff };

struct ak_grammar_char_range {
    uint32_t low, high;
};

/* Rising ranges with gaps between them and without surrogates, once normalized. All
 * zero is the empty set; free with ak_grammar_char_set_free. */
struct ak_grammar_char_set {
    struct ak_grammar_char_range *ranges;
    uint32_t n, capacity;
};

/* The builder has the failure. */
void ak_grammar_char_set_add(struct ak_grammar_builder *b, struct ak_grammar_char_set *s,
                             uint32_t low, uint32_t high);
void ak_grammar_char_set_normalize(struct ak_grammar_char_set *s);
/* a normalized one; stays normalized */
void ak_grammar_char_set_invert(struct ak_grammar_builder *b, struct ak_grammar_char_set *s);
/* every character */
void ak_grammar_char_set_fill(struct ak_grammar_builder *b, struct ak_grammar_char_set *s);
void ak_grammar_char_set_clip(struct ak_grammar_char_set *s, uint32_t low, uint32_t high);
/* a normalized one */
bool ak_grammar_char_set_has(const struct ak_grammar_char_set *s, uint32_t c);
void ak_grammar_char_set_copy(struct ak_grammar_builder *b, struct ak_grammar_char_set *to,
                              const struct ak_grammar_char_set *from);
void ak_grammar_char_set_free(struct ak_grammar_char_set *s);

/* One character of a normalized set in UTF-8. */
uint32_t ak_gb_chars(struct ak_grammar_builder *b, const struct ak_grammar_char_set *s);

/* One character of a normalized set within a JSON string. `any`: in every way that JSON has,
 * else plainly, and escaped where it must be. */
uint32_t ak_gb_json_chars(struct ak_grammar_builder *b, const struct ak_grammar_char_set *s,
                          bool any);

#endif
