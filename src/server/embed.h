/* Embeddings of a model: a thread of its own with a session, beside the scheduler's. Used by
 * model.c, memory.c and main.c. */
#ifndef AK_SERVER_EMBED_H
#define AK_SERVER_EMBED_H

#include "server/server.h"

/* Starts the thread. False: the library has the message. */
bool server_open_embedder(struct server_model *m);
void server_close_embedder(struct server_model *m);
/* Bytes that its session has reserved. */
uint64_t server_embedder_bytes(const struct server_model *m);
/* Answers with the embeddings that are ready. */
void server_take_embeddings(struct server_model *m);

#endif
