/* Sequence breakers of DRY: strings that end a repetition, matched as tokens.
 *
 * A breaker may begin inside one token and end in later ones. For each token of the vocabulary the
 * table says whether its text contains the whole string or ends in a prefix of it (the head). After
 * a prefix the rest of the string, as the tokenizer encodes it, must follow (the tail). */
#ifndef AK_ENGINE_SAMPLE_DRY_BREAKERS_H
#define AK_ENGINE_SAMPLE_DRY_BREAKERS_H

#include <stdint.h>

#include "text/tokenizer/tokenizer.h"

enum { AK_SAMPLE_DRY_BREAKER_BYTES_MAX = 40, AK_SAMPLE_DRY_TAIL_MAX = 20 };

struct ak_sample_dry_tail {
    /* 0: the head alone is a breaker; at most AK_SAMPLE_DRY_TAIL_MAX are compared */
    uint32_t n;
    int32_t tokens[AK_SAMPLE_DRY_TAIL_MAX];
};

struct ak_sample_dry_breakers {
    /* [n_vocab + 1]: first entry of each token in `head_tails`; NULL: no breakers */
    uint32_t *first_head;
    uint32_t *head_tails; /* indices in `tails` */
    struct ak_sample_dry_tail *tails;
    uint32_t n_tails, n_heads, capacity;
};

/* `strings` ends with NULL. A NULL list means "\n", ":", "\"" and "*". A nonempty list needs a
 * tokenizer: AKUNU_ERROR_UNSUPPORTED without one. */
ak_status ak_sample_dry_breakers_init(struct ak_sample_dry_breakers *b, const char *const *strings,
                                      const struct ak_tokenizer *tokenizer, uint32_t n_vocab,
                                      struct ak_error *error);
void ak_sample_dry_breakers_release(struct ak_sample_dry_breakers *b); /* zeroed is allowed */

/* Number of tokens after the last breaker of a history; n if its last n tokens hold none. */
uint32_t ak_sample_dry_count_unbroken(const struct ak_sample_dry_breakers *b,
                                      const int32_t *newest_first, uint32_t n);

/* Whether the token alone is a breaker. */
bool ak_sample_dry_is_breaker(const struct ak_sample_dry_breakers *b, int32_t token);

#endif
