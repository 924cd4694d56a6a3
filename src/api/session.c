/* Sessions behind handles: creation, sequences, passes and embeddings. */
#include "api/handles.h"

#include "base/mem.h"
#include "session/session.h"

void akunu_session_params_default(struct akunu_session_params *params)
{
    if (params)
        *params = (struct akunu_session_params){ .size = sizeof *params,
                                                 .k_type = AKUNU_KV_F16,
                                                 .v_type = AKUNU_KV_F16 };
}

static ak_status create(const struct akunu_model *model, const struct akunu_session_params *given,
                        struct akunu_session *session, struct ak_error *error)
{
    struct akunu_session_params params;
    akunu_session_params_default(&params);
    if (!model)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "the model is NULL");
    AK_TRY(ak_api_copy_in(&params, sizeof params, given, "akunu_session_params", error));
    return ak_session_create(model->inner, &params, &session->inner, error);
}

struct akunu_session *akunu_session_new(const struct akunu_model *model,
                                        const struct akunu_session_params *params)
{
    struct ak_error error = { 0 };
    struct akunu_session *session = ak_alloc(1, sizeof *session);
    if (!session)
        ak_fail_memory(&error, "a session", sizeof *session);
    else
        create(model, params, session, &error);
    if (error.status == AKUNU_OK)
        return session;
    ak_api_fail(&error);
    akunu_session_free(session);
    return NULL;
}

void akunu_session_free(struct akunu_session *session)
{
    if (!session)
        return;
    ak_session_free(session->inner);
    ak_free(session);
}

struct ak_session *ak_api_session(const struct akunu_session *session, struct ak_error *error)
{
    if (!session)
        ak_fail(error, AKUNU_ERROR_ARGUMENT, "the session is NULL");
    return session ? session->inner : NULL;
}

uint32_t akunu_session_context(const struct akunu_session *session)
{
    return session ? session->inner->kv.context : 0;
}

uint32_t akunu_session_batch(const struct akunu_session *session)
{
    return session ? session->inner->batch : 0;
}

unsigned akunu_session_threads(const struct akunu_session *session)
{
    return session ? session->inner->options.n_threads : 0;
}

enum akunu_status akunu_session_counters(const struct akunu_session *session,
                                         struct akunu_counters *out)
{
    struct ak_error error = { 0 };
    struct ak_session *s = ak_api_session(session, &error);
    if (s) {
        struct ak_backend_counts counts = { 0 };
        ak_session_counts(s, &counts);
        struct akunu_counters full = { .passes = s->n_passes,
                                       .tokens = s->n_tokens,
                                       .gemv = counts.gemv,
                                       .small_n = counts.skinny,
                                       .gemm = counts.gemm };
        ak_api_copy_out(out, &full, sizeof full, "akunu_counters", &error);
    }
    return error.status == AKUNU_OK ? AKUNU_OK : ak_api_fail(&error);
}

/* ---- Sequences ---------------------------------------------------------- */
akunu_sequence akunu_sequence_new(struct akunu_session *session)
{
    struct ak_error error = { 0 };
    struct ak_session *s = ak_api_session(session, &error);
    int32_t sequence = -1;
    if (s && ak_session_sequence_new(s, &sequence, &error) == AKUNU_OK)
        return sequence;
    ak_api_fail(&error);
    return -1;
}

void akunu_sequence_free(struct akunu_session *session, akunu_sequence sequence)
{
    if (session && ak_session_kv_sequence(&session->inner->kv, sequence))
        ak_session_kv_sequence_free(&session->inner->kv, sequence);
}

uint32_t akunu_sequence_length(const struct akunu_session *session, akunu_sequence sequence)
{
    const struct ak_session_kv_sequence *found =
        session ? ak_session_kv_sequence(&session->inner->kv, sequence) : NULL;
    return found ? found->length : 0;
}

enum akunu_status akunu_sequence_rewind(struct akunu_session *session, akunu_sequence sequence,
                                        uint32_t length)
{
    struct ak_error error = { 0 };
    struct ak_session *s = ak_api_session(session, &error);
    if (s)
        ak_session_rewind(s, sequence, length, &error);
    return error.status == AKUNU_OK ? AKUNU_OK : ak_api_fail(&error);
}

akunu_sequence akunu_sequence_fork(struct akunu_session *session, akunu_sequence sequence,
                                   uint32_t length)
{
    struct ak_error error = { 0 };
    struct ak_session *s = ak_api_session(session, &error);
    int32_t fork = -1;
    if (s && ak_session_fork(s, sequence, length, &fork, &error) == AKUNU_OK)
        return fork;
    ak_api_fail(&error);
    return -1;
}

/* ---- Passes ------------------------------------------------------------- */
enum akunu_status akunu_session_decode(struct akunu_session *session,
                                       const struct akunu_batch_token *tokens, size_t n)
{
    struct ak_error error;
    error.status = AKUNU_OK;
    struct ak_session *s = ak_api_session(session, &error);
    if (s) {
        if (!tokens)
            ak_fail(&error, AKUNU_ERROR_ARGUMENT, "the tokens are NULL");
        else
            ak_session_decode(s, tokens, n, &error);
    }
    return error.status == AKUNU_OK ? AKUNU_OK : ak_api_fail(&error);
}

const float *akunu_session_logits(const struct akunu_session *session, size_t i)
{
    return session ? ak_session_logits(session->inner, i) : NULL;
}

enum akunu_status akunu_session_prefill(struct akunu_session *session, akunu_sequence sequence,
                                        const akunu_token *ids, size_t n, akunu_cancel_fn *cancel,
                                        void *user, size_t *last)
{
    struct ak_error error = { 0 };
    struct ak_session *s = ak_api_session(session, &error);
    if (s) {
        if (!ids || !last)
            ak_fail(&error, AKUNU_ERROR_ARGUMENT,
                    "the ids, or where the last token's index goes, are NULL");
        else
            ak_session_prefill(s, sequence, ids, n, cancel, user, last, &error);
    }
    return error.status == AKUNU_OK ? AKUNU_OK : ak_api_fail(&error);
}

/* ---- Embeddings --------------------------------------------------------- */
void akunu_embedding_default(struct akunu_embedding *embedding)
{
    if (embedding)
        *embedding = (struct akunu_embedding){ .size = sizeof *embedding };
}

enum akunu_status akunu_session_embed(struct akunu_session *session, const struct akunu_ids *texts,
                                      size_t n, const struct akunu_embedding *embedding,
                                      akunu_cancel_fn *cancel, void *user, float *out)
{
    struct ak_error error = { 0 };
    struct ak_session *s = ak_api_session(session, &error);
    struct akunu_embedding full;
    akunu_embedding_default(&full);
    if (s && ak_api_copy_in(&full, sizeof full, embedding, "akunu_embedding", &error) == AKUNU_OK) {
        if (n > 0 && (!texts || !out))
            ak_fail(&error, AKUNU_ERROR_ARGUMENT,
                    "the texts, or where the embeddings go, are NULL");
        else
            ak_session_embed(s, texts, n, &full, cancel, user, out, &error);
    }
    return error.status == AKUNU_OK ? AKUNU_OK : ak_api_fail(&error);
}
