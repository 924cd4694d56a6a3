/* --memory: how much models and requests take, and what fits. */
#ifndef AK_APPS_SERVER_MEMORY_H
#define AK_APPS_SERVER_MEMORY_H

#include "apps/server/server.h"

/* ---- Models ------------------------------------------------------------- */
/* Parameters of a model's session for embeddings, which shares --memory with the other one. */
void server_memory_limit_embedder(const struct server_model *m,
                                  struct akunu_session_params *session);
/* Whether the scheduler's session takes too much: then `session` has changed, and it is to be
 * opened again. In the loader's thread, as the next. */
bool server_memory_shrinks(const struct server_model *m, struct akunu_session_params *session);
/* Notes what the model takes. Returns APP_EXIT_OK, or APP_EXIT_MEMORY after a message: more than
 * there is. */
int server_memory_check(struct server_model *m);
/* Bytes that a model takes when it is loaded: what it took last, else what it may take. */
uint64_t server_memory_of(const struct server_model *m);
/* Whether `bytes` more fit beside the models that are ready or are being loaded. */
bool server_memory_fits(const struct server *s, uint64_t bytes);

/* ---- Requests ----------------------------------------------------------- */
/* Bytes for bodies that were not handled and answers that were not read; 0: no limit. */
size_t server_memory_of_buffers(const struct server *s);
/* Bytes of an answer that may wait until the request is paused. */
size_t server_memory_of_unread(const struct server *s);
/* Whether a body's values, which take up to `bytes`, fit. */
bool server_memory_fits_values(const struct server *s, size_t bytes);

/* Bytes of all that is counted. */
uint64_t server_memory_in_use(const struct server *s);

#endif
