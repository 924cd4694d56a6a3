/* The same texts on a model whose layers or weights are divided in several ways. */
#ifndef AK_TESTS_ENGINE_BACKENDS_TEXTS_H
#define AK_TESTS_ENGINE_BACKENDS_TEXTS_H

#include "engine/session/session.h"
#include "tests/golden_model.h"

enum { N = 70 }; /* two pages */

static inline void fine(ak_status status, const struct ak_error *error)
{
    ck_assert_msg(status == AKUNU_OK, "%s", error->message);
}

static inline struct ak_session *open_session(struct ak_model *model)
{
    struct akunu_session_params params = golden_params(2, 32, AKUNU_KV_F16);
    params.context = model->spec.config.context < 256 ? model->spec.config.context : 256;
    struct ak_error error = { 0 };
    struct ak_session *session = NULL;
    fine(ak_session_create(model, &params, &session, &error), &error);
    return session;
}

/* Prompts by several passes, a fork in the middle of a page, a rewind, a sampled token. */
static inline void run_text(struct ak_model *model, const akunu_token *ids, float *logits,
                            int32_t *sampled, struct ak_backend_counts *counts)
{
    struct ak_session *session = open_session(model);
    struct ak_error error = { 0 };
    uint32_t vocab = model->spec.config.vocab_size;
    int32_t sequence, fork;
    size_t last;
    fine(ak_session_sequence_new(session, &sequence, &error), &error);
    fine(ak_session_prefill(session, sequence, ids, N, NULL, NULL, &last, &error), &error);
    memcpy(logits, ak_session_logits(session, last), vocab * sizeof *logits);
    fine(ak_session_fork(session, sequence, N, &fork, &error), &error);
    fine(ak_session_rewind(session, sequence, N - 9, &error), &error);
    for (int i = 0; i < 2; i++) {
        struct akunu_batch_token token = { ids[i], i == 0 ? sequence : fork, true };
        fine(ak_session_decode(session, &token, 1, &error), &error);
        logits += vocab;
        memcpy(logits, ak_session_logits(session, 0), vocab * sizeof *logits);
    }
    fine(ak_session_prepare_sampled(session, &error), &error);
    fine(ak_session_sample(session, &(struct akunu_batch_token){ ids[2], fork, true }, 1,
                           (struct ak_gumbel_params){ 1.0f, 7 }, sampled, &error),
         &error);
    ak_session_counts(session, counts);
    ak_session_free(session);
}

static inline void embed(struct ak_model *model, const akunu_token *ids, float *out)
{
    struct ak_session *session = open_session(model);
    struct ak_error error = { 0 };
    struct akunu_ids texts[2] = { { ids, 20 }, { ids + 7, 11 } };
    struct akunu_embedding_params embedding;
    akunu_embedding_params_default(&embedding, sizeof embedding);
    fine(ak_session_embed(session, texts, NULL, 2, &embedding, out, &error), &error);
    ak_session_free(session);
}

/* The ids of a text of N tokens. */
static inline void read_ids(const char *name, akunu_token *ids)
{
    struct golden_text text;
    golden_read_text(name, &text);
    for (size_t i = 0; i < N; i++)
        ids[i] = text.ids[i % (text.n_prompt + text.n_greedy)];
}

#endif
