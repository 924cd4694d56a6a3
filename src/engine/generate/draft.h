/* Drafters for speculative decoding: a smaller model (draft_model.c) and earlier text
 * (prompt_lookup.c). */
#ifndef AK_ENGINE_GENERATE_DRAFT_H
#define AK_ENGINE_GENERATE_DRAFT_H

#include <stdint.h>

#include "base/error.h"
#include "engine/session/session.h"

struct ak_draft_model {
    struct ak_session *session; /* of the draft model */
    int32_t sequence; /* its sequence; holds the common prefix of both texts, maybe old drafts */
    uint32_t n_vocab; /* vocabulary of the target model; drafts stay below it */
    double seconds;   /* time it took since the caller last reset it */
};

/* Whether both models have the same tokens. AKUNU_ERROR_ARGUMENT: the message says where they
 * differ. */
ak_status ak_draft_model_check(const struct ak_session *session, const struct ak_session *draft,
                               struct ak_error *error);

/* Runs a prompt in the draft model, except for its last token. Each drafted token then costs one
 * pass of one token. Does nothing if its context is too small or its vocabulary lacks one of the
 * tokens. */
ak_status ak_draft_model_prefill(struct ak_draft_model *d, const int32_t *ids, uint32_t n,
                                 akunu_cancel_fn *cancel, void *user, struct ak_error *error);

/* Number of tokens of a text, `ids` (n of them), that the draft model has not run. */
uint32_t ak_draft_model_count_unseen(const struct ak_draft_model *d, const int32_t *ids,
                                     uint32_t n);

/* The draft model's most likely token after a text, and its probability. *token is -1 if its
 * context is too small, or if one of the models lacks a token. */
ak_status ak_draft_model_propose(struct ak_draft_model *d, const int32_t *ids, uint32_t n,
                                 int32_t *token, float *probability, struct ak_error *error);

/* ---- Prompt lookup: prompt_lookup.c ------------------------------------- */
/* Prompt lookup (n-gram) drafter: proposes what followed the last tokens before, because summaries
 * and edits repeat much of the prompt (prompt lookup decoding; LLMA, Yang et al. 2023). Positions
 * are found as a compressor finds matches: hash chains of earlier occurrences of the last two
 * tokens. The longest match wins. */

enum {
    AK_DRAFT_LOOKUP_NONE = 0,
    AK_DRAFT_LOOKUP_MIN = 2,   /* shortest match, in tokens */
    AK_DRAFT_LOOKUP_MAX = 24,  /* longest match */
    AK_DRAFT_LOOKUP_SPARE = 16 /* entries of `tokens` beyond the capacity */
};

struct ak_draft_lookup {
    /* [capacity + AK_DRAFT_LOOKUP_SPARE]; the spare entries after n are the caller's scratch */
    int32_t *tokens;
    uint32_t n, capacity;
    uint32_t *heads;    /* by hash of two tokens: 1 + the last position after them; 0: none */
    uint32_t *previous; /* by position: 1 + the previous one of its chain; 0: none */
    uint32_t mask;
};

/* For texts of at most `capacity` tokens. */
ak_status ak_draft_lookup_create(uint32_t capacity, struct ak_draft_lookup *out,
                                 struct ak_error *error);
void ak_draft_lookup_clear(struct ak_draft_lookup *l); /* all-zero allowed */

/* Adds the next token of the text; ignored if the capacity is reached. */
void ak_draft_lookup_push(struct ak_draft_lookup *l, int32_t token);

/* Finds the best match. *at: the position of the drafted next token. Returns the length of the
 * match before it, AK_DRAFT_LOOKUP_MIN … AK_DRAFT_LOOKUP_MAX tokens, or AK_DRAFT_LOOKUP_NONE. */
uint32_t ak_draft_lookup_find(const struct ak_draft_lookup *l, uint32_t *at);

/* Copies n tokens from position `at` on; past the end of the text it continues with the copy. */
void ak_draft_lookup_copy(const struct ak_draft_lookup *l, uint32_t at, uint32_t n, int32_t *out);

#endif
