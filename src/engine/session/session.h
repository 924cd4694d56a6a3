/* Session: runs a model. It holds sequences in KV pages, and runs the passes that extend them.
 *
 * A session belongs to one thread at a time; the model is shared and only read. All memory is
 * allocated at creation, except for the sampled, the hidden and the encoder's table: each is
 * prepared once, when it is first needed. */
#ifndef AK_ENGINE_SESSION_SESSION_H
#define AK_ENGINE_SESSION_SESSION_H

#include <stdint.h>

#include "engine/session/kv.h"
#include "engine/session/model.h"

/* ---- Pass cost model: pass.c -------------------------------------------- */
/* Measured seconds per pass of n tokens. Decides how many tokens to draft; never changes the
 * text. */

struct ak_session_cost_model {
    double seconds[AK_SKINNY_MAX + 1]; /* [n]: of a pass of n tokens; 0: not measured */
    double token_price; /* of one more token, in passes of one; for sizes not measured yet */
};

/* Records that a pass of n tokens, 1 … AK_SKINNY_MAX, took `seconds`. */
void ak_session_cost_update(struct ak_session_cost_model *c, uint32_t n, double seconds);

/* Estimated seconds of a pass of n tokens; 0 before the first measurement. */
double ak_session_cost_estimate(const struct ak_session_cost_model *c, uint32_t n);

/* ---- Session ------------------------------------------------------------ */
struct ak_session {
    struct ak_model *model; /* a reference */
    struct ak_backend *backend;
    struct ak_log log;
    struct ak_session_kv kv;
    struct ak_backend_table_options options;
    struct ak_cpus cpus;
    struct ak_backend_table *logits,
        *sampled; /* sampled: few tokens per pass; NULL until prepared */
    /* any pass; NULL until prepared. An encoder uses `logits` instead */
    struct ak_backend_table *hidden;
    uint32_t batch;
    uint32_t pass_target; /* tokens at which a pass of several texts is full; at most `batch` */

    /* one pass in the backend's order, sequence by sequence; [batch] each */
    int32_t *tokens;
    uint32_t *positions, *sequences, *logit_rows;
    uint32_t *caller_index; /* by row: index of the caller's token */
    /* by caller's token: its logits row; AK_OP_NONE: no logits */
    uint32_t *caller_rows;
    uint32_t n_last; /* tokens of the last pass; 0: it left no logits */
    /* largest logits of each row that are wanted, as in struct ak_batch; a completion sets it */
    uint32_t n_best;
    uint32_t *counts, *next_rows;    /* by sequence; counts are 0 between passes */
    uint32_t *order;                 /* sequences of the pass in order of appearance */
    struct akunu_batch_token *chunk; /* [batch]: tokens of prefill and embed */
    /* [n_sequences]: sequences of the texts in the pass */
    int32_t *text_sequences;
    /* by sequence: the position from which on tokens are of type 1. NULL, but in a pass of pairs */
    const uint32_t *type_starts;
    size_t first_text; /* number of the first text in messages */
    double *sums;      /* [AK_POOLINGS_MAX][width]: sums of a text's hidden states */

    /* Speech models: the encoder's pass, NULL until it is prepared, and by sequence what its text
     * attends to: a sequence that holds a window, AK_OP_NONE: none yet, and its tokens. NULL: no
     * speech model */
    struct ak_session_encoder *encoder;
    uint32_t max_windows;
    uint32_t *cross_sequences, *cross_lengths;
    const struct ak_batch_scores *scores; /* that the next pass writes; NULL: none */

    uint32_t kv_keep; /* as in akunu_session_params */
    enum akunu_kv_choice kv_choice;

    uint64_t n_passes, n_tokens;
    struct ak_session_cost_model cost_model;
};

/* Number of threads: `asked` if not 0, else AKUNU_THREADS, else the chip profile's, else the number
 * of physical cores. */
ak_status ak_session_choose_threads(unsigned asked, const struct ak_backend_profile *profile,
                                    unsigned *out, struct ak_error *error);

/* Tokens of a pass over a prompt: `asked` if not 0, else few on ranks that share a model by layers,
 * which compute passes side by side, else the chip profile's. */
uint32_t ak_session_choose_batch(const struct ak_model *m, uint32_t asked);

/* Threads that sessions share, as akunu_pool_new makes them; their number as above. */
ak_status ak_session_create_pool(unsigned n_threads, const char *cpus,
                                 const struct ak_backend_profile *profile, struct ak_pool **out,
                                 struct ak_error *error);

/* Fields of `params` that are 0 take their defaults; the values used go to its log. The caller owns
 * *out after success. */
ak_status ak_session_create(struct ak_model *model, const struct akunu_session_params *params,
                            struct ak_session **out, struct ak_error *error);
void ak_session_free(struct ak_session *s); /* NULL and half-built ones allowed */

ak_status ak_session_sequence_new(struct ak_session *s, int32_t *sequence, struct ak_error *error);
ak_status ak_session_fork(struct ak_session *s, int32_t sequence, uint32_t length, int32_t *fork,
                          struct ak_error *error);
ak_status ak_session_rewind(struct ak_session *s, int32_t sequence, uint32_t length,
                            struct ak_error *error);
ak_status ak_session_find(const struct ak_session *s, int32_t sequence,
                          const struct ak_session_kv_sequence **out, struct ak_error *error);

/* As akunu_session_decode, akunu_session_logits and akunu_session_prefill. */
ak_status ak_session_decode(struct ak_session *s, const struct akunu_batch_token *tokens, size_t n,
                            struct ak_error *error);
/* The same; scores of cross-attention are written, too. Tokens of one sequence. */
ak_status ak_session_decode_scores(struct ak_session *s, const struct akunu_batch_token *tokens,
                                   size_t n, const struct ak_batch_scores *scores,
                                   struct ak_error *error);
const float *ak_session_logits(const struct ak_session *s, size_t i);
ak_status ak_session_prefill(struct ak_session *s, int32_t sequence, const int32_t *ids, size_t n,
                             akunu_cancel_fn *cancel, void *user, size_t *last,
                             struct ak_error *error);

/* ---- Eviction: evict.c -------------------------------------------------- */
/* As akunu_sequence_evict. */
ak_status ak_session_evict(struct ak_session *s, int32_t sequence, uint32_t n_tokens,
                           enum akunu_kv_choice choice, struct ak_error *error);
/* Whether kv_keep drops pages of a prompt of n tokens. */
bool ak_session_evicts(const struct ak_session *s, uint32_t n);
/* AKUNU_ERROR_UNSUPPORTED: pages of the session's sequences cannot be dropped. */
ak_status ak_session_check_evict(const struct ak_session *s, struct ak_error *error);

/* Runs n tokens in one pass of a table of the session, all or nothing. */
ak_status ak_session_run_pass(struct ak_session *s, struct ak_backend_table *prepared,
                              const struct akunu_batch_token *tokens, size_t n,
                              struct ak_gumbel_params gumbel, struct ak_error *error);

/* AKUNU_ERROR_UNSUPPORTED if the model is an encoder; if it is one or a speech model. */
ak_status ak_session_needs_logits(const struct ak_session *s, struct ak_error *error);
ak_status ak_session_needs_text(const struct ak_session *s, struct ak_error *error);

/* Prepares the table of ak_session_sample; does nothing if it is prepared. */
ak_status ak_session_prepare_sampled(struct ak_session *s, struct ak_error *error);
/* Appends n tokens (at most AK_SKINNY_MAX; 1 unless the backend is batch invariant), all
 * with .logits set, and samples the token after each: from the softmax at gumbel.temperature, or
 * the most likely one at 0. Leaves no logits. next[i] is -1 if no logit is a number. */
ak_status ak_session_sample(struct ak_session *s, const struct akunu_batch_token *tokens, size_t n,
                            struct ak_gumbel_params gumbel, int32_t *next, struct ak_error *error);

/* Says that of each token's logits only the n_best largest are needed in the passes to come, so
 * that a backend may read less of the output matrix; the others may be -INFINITY. 0: all are
 * needed. The logits of earlier passes are no longer valid if that changes. */
void ak_session_want_best(struct ak_session *s, uint32_t n_best);

uint64_t ak_session_scratch_bytes(const struct ak_session *s);
void ak_session_counts(const struct ak_session *s, struct ak_backend_counts *out);
/* As akunu_session_set_timing and akunu_session_get_time, over the tables prepared so far. */
ak_status ak_session_set_timing(struct ak_session *s, bool on, struct ak_error *error);
bool ak_session_get_time(const struct ak_session *s, size_t i, struct ak_backend_time *out);

/* ---- Speech: encode.c --------------------------------------------------- */
/* Encodes a window, [2 · n_positions][n_mels], into an empty sequence. n_positions: the first ones
 * of the encoder; 0: all. The last pass's logits can no longer be read. AKUNU_ERROR_CONTEXT: the KV
 * cache is full. */
ak_status ak_session_encode(struct ak_session *s, const float *frames, int32_t sequence,
                            uint32_t n_positions, bool wants_output, struct ak_error *error);
/* Output of the encoder for a position, [width], if the last pass wanted it; valid until the next
 * pass. */
const float *ak_session_encoded(const struct ak_session *s, uint32_t position);
/* The text of `sequence` attends to the encoded window of another. Forks of it do, too. */
ak_status ak_session_attend(struct ak_session *s, int32_t sequence, int32_t window,
                            struct ak_error *error);
/* Scratch of the encoder that it does not share with the decoder; 0 before its first pass. */
uint64_t ak_session_encoder_bytes(const struct ak_session *s);
void ak_session_free_encoder(struct ak_session *s);

/* ---- Plan: plan.c ------------------------------------------------------- */
/* The context of a session that asks for none, if memory allows it: the model's. */
uint32_t ak_session_own_context(const struct ak_spec *spec);
/* Checks that heads of head_dim elements can have the KV types. */
ak_status ak_session_check_kv_types(const struct akunu_session_params *params, uint32_t head_dim,
                                    struct ak_error *error);

struct ak_session_plan {
    uint32_t context;                 /* tokens */
    uint64_t kv_bytes, scratch_bytes; /* scratch_bytes: 0 of a device */
};

/* What a session on the model would take, which needs no packed weights. Context 0: the model's. */
ak_status ak_session_plan(struct ak_model *m, const struct akunu_session_params *params,
                          struct ak_session_plan *out, struct ak_error *error);

/* ---- Embeddings: embed.c ------------------------------------------------ */
/* The table that gives hidden states, prepared when it is first needed. */
ak_status ak_session_prepare_hidden(struct ak_session *s, struct ak_backend_table **out,
                                    struct ak_error *error);

/* Embeddings of texts. */

/* As akunu_session_embed; `embedding` is not NULL. seconds[i]: the token of texts[i] from which on
 * they are of type 1; NULL: all are of type 0. */
ak_status ak_session_embed(struct ak_session *s, const struct akunu_ids *texts,
                           const uint32_t *seconds, size_t n,
                           const struct akunu_embedding_params *embedding, float *out,
                           struct ak_error *error);

/* ---- Input sums: input_sums.c ------------------------------------------- */
/* Runs a text in a sequence of its own, which is free afterwards, and adds the inputs of all its
 * products to sums[packed weights]; those of the output only if wants_output. After a failure the
 * sums have a part of the text. AKUNU_ERROR_UNSUPPORTED: the backend has no input sums, or the
 * model is a speech model. AKUNU_ERROR_CONTEXT: the text does not fit. */
ak_status ak_session_sum_inputs(struct ak_session *s, const struct akunu_ids *text,
                                bool wants_output, struct ak_backend_input_sums *sums,
                                akunu_cancel_fn *cancel, void *user, struct ak_error *error);

/* ---- Scores: rank.c ----------------------------------------------------- */
/* As akunu_session_score. */
ak_status ak_session_score(struct ak_session *s, const struct akunu_pair *pairs, size_t n,
                           akunu_cancel_fn *cancel, void *user, float *out, struct ak_error *error);

#endif
