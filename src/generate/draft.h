/* A smaller model that guesses what a larger one will choose. */
#ifndef AK_GENERATE_DRAFT_H
#define AK_GENERATE_DRAFT_H

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

#endif
