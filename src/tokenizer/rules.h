/* How the models whose files name a pre-tokenizer cut text into words. */
#ifndef AK_TEXT_RULES_H
#define AK_TEXT_RULES_H

#include "weights/provider.h"

enum { AK_MAX_PATTERNS = 6 };

/* A pattern cuts out its matches; what lies between them are words as well, and
 * the next pattern is applied to each of the pieces on its own. */
struct ak_cut_rule {
    const char *names; /* between blanks */
    const char *patterns[AK_MAX_PATTERNS];
    bool adds_bos;    /* where the file does not say */
    bool whole_words; /* a word that is a token is not merged */
};

/* Names for BPE over characters instead of bytes; two of them are those of models. A word
 * of line ends that is a token is not merged where `whole_lines`. */
struct ak_raw_rule {
    const char *names, *pattern; /* NULL: words are parted by white space, which is left out */
    bool marks_blanks;           /* with ▁ */
    bool whole_lines;
    bool adds_bos; /* whatever the file says */
};

extern const struct ak_raw_rule ak_raw_rules[]; /* the last one has no names */

/* pretokenize.c: NULL where the name is none of theirs. */
const struct ak_raw_rule *ak_raw_rule_of(struct ak_text name);

/* the first one is the default, the last one has no names */
extern const struct ak_cut_rule ak_cut_rules[];

#endif
