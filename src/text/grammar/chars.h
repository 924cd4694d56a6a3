/* Character sets, and grammar expressions that spell one character of a set in bytes: as UTF-8, or
 * within a JSON string. */
#ifndef AK_TEXT_GRAMMAR_CHARS_H
#define AK_TEXT_GRAMMAR_CHARS_H

#include "text/grammar/builder.h"

enum { AK_GRAMMAR_CODE_POINT_MAX = 0x10ffff };

struct ak_grammar_char_range {
    uint32_t low, high;
};

/* Once normalized: ranges in rising order with gaps between them. Surrogates may be in a set, but
 * are never spelled. All zero is the empty set; free with ak_grammar_char_set_free. */
struct ak_grammar_char_set {
    struct ak_grammar_char_range *ranges;
    uint32_t n, capacity;
};

/* Functions with a builder record a failure there. */
void ak_grammar_char_set_add(struct ak_grammar_builder *b, struct ak_grammar_char_set *s,
                             uint32_t low, uint32_t high);
void ak_grammar_char_set_normalize(struct ak_grammar_char_set *s);
/* The set must be normalized, and stays so. */
void ak_grammar_char_set_invert(struct ak_grammar_builder *b, struct ak_grammar_char_set *s);
/* Sets it to all code points. */
void ak_grammar_char_set_fill(struct ak_grammar_builder *b, struct ak_grammar_char_set *s);
void ak_grammar_char_set_clip(struct ak_grammar_char_set *s, uint32_t low, uint32_t high);
/* The set must be normalized. */
bool ak_grammar_char_set_has(const struct ak_grammar_char_set *s, uint32_t c);
void ak_grammar_char_set_copy(struct ak_grammar_builder *b, struct ak_grammar_char_set *to,
                              const struct ak_grammar_char_set *from);
void ak_grammar_char_set_free(struct ak_grammar_char_set *s);

/* One character of a normalized set, in UTF-8. */
uint32_t ak_gb_chars(struct ak_grammar_builder *b, const struct ak_grammar_char_set *s);

/* One character of a normalized set within a JSON string. `any`: in every spelling that JSON
 * allows; otherwise escaped only if JSON requires it. */
uint32_t ak_gb_json_chars(struct ak_grammar_builder *b, const struct ak_grammar_char_set *s,
                          bool any);

#endif
