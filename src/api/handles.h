/* The public handle of a model. */
#ifndef AK_API_HANDLES_H
#define AK_API_HANDLES_H

#include "base/error.h"
#include "session/model.h"
#include "session/session.h"
#include "tokenizer/tokenizer.h"
#include "weights/provider.h"

/* A handle of its own owns `inner`; one inside a model leaves it to the model. */
struct akunu_tokenizer {
    struct ak_tokenizer *inner;
};

struct akunu_model {
    struct ak_model *inner;
    struct akunu_tokenizer tokenizer; /* lends the model's */
    struct akunu_file *file;          /* lends the model's provider */
    char *name, *architecture;
};

struct akunu_session {
    struct ak_session *inner;
};

/* The session behind a handle; NULL, with the error filled in, where that is NULL. */
struct ak_session *ak_api_session(const struct akunu_session *session, struct ak_error *error);

/* A handle around a provider that stays its owner's and must outlive it; NULL
 * without memory. */
struct akunu_file *ak_api_lend_file(struct ak_provider *provider);

/* ---- Errors: error.c ---------------------------------------------------- */
/* The message of the calling thread's last failed call. */

/* Keeps `error`, whose status is not AKUNU_OK, for akunu_last_error and
 * akunu_last_status; returns its status. */
enum akunu_status ak_api_fail(const struct ak_error *error);

/* ---- Sized structs: error.c --------------------------------------------- */
/* Structs of the public header that begin with their size, so that a program and
 * a library of different versions understand each other. */

/* Copies the caller's struct `given` over `out`, which holds the defaults and is
 * known_bytes long: what the caller's version lacks keeps its default, what it has
 * beyond ours is not looked at. given NULL: all defaults. `what` names the struct. */
ak_status ak_api_copy_in(void *out, size_t known_bytes, const void *given, const char *what,
                         struct ak_error *error);

/* Fills the caller's struct `out` from `full`, as much of it as both know. */
ak_status ak_api_copy_out(void *out, const void *full, size_t full_bytes, const char *what,
                          struct ak_error *error);

#endif
