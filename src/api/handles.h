/* Handles of models, sessions and tokenizers, and helpers of the public calls. The helpers refuse a
 * second call while a session is in use, keep a thread's last error, and copy structs between
 * versions of the library. Most other handles are defined beside their calls. */
#ifndef AK_API_HANDLES_H
#define AK_API_HANDLES_H

#include "base/error.h"
#include "engine/session/model.h"
#include "engine/session/session.h"
#include "text/template/template.h"
#include "text/tokenizer/tokenizer.h"
#include "files/weights/provider.h"

/* A separate handle owns `inner`; the one inside a model borrows it. */
struct akunu_tokenizer {
    struct ak_tokenizer *inner;
};

struct akunu_model {
    struct ak_model *inner;
    struct akunu_tokenizer tokenizer; /* lends the model's */
    struct akunu_file *file;          /* borrows the model's provider */
    char *name, *architecture;
};

struct akunu_session {
    struct ak_session *inner;
    struct ak_tmpl_set *templates; /* the model's, for prompt.c; NULL: not read yet */
    _Atomic int state;             /* idle, in a call, or freed during it: enum of session.c */
};

/* Begins a call. Returns the session behind the handle; NULL, with the error set, if the handle is
 * NULL or another call has not ended yet. */
struct ak_session *ak_api_begin(struct akunu_session *session, struct ak_error *error);

/* Ends the call that ak_api_begin began, unless `s` is NULL. Returns ak_api_finish(error). */
enum akunu_status ak_api_end(struct akunu_session *session, const struct ak_session *s,
                             const struct ak_error *error);

/* A handle that borrows a provider, which must outlive it; NULL if out of memory. */
struct akunu_file *ak_api_lend_file(struct ak_provider *provider);

/* ---- Sums over weights: model.c ----------------------------------------- */
/* Bytes of all weights that a pass of one token reads, and of a row of the embedding. */
uint64_t ak_api_all_token_bytes(const struct ak_model *m);

/* ---- Loading: model.c --------------------------------------------------- */
/* The model as params->quantize says; *out NULL: as stored. */
ak_status ak_api_open_quantized(const char *path, const struct akunu_load_params *params,
                                struct ak_provider **out, struct ak_error *error);

/* ---- Plans: plan.c ------------------------------------------------------ */
struct ak_pack_cache_plan; /* engine/pack/cache.h */
void ak_api_fill_plan(struct ak_model *m, const struct ak_pack_cache_plan *cache,
                      const struct ak_session_plan *session, struct akunu_load_plan *out);

/* ---- Prompts: prompt.c -------------------------------------------------- */
/* Makes the ids of the prompt that akunu_session_complete runs. The caller frees *ids. */
ak_status ak_api_make_prompt(struct akunu_session *session, const char *text, size_t n_bytes,
                             const struct akunu_completion_params *completion, int32_t **ids,
                             size_t *n_ids, struct ak_error *error);

/* ---- Generating: generate.c --------------------------------------------- */
/* Parameters of akunu_session_generate, completed with defaults. */
struct ak_api_generation {
    struct akunu_generation_params generation; /* points to the other two */
    struct akunu_sampling_params sampling;
    struct akunu_reasoning reasoning;
};
/* `given` NULL: all defaults. */
ak_status ak_api_copy_generation(struct ak_api_generation *out,
                                 const struct akunu_generation_params *given,
                                 struct ak_error *error);

/* ---- Errors: error.c ---------------------------------------------------- */
/* The last error of the calling thread. */

/* Returns the status of `error`, and stores it for akunu_last_error and akunu_last_status unless it
 * is AKUNU_OK. */
enum akunu_status ak_api_finish(const struct ak_error *error);

/* ---- Sized structs: error.c --------------------------------------------- */
/* The caller states the size of its structs, so that programs and libraries of different versions
 * work together. A struct that it fills begins with its size; for one that it gets, the size is an
 * argument. */

/* Writes the defaults `full` to the caller's struct `out`, as many bytes as both versions have, and
 * 0 to the rest. Its first member becomes `out_bytes`. Does nothing if that does not fit. */
void ak_api_give_default(void *out, size_t out_bytes, const void *full, size_t full_bytes);

/* Copies the caller's struct `given` over `out`, which holds defaults and is known_bytes long.
 * Fields that the caller's version lacks keep their defaults; fields unknown here are ignored. A
 * NULL `given` means all defaults. `what` names the struct in messages. */
ak_status ak_api_copy_in(void *out, size_t known_bytes, const void *given, const char *what,
                         struct ak_error *error);

/* Copies `full` to the caller's struct `out`, as many bytes as both versions have, and 0 to the
 * rest. */
ak_status ak_api_copy_out(void *out, size_t out_bytes, const void *full, size_t full_bytes,
                          const char *what, struct ak_error *error);

#endif
