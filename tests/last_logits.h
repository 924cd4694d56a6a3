/* What a model says after a few tokens. */
#ifndef AK_TESTS_LAST_LOGITS_H
#define AK_TESTS_LAST_LOGITS_H

#include "akunu/akunu.h"
#include "tests/test.h"
#include <stdlib.h>
#include <string.h>

/* Logits of the last token, [*n], to be freed. `load` NULL: the defaults. */
static inline float *test_last_logits(const char *path, const struct akunu_load_params *load,
                                      uint32_t *n)
{
    static const akunu_token ids[] = { 5, 17, 3, 29, 11, 2, 31, 8 };
    enum { N = sizeof ids / sizeof *ids };
    struct akunu_session_params params;
    struct akunu_model_info info;
    size_t last;
    struct akunu_model *model = akunu_model_load(path, load);
    ck_assert_msg(model != NULL, "%s: %s", path, akunu_last_error());
    akunu_model_get_info(model, &info, sizeof info);
    akunu_session_params_default(&params, sizeof params);
    params.context = params.batch = N;
    struct akunu_session *session = akunu_session_new(model, &params);
    akunu_sequence sequence = akunu_sequence_new(session);
    ck_assert_int_eq(
        akunu_session_prefill(session, sequence, &(struct akunu_ids){ ids, N }, NULL, NULL, &last),
        AKUNU_OK);
    *n = info.vocab_size;
    float *logits = malloc(*n * sizeof *logits);
    memcpy(logits, akunu_session_logits(session, last), *n * sizeof *logits);
    akunu_session_free(session);
    akunu_model_free(model);
    return logits;
}

#endif
