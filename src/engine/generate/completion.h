/* A completion while it is generated: samples the next token, reports it, decides when to stop.
 * Several may grow in one session at once. */
#ifndef AK_ENGINE_GENERATE_COMPLETION_H
#define AK_ENGINE_GENERATE_COMPLETION_H

#include "base/buffer.h"
#include "base/hash.h"
#include "engine/generate/reasoning.h"
#include "engine/sample/sampler.h"
#include "engine/session/constraint.h"
#include "engine/session/session.h"

/* ---- Stop sequences: stops.c -------------------------------------------- */
/* Stop sequences and holdback: text that could begin a stop sequence is withheld until it is
 * decided, so no part of a stop sequence is ever reported. */

enum { AK_GEN_STOPS_MAX = 64, AK_GEN_STOP_BYTES_MAX = 1024 };

/* All zero: no stop sequences. */
struct ak_gen_stops {
    const char *const *texts;
    size_t n;
    struct ak_buffer holdback; /* reported text, then withheld text */
    size_t n_reported;
    size_t found; /* number of the one that ended the text */
};

/* The texts stay the caller's. AKUNU_ERROR_ARGUMENT: too many, an empty one, or one over
 * AK_GEN_STOP_BYTES_MAX. */
ak_status ak_gen_stops_begin(struct ak_gen_stops *s, const char *const *texts, size_t n,
                             struct ak_error *error);
void ak_gen_stops_clear(struct ak_gen_stops *s);

/* Adds generated text and returns what may be reported, valid until the next call. *ended: a stop
 * sequence was found; nothing may follow. */
ak_status ak_gen_stops_push(struct ak_gen_stops *s, const char **text, size_t *n, bool *ended,
                            struct ak_error *error);

/* Returns the withheld text if the completion ends for another reason. */
void ak_gen_stops_end(struct ak_gen_stops *s, const char **text, size_t *n);

/* ---- Completion --------------------------------------------------------- */
struct ak_gen_completion {
    struct ak_session *session;
    int32_t sequence;
    uint64_t limit; /* max. tokens */
    struct ak_sampler *sampler;
    struct ak_tok_stream *stream; /* NULL: the model has no vocabulary */
    struct ak_gen_stops stops;
    struct ak_session_constraint constraint;
    struct ak_gen_reasoning reasoning;
    bool uses_gumbel;               /* samples by Gumbel scores with the parameters in `gumbel` */
    bool samples_on_backend;        /* the backend samples: no callback needs logits */
    struct ak_gumbel_params gumbel; /* fixed for the text; the noise depends on the position */
    akunu_piece_fn *on_piece;       /* NULL allowed, as for the other callbacks */
    akunu_logprobs_fn *on_logprobs;
    akunu_logits_fn *on_logits;
    void *user;                          /* of these callbacks */
    size_t index;                        /* number of a parallel completion; else 0 */
    float *edited_logits;                /* [vocabulary], for on_logits; NULL without it */
    bool has_chain;                      /* result->chain is wanted; set by the caller */
    uint8_t next_chain[AK_SHA256_BYTES]; /* after the token sampled last */
    struct ak_sample_logprobs logprobs;  /* of the token sampled last, if requested */
    float logprob;
    int32_t token; /* sampled last; not in the sequence yet */
    bool ended;    /* result->stop says why */
    struct akunu_result *result;
};

/* Creates the sampler, the stream, stops and constraint, and takes the callbacks of `generation`.
 * The caller sets the other members first. */
ak_status ak_gen_completion_begin(struct ak_gen_completion *c,
                                  const struct akunu_generation_params *generation,
                                  struct ak_error *error);
void ak_gen_completion_clear(struct ak_gen_completion *c);

/* Number of largest logits of a pass that decide its tokens; 0: all do. */
uint32_t ak_gen_completion_n_best(const struct ak_gen_completion *c);

/* The only continuation that the grammar allows, at most n_max tokens; *n is 0 without a grammar. A
 * pass may run them before they are sampled. */
ak_status ak_gen_completion_find_forced(const struct ak_gen_completion *c, uint32_t n_max,
                                        int32_t *tokens, uint32_t *n, struct ak_error *error);

/* Adds tokens of the context to the sampler's history. */
void ak_gen_completion_add_context(struct ak_gen_completion *c, const int32_t *ids, size_t n);

/* The token that the reasoning budget wants next, whatever the logits; -1: any. */
ak_status ak_gen_completion_find_closing(struct ak_gen_completion *c, int32_t *token,
                                         struct ak_error *error);

/* Samples from logits with the sampler and the grammar, within the reasoning budget. */
ak_status ak_gen_completion_sample(struct ak_gen_completion *c, const float *logits, int32_t *token,
                                   struct ak_error *error);

/* The same for the token after `position`. Uses Gumbel scores as the backend does if uses_gumbel is
 * set, so both give the same text. */
ak_status ak_gen_completion_sample_at(struct ak_gen_completion *c, const float *logits,
                                      uint32_t position, int32_t *token, struct ak_error *error);

/* Appends `token` and reports it, unless it ends the text. */
ak_status ak_gen_completion_append(struct ak_gen_completion *c, int32_t token,
                                   struct ak_error *error);

/* Ends the text if its sequence cannot grow: the context is full, or too few pages are free besides
 * the `reserved` ones. Otherwise adds the pages it needs to *reserved. */
void ak_gen_completion_reserve_pages(struct ak_gen_completion *c, uint32_t *reserved);

/* Reports withheld text and the bytes of an incomplete character as the last piece. */
ak_status ak_gen_completion_finish(struct ak_gen_completion *c, struct ak_error *error);

#endif
