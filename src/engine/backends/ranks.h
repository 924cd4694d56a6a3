/* The composite backend of rank 0, which has the other ranks do what its own CPU backend does, and
 * the other side of it: a rank that follows. engine/session/ opens both.
 *
 * Each rank has its shard of the weights, its heads of the KV cache, and a table over them. Rank 0
 * numbers pools and tables and says which table runs on what tokens; shards are exchanged in the
 * pass (engine/cpu/ranks.c). */
#ifndef AK_ENGINE_BACKENDS_RANKS_H
#define AK_ENGINE_BACKENDS_RANKS_H

#include "engine/backend/backend.h"
#include "base/thread.h"
#include "engine/dist/message.h"

/* The ranks of a process, which models share: one call at a time. */
struct ak_ranks;
ak_status ak_ranks_create(struct ak_comm *comm, struct ak_ranks **out, struct ak_error *error);
void ak_ranks_free(struct ak_ranks *r); /* closes the communicator; NULL allowed */
struct ak_comm *ak_ranks_comm(const struct ak_ranks *r);
/* The ranks behind a public handle, which are the handle itself. */
static inline struct ak_ranks *ak_ranks_from_handle(struct akunu_comm *handle)
{
    return (struct ak_ranks *)handle;
}
void ak_ranks_lock(struct ak_ranks *r);
void ak_ranks_unlock(struct ak_ranks *r);
/* A number that no model, pool or table had. */
uint64_t ak_ranks_next_id(struct ak_ranks *r);
/* Sends a message to all other ranks and clears it. The lock is held. */
ak_status ak_ranks_send(struct ak_ranks *r, struct ak_message *m, struct ak_error *error);
/* Says how a call went on this rank, and finds how it went on all of them: the status of the first
 * rank that failed, whose message begins with its number. The lock is held. */
ak_status ak_ranks_agree(struct ak_comm *comm, ak_status status, struct ak_error *error);

/* What a model's ranks share. */
enum { AK_RANKS_TABLES = 4 };
struct ak_ranks_model {
    uint64_t id;
    struct ak_backend *backend; /* the rank's CPU backend */
    const struct ak_table *tables[AK_RANKS_TABLES];
    const struct ak_weights *weights;
    const struct ak_spec *spec; /* the rank's */
};

/* Rank 0. On success *out owns model->backend; the rest must outlive it. The model is not read yet:
 * `split` is what its spec will have. */
ak_status ak_backend_open_ranks(struct ak_ranks *r, const struct ak_ranks_model *model,
                                enum akunu_split split, struct ak_backend **out,
                                struct ak_error *error);

/* What a pass has beside tokens, in its message. Types and frames are those of a sequence. */
enum { AK_RANKS_SCORES = 1, AK_RANKS_IMPORTANCE = 2, AK_RANKS_INPUTS = 4, AK_RANKS_CROSS = 8 };

/* ---- The ranks that follow ---------------------------------------------- */
struct ak_ranks_follower; /* pools and tables of one model */
ak_status ak_ranks_follower_create(struct ak_comm *comm, const struct ak_ranks_model *model,
                                   struct ak_pool *pool, struct ak_ranks_follower **out,
                                   struct ak_error *error);
void ak_ranks_follower_free(struct ak_ranks_follower *f);
/* Does what a message of this kind asks for; the reader stands after the model's number. Fails only
 * if this rank cannot go on. */
ak_status ak_ranks_follow(struct ak_ranks_follower *f, enum ak_message_kind kind,
                          struct ak_message_reader *message, struct ak_error *error);

/* ---- Results that ranks have parts of: ranks_parts.c -------------------- */
/* What a rank that follows computes of them for rank 0. */
struct ak_ranks_parts {
    struct ak_batch_scores scores; /* data: [matrices][tokens][positions], owned */
    int32_t *matrices;
    struct ak_batch_importance importance; /* sums: [layers][KV heads][stride] of the rank, owned */
};

/* Rank 0: adds to a pass's message what its scores and importance need, and after its own pass gets
 * the others' parts. */
void ak_ranks_put_parts(struct ak_message *m, const struct ak_ranks_model *model,
                        const struct ak_batch *batch);
ak_status ak_ranks_collect_parts(struct ak_comm *comm, const struct ak_ranks_model *model,
                                 const struct ak_batch *batch, struct ak_error *error);
/* The others: set batch->scores and batch->importance as the message says, and send them after the
 * pass. *parts is zero before. message->is_short: it is not understood. ak_ranks_free_parts in
 * either case. */
ak_status ak_ranks_read_parts(struct ak_message_reader *message, uint64_t flags,
                              const struct ak_ranks_model *model, struct ak_batch *batch,
                              struct ak_ranks_parts *parts, struct ak_error *error);
ak_status ak_ranks_send_parts(struct ak_comm *comm, const struct ak_ranks_model *model,
                              const struct ak_batch *batch, struct ak_error *error);
void ak_ranks_free_parts(struct ak_ranks_parts *parts);

#endif
