/* Unicode: character properties and lower case, from utf8proc except white space and BERT's Chinese
 * characters, and the UTF-8 encoder (decoder: utf8.h). Files that need other properties call
 * utf8proc themselves, as text/grammar/classes.c does. */
#ifndef AK_BASE_UNICODE_H
#define AK_BASE_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool ak_is_whitespace(uint32_t c);      /* White_Space */
bool ak_is_mark(uint32_t c);            /* M* */
bool ak_is_nonspacing_mark(uint32_t c); /* Mn */
bool ak_is_control(uint32_t c);         /* Cc, Cf, Co */
bool ak_is_punctuation(uint32_t c);     /* P*, and ASCII's symbols */
bool ak_is_number(uint32_t c);          /* N* */
bool ak_is_word_char(uint32_t c);       /* part of a word: letters, marks, digits, connectors */
/* as BERT defines it: ideographs, but neither kana nor hangul */
bool ak_is_chinese(uint32_t c);

/* Write UTF-8 and return the number of bytes, at most 4. ak_to_lower: of the lower case form. */
size_t ak_to_lower(uint32_t c, char out[4]);
size_t ak_utf8_encode(uint32_t c, char out[4]);

#endif
