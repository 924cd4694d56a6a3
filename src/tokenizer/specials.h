/* Finds the tokens that are written out in a text as they are: control tokens
 * ("<|im_end|>") and those that the model's makers added by hand. */
#ifndef AK_TOKENIZER_SPECIALS_H
#define AK_TOKENIZER_SPECIALS_H

#include "tokenizer/token_bytes.h"

struct ak_tok_special {
    const char *text; /* in the arena of the pieces */
    uint32_t n;
    int32_t id;
    bool matches_always; /* not only where control tokens are asked for */
    /* Of tokenizer.json: only where no word goes on at its ends; takes the blanks to
     * its left, to its right. */
    bool single_word, lstrip, rstrip;
};

struct ak_tok_specials {
    struct ak_tok_special *sorted; /* by their bytes */
    uint32_t n;
    uint32_t first[257]; /* those that begin with byte b are [first[b], first[b+1]) */
};

/* `sorted` is an array from ak_alloc of n with non-empty texts, in any order; it
 * is the specials' own from now on. */
void ak_tok_specials_init(struct ak_tok_specials *s, struct ak_tok_special *sorted, uint32_t n);
void ak_tok_specials_free(struct ak_tok_specials *s);

/* The next special token at or after text[from], the longest where several begin
 * at one place; NULL where there is none. *at is where it begins. */
const struct ak_tok_special *ak_tok_specials_next(const struct ak_tok_specials *s, bool control,
                                                  const char *text, size_t n, size_t from,
                                                  size_t *at);

/* The token of exactly this text, NULL where it is none. */
const struct ak_tok_special *ak_tok_specials_find(const struct ak_tok_specials *s,
                                                  const char *name);

#endif
