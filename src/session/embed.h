/* Texts to embeddings. */
#ifndef AK_SESSION_EMBED_H
#define AK_SESSION_EMBED_H

#include "session/session.h"

/* As akunu_embed; embedding is not NULL. */
ak_status ak_session_embed(struct ak_session *s, const struct akunu_ids *texts, size_t n,
                           const struct akunu_embedding *embedding, akunu_cancel_fn *cancel,
                           void *user, float *out, struct ak_error *error);

#endif
