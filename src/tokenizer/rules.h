/* How the models whose files name a pre-tokenizer cut text into words. */
#ifndef AK_TOKENIZER_RULES_H
#define AK_TOKENIZER_RULES_H

#include "weights/provider.h"

enum { AK_TOK_PATTERNS_MAX = 6 };

/* A pattern cuts out its matches; what lies between them are words as well, and
 * the next pattern is applied to each of the pieces on its own. */
struct ak_tok_pre_rule {
    const char *names; /* between blanks */
    const char *patterns[AK_TOK_PATTERNS_MAX];
    bool adds_bos;      /* where the file does not say */
    bool ignore_merges; /* a word that is a token is not merged */
};

/* Names for BPE over characters instead of bytes; two of them are those of models. A word
 * of newlines that is a token is not merged where `ignore_newline_merges`. */
struct ak_tok_char_rule {
    const char *names, *pattern; /* NULL: words are parted by white space, which is left out */
    bool uses_metaspace;         /* with ▁ */
    bool ignore_newline_merges;
    bool adds_bos; /* whatever the file says */
};

extern const struct ak_tok_char_rule ak_tok_char_rules[]; /* the last one has no names */

/* pretokenize.c: NULL where the name is none of theirs. */
const struct ak_tok_char_rule *ak_tok_find_char_rule(struct ak_text name);

/* the first one is the default, the last one has no names */
extern const struct ak_tok_pre_rule ak_tok_pre_rules[];

#endif
