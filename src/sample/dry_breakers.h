/* Sequence breakers of DRY: strings, and which tokens they are.
 *
 * A breaker may begin within one token and end in later ones. So for each token of the
 * vocabulary it is noted whether its text holds the whole string, or ends in the string's
 * beginning; in the latter case the rest of the string, as the tokenizer cuts it, has to
 * follow. */
#ifndef AK_SAMPLE_DRY_BREAKERS_H
#define AK_SAMPLE_DRY_BREAKERS_H

#include <stdint.h>

#include "tokenizer/tokenizer.h"

enum { AK_SAMPLE_DRY_BREAKER_BYTES_MAX = 40, AK_SAMPLE_DRY_TAIL_MAX = 20 };

struct ak_sample_dry_tail {
    /* 0: the head alone is a breaker; no more than AK_SAMPLE_DRY_TAIL_MAX are looked at */
    uint32_t n;
    int32_t tokens[AK_SAMPLE_DRY_TAIL_MAX];
};

struct ak_sample_dry_breakers {
    /* of the vocabulary's tokens and one more: where each one's begin in `head_tails`; NULL: no
     * breakers */
    uint32_t *first_head;
    uint32_t *head_tails; /* numbers of tails */
    struct ak_sample_dry_tail *tails;
    uint32_t n_tails, n_heads, capacity;
};

/* `strings` ends with NULL; NULL: "\n", ":", "\"" and "*". Where there are any, a tokenizer is
 * needed: AKUNU_ERROR_UNSUPPORTED without one. */
ak_status ak_sample_dry_breakers_init(struct ak_sample_dry_breakers *b, const char *const *strings,
                                      const struct ak_tokenizer *tokenizer, uint32_t n_vocab,
                                      struct ak_error *error);
void ak_sample_dry_breakers_release(struct ak_sample_dry_breakers *b); /* zeroed is allowed */

/* How many tokens at the end of a history stand behind its last breaker; `n` where none is
 * among the last n. */
uint32_t ak_sample_dry_count_unbroken(const struct ak_sample_dry_breakers *b,
                                      const int32_t *newest_first, uint32_t n);

/* The token alone is a breaker. */
bool ak_sample_dry_is_breaker(const struct ak_sample_dry_breakers *b, int32_t token);

#endif
