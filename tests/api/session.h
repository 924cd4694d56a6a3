/* A session of one thread, for tests of the public API. */
#ifndef AK_TESTS_API_SESSION_H
#define AK_TESTS_API_SESSION_H

#include "tests/test.h"

#include "akunu/akunu.h"

/* 256 tokens of context, two sequences. */
static inline struct akunu_session *open_session(const struct akunu_model *model)
{
    struct akunu_session_params params;
    akunu_session_params_default(&params, sizeof params);
    params.context = 256;
    params.max_sequences = 2;
    params.n_threads = 1;
    struct akunu_session *session = akunu_session_new(model, &params);
    ck_assert_msg(session != NULL, "%s", akunu_last_error());
    return session;
}

#endif
