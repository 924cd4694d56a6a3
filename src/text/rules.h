/* How the models whose files name a pre-tokenizer cut text into words. */
#ifndef AK_TEXT_RULES_H
#define AK_TEXT_RULES_H

#include <stdbool.h>

enum { AK_MAX_PATTERNS = 6 };

/* A pattern cuts out its matches; what lies between them are words as well, and
 * the next pattern is applied to each of the pieces on its own. */
struct ak_rule {
    const char *names; /* between blanks */
    const char *patterns[AK_MAX_PATTERNS];
    bool adds_bos;    /* where the file does not say */
    bool whole_words; /* a word that is a token is not merged */
};

extern const struct ak_rule ak_rules[]; /* the first one is the default, the last one has no names */

#endif
