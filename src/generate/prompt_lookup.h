/* Guesses the next tokens of a text by what followed its last ones before: in a summary
 * or an edit much of the prompt comes again (prompt lookup decoding; LLMA, Yang et al.
 * 2023). As a compressor finds matches: chains of the places where the last two tokens
 * stood, of which the one with most tokens alike before it is taken. */
#ifndef AK_GENERATE_PROMPT_LOOKUP_H
#define AK_GENERATE_PROMPT_LOOKUP_H

#include <stdint.h>

#include "base/error.h"

enum {
    AK_DRAFT_LOOKUP_NONE = 0,
    AK_DRAFT_LOOKUP_MIN = 2,
    AK_DRAFT_LOOKUP_MAX = 24,
    /* tokens alike */ AK_DRAFT_LOOKUP_SPARE = 16
};

struct ak_draft_lookup {
    int32_t *tokens; /* AK_DRAFT_LOOKUP_SPARE places behind them are the caller's to write */
    uint32_t n, capacity;
    uint32_t *heads;    /* by the hash of two tokens: the last place after them + 1 */
    uint32_t *previous; /* of each place: the one before it in its chain + 1 */
    uint32_t mask;
};

/* For texts of at most `capacity` tokens. */
ak_status ak_draft_lookup_create(uint32_t capacity, struct ak_draft_lookup *out,
                                 struct ak_error *error);
void ak_draft_lookup_clear(struct ak_draft_lookup *l); /* an all-zero one too */

/* Adds the next token of the text; what is beyond the room is left out. */
void ak_draft_lookup_push(struct ak_draft_lookup *l, int32_t token);

/* Where the text may go on from: *at is the place of the guessed next token. Gives how many
 * tokens before it are the text's last ones, AK_DRAFT_LOOKUP_MIN … AK_DRAFT_LOOKUP_MAX, or
 * AK_DRAFT_LOOKUP_NONE.
 */
uint32_t ak_draft_lookup_find(const struct ak_draft_lookup *l, uint32_t *at);

/* n tokens from place `at` on; where the text ends, what was written goes on. */
void ak_draft_lookup_copy(const struct ak_draft_lookup *l, uint32_t at, uint32_t n, int32_t *out);

#endif
