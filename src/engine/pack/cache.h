/* The packed cache: a model's packed block in a file, which later loads map instead of packing
 * again. engine/session/ loads weights through it, api/ says what it would do; files/store/store.h
 * has the folder and the file format.
 *
 * The key covers the model file (size, time, everything except tensors), the backend, each weight's
 * place in the block, and what the backend's packer makes of a synthetic weight of each type. */
#ifndef AK_ENGINE_PACK_CACHE_H
#define AK_ENGINE_PACK_CACHE_H

#include "engine/pack/pack.h"
#include "files/store/store.h"

/* ---- Use (cache.c) ------------------------------------------------------ */
struct ak_pack_cache_options {
    const char *dir;           /* NULL: ak_store_default_dir() */
    uint64_t available_memory; /* bytes, for the check of space if the folder is in memory */
    uint64_t limit;            /* bytes of all packed weights; 0: ak_store_default_limit() */
    const struct ak_log *log;
};

/* Gives the weights of `job` their block: from the cache; else packed into the cache; else packed
 * in memory, with a line in the log that says why. Fails only if memory runs out or progress
 * cancels. */
ak_status ak_pack_cache_weights(struct ak_pack_job *job,
                                const struct ak_pack_cache_options *options,
                                struct ak_error *error);

/* ---- Plan (cache_plan.c) ------------------------------------------------ */
enum { AK_PACK_CACHE_WHY_BYTES = 256 };
struct ak_pack_cache_plan {
    enum akunu_packing packing;
    char file[AK_STORE_NAME_BYTES];    /* in the cache folder; "": none is read or written */
    enum akunu_cache_state state;      /* of that file; 0: there is none */
    int64_t built, used;               /* seconds since 1970, if it is READY */
    uint64_t limit;                    /* bytes of all packed weights, if KEPT; else 0 */
    char why[AK_PACK_CACHE_WHY_BYTES]; /* why they are not mapped; "": they are */
};

/* What ak_pack_cache_weights would do now; writes nothing. Fails only if memory runs out. */
ak_status ak_pack_cache_plan(const struct ak_pack_job *job,
                             const struct ak_pack_cache_options *options,
                             struct ak_pack_cache_plan *out, struct ak_error *error);

/* The same for weights that are not cached. */
void ak_pack_cache_plan_without(const struct ak_pack_job *job, struct ak_pack_cache_plan *out);

/* ---- Key (cache_key.c) -------------------------------------------------- */
ak_status ak_pack_cache_key(const struct ak_pack_job *job, struct ak_store_key *out,
                            struct ak_error *error);

/* "KEY.packed", "KEY.packed.part" */
void ak_pack_cache_name(const struct ak_store_key *key, char name[AK_STORE_NAME_BYTES]);
void ak_pack_cache_temp_name(const struct ak_store_key *key, char name[AK_STORE_NAME_BYTES]);

/* ---- Building (cache_build.c) ------------------------------------------- */
/* Packs the block of `job` into writer->fd, an empty file, and commits it. On failure returns
 * false, removes the file and sets *why (a string constant or strerror()'s); *cancelled: progress
 * cancelled. */
bool ak_pack_cache_build(const struct ak_pack_job *job, struct ak_store_writer *writer,
                         bool *cancelled, const char **why);

#endif
