/* Text generation: runs a request as a single completion (generate.c) or as parallel completions
 * (parallel.c). */
#ifndef AK_ENGINE_GENERATE_GENERATE_H
#define AK_ENGINE_GENERATE_GENERATE_H

#include "engine/session/session.h"

/* What akunu_session_generate runs. */
struct ak_gen_request {
    struct ak_session *session;
    int32_t sequence;
    const int32_t *ids;
    size_t n_ids;
    const struct akunu_generation_params *generation; /* its sampling is not NULL */
    struct ak_session *draft;                         /* replaces generation->draft; NULL: none */
};

/* As akunu_session_generate. *result is always filled in: what was done before a failure. */
ak_status ak_gen_run(const struct ak_gen_request *request, struct akunu_result *result,
                     struct ak_error *error);

/* ---- Parallel completions: parallel.c ----------------------------------- */
/* Several completions of one prompt, which runs once. They share its pages, and a pass takes a
 * token of each, so the weights are read once for all of them. */

/* As akunu_session_generate_parallel; sequences[1 …] are -1. The request's sequence and speculation
 * are ignored. *results are always filled in. */
ak_status ak_gen_run_parallel(const struct ak_gen_request *request, size_t n, int32_t *sequences,
                              struct akunu_result *results, struct ak_error *error);

#endif
