#include "session/embed.h"

#include "api/error.h"
#include "api/session.h"
#include "api/versioned.h"

void akunu_embedding_default(struct akunu_embedding *embedding)
{
    if (embedding)
        *embedding = (struct akunu_embedding){ .size = sizeof *embedding };
}

enum akunu_status akunu_embed(struct akunu_session *session, const struct akunu_ids *texts,
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
