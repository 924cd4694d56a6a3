/* Sessions behind handles: creation, sequences, passes and embeddings. */
#include "api/handles.h"

#include <stdatomic.h>

#include "base/mem.h"
#include "engine/session/session.h"

void akunu_session_params_default(struct akunu_session_params *params, size_t size)
{
    static const struct akunu_session_params full = { .k_type = AKUNU_KV_F16,
                                                      .v_type = AKUNU_KV_F16 };
    ak_api_give_default(params, size, &full, sizeof full);
}

static ak_status create_session(const struct akunu_model *model,
                                const struct akunu_session_params *given,
                                struct akunu_session *session, struct ak_error *error)
{
    struct akunu_session_params params;
    akunu_session_params_default(&params, sizeof params);
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
        create_session(model, params, session, &error);
    if (error.status == AKUNU_OK)
        return session;
    ak_api_finish(&error);
    akunu_session_free(session);
    return NULL;
}

static void destroy(struct akunu_session *session)
{
    ak_tmpl_free(session->templates);
    ak_session_free(session->inner);
    ak_free(session);
}

/* ---- One call at a time ------------------------------------------------- */
/* The state of a session, which ak_api_begin and ak_api_end change. */
enum {
    IDLE,
    IN_CALL,
    FREED /* in a call that frees it at its end */
};

struct ak_session *ak_api_begin(struct akunu_session *session, struct ak_error *error)
{
    int idle = IDLE;
    if (!session) {
        ak_fail(error, AKUNU_ERROR_ARGUMENT, "the session is NULL");
        return NULL;
    }
    if (atomic_compare_exchange_strong(&session->state, &idle, IN_CALL))
        return session->inner;
    ak_fail(error, AKUNU_ERROR_BUSY,
            "the session is in use by another call: a callback must not call it, and other threads "
            "must wait");
    return NULL;
}

enum akunu_status ak_api_end(struct akunu_session *session, const struct ak_session *s,
                             const struct ak_error *error)
{
    int in_call = IN_CALL;
    if (s && !atomic_compare_exchange_strong(&session->state, &in_call, IDLE))
        destroy(session);
    return ak_api_finish(error);
}

void akunu_session_free(struct akunu_session *session)
{
    int in_call = IN_CALL;
    if (session && !atomic_compare_exchange_strong(&session->state, &in_call, FREED))
        destroy(session);
}

/* ---- Properties --------------------------------------------------------- */
uint32_t akunu_session_context(const struct akunu_session *session)
{
    return session ? session->inner->options.context : 0;
}

uint32_t akunu_session_batch(const struct akunu_session *session)
{
    return session ? session->inner->batch : 0;
}

unsigned akunu_session_threads(const struct akunu_session *session)
{
    return session ? session->inner->options.n_threads : 0;
}

enum akunu_status akunu_session_get_counters(struct akunu_session *session,
                                             struct akunu_counters *out, size_t size)
{
    struct ak_error error = { 0 };
    const struct ak_session *s = ak_api_begin(session, &error);
    if (s) {
        struct ak_backend_counts counts = { 0 };
        ak_session_counts(s, &counts);
        struct akunu_counters full = { .passes = s->n_passes,
                                       .tokens = s->n_tokens,
                                       .gemv = counts.gemv,
                                       .skinny = counts.skinny,
                                       .gemm = counts.gemm };
        ak_api_copy_out(out, size, &full, sizeof full, "akunu_counters", &error);
    }
    return ak_api_end(session, s, &error);
}

enum akunu_status akunu_session_set_timing(struct akunu_session *session, bool on)
{
    struct ak_error error = { 0 };
    struct ak_session *s = ak_api_begin(session, &error);
    if (s)
        ak_session_set_timing(s, on, &error);
    return ak_api_end(session, s, &error);
}

enum akunu_status akunu_session_get_time(struct akunu_session *session, size_t i,
                                         struct akunu_time *out, size_t size)
{
    struct ak_error error = { 0 };
    struct ak_session *s = ak_api_begin(session, &error);
    struct ak_backend_time time;
    if (s && !ak_session_get_time(s, i, &time))
        ak_fail(&error, AKUNU_ERROR_ARGUMENT, "times have no row %zu", i);
    else if (s) {
        struct akunu_time full = { .name = time.name,
                                   .calls = time.calls,
                                   .seconds = time.seconds,
                                   .wait_seconds = time.wait_seconds,
                                   .bytes = time.bytes,
                                   .ops = time.ops };
        ak_api_copy_out(out, size, &full, sizeof full, "akunu_time", &error);
    }
    return ak_api_end(session, s, &error);
}

/* ---- Sequences ---------------------------------------------------------- */
akunu_sequence akunu_sequence_new(struct akunu_session *session)
{
    struct ak_error error = { 0 };
    struct ak_session *s = ak_api_begin(session, &error);
    int32_t sequence = -1;
    if (s && ak_session_sequence_new(s, &sequence, &error) != AKUNU_OK)
        sequence = -1;
    ak_api_end(session, s, &error);
    return sequence;
}

void akunu_sequence_free(struct akunu_session *session, akunu_sequence sequence)
{
    struct ak_error error = { 0 };
    if (!session)
        return;
    struct ak_session *s = ak_api_begin(session, &error);
    if (s && ak_session_kv_sequence(&s->kv, sequence))
        ak_session_kv_sequence_free(&s->kv, sequence);
    ak_api_end(session, s, &error);
}

uint32_t akunu_sequence_length(struct akunu_session *session, akunu_sequence sequence)
{
    struct ak_error error = { 0 };
    const struct ak_session *s = ak_api_begin(session, &error);
    const struct ak_session_kv_sequence *found = NULL;
    if (s)
        ak_session_find(s, sequence, &found, &error);
    uint32_t length = found ? found->length : 0;
    ak_api_end(session, s, &error);
    return length;
}

enum akunu_status akunu_sequence_rewind(struct akunu_session *session, akunu_sequence sequence,
                                        uint32_t length)
{
    struct ak_error error = { 0 };
    struct ak_session *s = ak_api_begin(session, &error);
    if (s)
        ak_session_rewind(s, sequence, length, &error);
    return ak_api_end(session, s, &error);
}

enum akunu_status akunu_sequence_evict(struct akunu_session *session, akunu_sequence sequence,
                                       uint32_t n_tokens, enum akunu_kv_choice choice)
{
    struct ak_error error = { 0 };
    struct ak_session *s = ak_api_begin(session, &error);
    if (s && (unsigned)choice > AKUNU_KV_RECENT)
        ak_fail(&error, AKUNU_ERROR_ARGUMENT,
                "choice is %d: expected a value of enum akunu_kv_choice", (int)choice);
    else if (s)
        ak_session_evict(s, sequence, n_tokens, choice, &error);
    return ak_api_end(session, s, &error);
}

uint32_t akunu_sequence_rewindable(struct akunu_session *session, akunu_sequence sequence,
                                   uint32_t length)
{
    struct ak_error error = { 0 };
    const struct ak_session *s = ak_api_begin(session, &error);
    const struct ak_session_kv_sequence *found = NULL;
    if (s)
        ak_session_find(s, sequence, &found, &error);
    length = found ? ak_session_kv_find_rewind(found, length) : 0;
    ak_api_end(session, s, &error);
    return length;
}

akunu_sequence akunu_sequence_fork(struct akunu_session *session, akunu_sequence sequence,
                                   uint32_t length)
{
    struct ak_error error = { 0 };
    struct ak_session *s = ak_api_begin(session, &error);
    int32_t fork = -1;
    if (s && ak_session_fork(s, sequence, length, &fork, &error) != AKUNU_OK)
        fork = -1;
    ak_api_end(session, s, &error);
    return fork;
}

/* ---- Passes ------------------------------------------------------------- */
enum akunu_status akunu_session_decode(struct akunu_session *session,
                                       const struct akunu_batch_token *tokens, size_t n)
{
    struct ak_error error;
    error.status = AKUNU_OK;
    struct ak_session *s = ak_api_begin(session, &error);
    if (s && !tokens)
        ak_fail(&error, AKUNU_ERROR_ARGUMENT, "the tokens are NULL");
    else if (s)
        ak_session_decode(s, tokens, n, &error);
    return ak_api_end(session, s, &error);
}

const float *akunu_session_logits(struct akunu_session *session, size_t i)
{
    struct ak_error error = { 0 };
    const struct ak_session *s = ak_api_begin(session, &error);
    const float *logits = s ? ak_session_logits(s, i) : NULL;
    ak_api_end(session, s, &error);
    return logits;
}

enum akunu_status akunu_session_prefill(struct akunu_session *session, akunu_sequence sequence,
                                        const struct akunu_ids *prompt, akunu_cancel_fn *cancel,
                                        void *user, size_t *last)
{
    struct ak_error error = { 0 };
    struct ak_session *s = ak_api_begin(session, &error);
    if (s && (!prompt || !prompt->ids || !last))
        ak_fail(&error, AKUNU_ERROR_ARGUMENT,
                "the prompt, or where the last token's index goes, is NULL");
    else if (s)
        ak_session_prefill(s, sequence, prompt->ids, prompt->n, cancel, user, last, &error);
    return ak_api_end(session, s, &error);
}

/* ---- Embeddings --------------------------------------------------------- */
void akunu_embedding_params_default(struct akunu_embedding_params *embedding, size_t size)
{
    static const struct akunu_embedding_params full = { .pooling = AKUNU_POOLING_MODEL };
    ak_api_give_default(embedding, size, &full, sizeof full);
}

void akunu_session_number_texts(struct akunu_session *session, size_t first)
{
    struct ak_error error = { 0 };
    struct ak_session *s = ak_api_begin(session, &error);
    if (s)
        s->first_text = first;
    ak_api_end(session, s, &error);
}

enum akunu_status akunu_session_embed(struct akunu_session *session, const struct akunu_ids *texts,
                                      size_t n, const struct akunu_embedding_params *embedding,
                                      float *out)
{
    struct ak_error error = { 0 };
    struct ak_session *s = ak_api_begin(session, &error);
    struct akunu_embedding_params full;
    akunu_embedding_params_default(&full, sizeof full);
    if (s && ak_api_copy_in(&full, sizeof full, embedding, "akunu_embedding_params", &error) ==
                 AKUNU_OK) {
        if (n > 0 && (!texts || !out))
            ak_fail(&error, AKUNU_ERROR_ARGUMENT,
                    "the texts, or where the embeddings go, are NULL");
        else
            ak_session_embed(s, texts, NULL, n, &full, out, &error);
    }
    return ak_api_end(session, s, &error);
}
