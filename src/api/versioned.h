/* Structs of the public header that begin with their size, so that a program and
 * a library of different versions understand each other. */
#ifndef AK_API_VERSIONED_H
#define AK_API_VERSIONED_H

#include "base/error.h"

/* Copies the caller's struct `given` over `out`, which holds the defaults and is
 * known_bytes long: what the caller's version lacks keeps its default, what it has
 * beyond ours is not looked at. given NULL: all defaults. `what` names the struct. */
ak_status ak_api_copy_in(void *out, size_t known_bytes, const void *given, const char *what,
                         struct ak_error *error);

/* Fills the caller's struct `out` from `full`, as much of it as both know. */
ak_status ak_api_copy_out(void *out, const void *full, size_t full_bytes, const char *what,
                          struct ak_error *error);

#endif
