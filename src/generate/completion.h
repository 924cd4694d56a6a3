/* A text in the making: which token comes next, what the host is told of it, and when
 * it is enough. Several may grow at once in one session. */
#ifndef AK_GENERATE_COMPLETION_H
#define AK_GENERATE_COMPLETION_H

#include "base/buffer.h"
#include "sample/sampler.h"
#include "session/constraint.h"
#include "session/session.h"

/* ---- Stop sequences: stops.c -------------------------------------------- */
/* Texts that end a text: what could be the beginning of one is held back until it is known
 * whether it is, so that none of it is ever told. */

enum { AK_GEN_STOPS_MAX = 64, AK_GEN_STOP_BYTES_MAX = 1024 };

/* All zero: nothing ends the text. */
struct ak_gen_stops {
    const char *const *texts;
    size_t n;
    struct ak_buffer holdback; /* what was told last, then what is held back */
    size_t n_reported;
};

/* The texts stay the caller's. An empty one, one that is too long, or too many are
 * AKUNU_ERROR_ARGUMENT. */
ak_status ak_gen_stops_begin(struct ak_gen_stops *s, const char *const *texts, size_t n,
                             struct ak_error *error);
void ak_gen_stops_clear(struct ak_gen_stops *s);

/* Takes more of the text and gives what of it may be told, valid until the next call. After
 * *ended, when it has come to one of the texts, there is no more. */
ak_status ak_gen_stops_push(struct ak_gen_stops *s, const char **text, size_t *n, bool *ended,
                            struct ak_error *error);

/* What is still held back, where the text ends by itself. */
void ak_gen_stops_end(struct ak_gen_stops *s, const char **text, size_t *n);

/* ---- Completion --------------------------------------------------------- */
struct ak_gen_completion {
    struct ak_session *session;
    int32_t sequence;
    uint64_t limit; /* of tokens */
    struct ak_sampler *sampler;
    struct ak_tok_stream *stream; /* NULL: the model has no vocabulary */
    struct ak_gen_stops stops;
    struct ak_session_constraint constraint;
    bool uses_gumbel; /* a Gumbel step may choose: `gumbel` says how */
    /* … that of the backend, since nobody asks for the logits */
    bool samples_on_backend;
    struct ak_gumbel_params gumbel; /* the same for the whole text: noise goes by positions */
    akunu_piece_fn *on_piece;       /* NULL allowed */
    akunu_logprobs_fn *on_logprobs; /* NULL allowed */
    void *user;
    struct ak_sample_logprobs logprobs; /* of the token chosen last, where they are asked for */
    float logprob;
    void *logprobs_user;
    int32_t token; /* the last one chosen; not in the sequence yet */
    bool ended;    /* result->stop says why */
    struct akunu_result *result;
};

/* Makes the sampler and the stream; the others of *c are the caller's to set before. */
ak_status ak_gen_completion_begin(struct ak_gen_completion *c,
                                  const struct akunu_generation *generation,
                                  struct ak_error *error);
void ak_gen_completion_clear(struct ak_gen_completion *c);

/* Tokens that the grammar says come next, at most `n_max`: a pass may run them before they
 * are chosen. None without a grammar. */
ak_status ak_gen_completion_find_forced(const struct ak_gen_completion *c, uint32_t n_max,
                                        int32_t *tokens, uint32_t *n, struct ak_error *error);

/* Tells the sampler of tokens that are in the context. */
void ak_gen_completion_add_context(struct ak_gen_completion *c, const int32_t *ids, size_t n);

/* Chooses from logits, as the sampler says. */
ak_status ak_gen_completion_sample(struct ak_gen_completion *c, const float *logits, int32_t *token,
                                   struct ak_error *error);

/* The same for a token after the first, which follows the one at `position`: as the backend
 * draws where the choice is a plain one. */
ak_status ak_gen_completion_sample_at(struct ak_gen_completion *c, const float *logits,
                                      uint32_t position, int32_t *token, struct ak_error *error);

/* `token` is the next one of the text: tells of it, unless it ends the text. */
ak_status ak_gen_completion_append(struct ak_gen_completion *c, int32_t token,
                                   struct ak_error *error);

/* Ends the text where no more fits: the sequence may not grow, or not while `reserved` pages
 * are others'. Adds what it will take to *reserved. */
void ak_gen_completion_reserve_pages(struct ak_gen_completion *c, uint32_t *reserved);

/* What was held back, and the bytes of an incomplete character, are the text's last piece. */
ak_status ak_gen_completion_finish(struct ak_gen_completion *c, struct ak_error *error);

#endif
