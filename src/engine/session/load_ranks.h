/* Ranks that load a model together: rank 0 has the others load it too, each keeps its shard, and
 * the load ends in the same way on all of them. For a process that loads alone, these functions do
 * nothing. */
#ifndef AK_ENGINE_SESSION_LOAD_RANKS_H
#define AK_ENGINE_SESSION_LOAD_RANKS_H

#include "engine/session/model.h"

struct ak_load_ranks {
    struct ak_comm *comm;   /* to the other ranks; NULL: this process loads alone */
    struct ak_ranks *ranks; /* on rank 0 */
    uint64_t id;            /* of the model among ranks */
};

/* On rank 0, tells the other ranks what to load and reserves them until ak_load_ranks_end(), which
 * must be called after a failure too. */
ak_status ak_load_ranks_begin(const struct ak_model_source *source, struct ak_load_ranks *out,
                              struct ak_error *error);
void ak_load_ranks_end(const struct ak_load_ranks *r);

/* Puts the backend of all ranks in front of rank 0's CPU backend. */
ak_status ak_load_ranks_share_backend(const struct ak_load_ranks *r, enum akunu_split split,
                                      struct ak_model *m, struct ak_error *error);
/* Narrows the bound weights to this rank's shard. */
ak_status ak_load_ranks_take_shard(const struct ak_load_ranks *r, enum akunu_split split,
                                   struct ak_model *m, struct ak_error *error);
/* Returns the status of the first rank that failed, or fails if a rank has another model. `status`
 * is this rank's. */
ak_status ak_load_ranks_agree(const struct ak_load_ranks *r, const struct ak_model_source *source,
                              const struct ak_model *m, ak_status status, struct ak_error *error);

/* The model, for the functions of engine/backends/ranks.h; `backend` is the rank's CPU backend. */
struct ak_ranks_model ak_load_ranks_model(const struct ak_model *m, uint64_t id,
                                          struct ak_backend *backend);

#endif
