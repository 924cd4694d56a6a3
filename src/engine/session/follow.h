/* A rank that follows rank 0: loads the models that rank 0 loads, each rank its shard, and runs
 * their passes. load_ranks.c sends what is loaded; api/comm.c follows. */
#ifndef AK_ENGINE_SESSION_FOLLOW_H
#define AK_ENGINE_SESSION_FOLLOW_H

#include "engine/backends/ranks.h"
#include "engine/session/model.h"

/* The message that has all ranks load a model. */
void ak_follow_put_load(struct ak_message *m, uint64_t id, const char *path,
                        const struct akunu_load_params *params);

/* Follows until rank 0 ends (AKUNU_OK), or this rank cannot go on. `open_quantized`: see
 * struct ak_model_source. */
ak_status ak_follow(struct ak_comm *comm, ak_model_open_fn *open_quantized,
                    const struct ak_log *log, struct ak_error *error);

#endif
