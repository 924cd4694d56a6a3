/* The backends of this build. */
#ifndef AK_BACKENDS_LIST_H
#define AK_BACKENDS_LIST_H

#include "backend/backend.h"

/* Ends in NULL. The CPU is always first. */
const struct ak_backend_ops *const *ak_backend_list(void);

/* The backend called `name`; NULL: the CPU's. */
ak_status ak_backend_find(const char *name, const struct ak_backend_ops **out,
                          struct ak_error *error);

/* Composite backend (split.c): first layers on one backend, the rest and what follows them on
 * another. */
/* Layers [0, split_layer) go to `first`, the others to `second`; 0 < split_layer < layers. *out
 * takes both on success and closes them in the end; `spec` outlives it. */
ak_status ak_backend_open_split(struct ak_backend *first, struct ak_backend *second,
                                const struct ak_spec *spec, uint32_t split_layer,
                                struct ak_backend **out, struct ak_error *error);

#endif
