/* From a prompt to a text. */
#ifndef AK_GENERATE_GENERATE_H
#define AK_GENERATE_GENERATE_H

#include "session/session.h"

/* What akunu_generate is given. */
struct ak_gen_request {
    struct ak_session *session;
    int32_t sequence;
    const int32_t *ids;
    size_t n_ids;
    const struct akunu_generation *generation;
    struct ak_session *draft; /* in place of generation->draft */
    akunu_piece_fn *on_piece;
    akunu_cancel_fn *cancel;
    void *user;
};

/* As akunu_generate. *result is always filled in: what was done before a failure. */
ak_status ak_gen_run(const struct ak_gen_request *request, struct akunu_result *result,
                     struct ak_error *error);

/* ---- Parallel completions: parallel.c ----------------------------------- */
/* Several continuations of one prompt, which is run once: they share its pages, and a pass
 * takes a token of each, so the weights are read once for all of them. */

/* As akunu_generate_choices, with sequences[1 …] of -1. The request's sequence, on_piece and
 * speculation count for nothing. *results are always filled in. */
ak_status ak_gen_run_parallel(const struct ak_gen_request *request, size_t n,
                              akunu_choice_fn *on_piece, int32_t *sequences,
                              struct akunu_result *results, struct ak_error *error);

#endif
