/* A smaller model that guesses what a larger one will choose. */
#ifndef AK_GENERATE_DRAFT_H
#define AK_GENERATE_DRAFT_H

#include <stdint.h>

#include "base/error.h"
#include "session/session.h"

struct ak_draft_model {
    struct ak_session *session; /* of the smaller model */
    int32_t sequence;           /* in it; holds what both texts begin with, and maybe old guesses */
    uint32_t n_vocab;           /* of the larger model: no guess is beyond it */
    double seconds;             /* that it took since the caller last made it 0 */
};

/* Whether the two models speak of the same tokens. AKUNU_ERROR_ARGUMENT: they do not, and the
 * message says where they differ. */
ak_status ak_draft_model_check(const struct ak_session *session, const struct ak_session *draft,
                               struct ak_error *error);

/* Lets the smaller model see a prompt, all but its last token, so that guesses cost a token each.
 * Does nothing where its context has no room, or its vocabulary lacks one of them. */
ak_status ak_draft_model_prefill(struct ak_draft_model *d, const int32_t *ids, uint32_t n,
                                 akunu_cancel_fn *cancel, void *user, struct ak_error *error);

/* Tokens that the smaller model has not seen of a text that continues as `ids` (n of them). */
uint32_t ak_draft_model_count_unseen(const struct ak_draft_model *d, const int32_t *ids,
                                     uint32_t n);

/* The token that the smaller model thinks likeliest after a text, and how likely, in [0, 1].
 * *token is -1 where its context has no room, or one of the two models lacks a token. */
ak_status ak_draft_model_propose(struct ak_draft_model *d, const int32_t *ids, uint32_t n,
                                 int32_t *token, float *probability, struct ak_error *error);

/* ---- Prompt lookup: prompt_lookup.c ------------------------------------- */
/* Guesses the next tokens of a text by what followed its last ones before: in a summary
 * or an edit much of the prompt comes again (prompt lookup decoding; LLMA, Yang et al.
 * 2023). As a compressor finds matches: chains of the places where the last two tokens
 * stood, of which the one with most tokens alike before it is taken. */

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
