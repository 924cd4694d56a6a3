/* List of the backends of this build, and a composite backend that runs one model's layers on two
 * of them. engine/session/ opens backends through it. api/ lists them, and measures and tunes the
 * CPU. bench/ finds devices with it. */
#ifndef AK_ENGINE_BACKENDS_LIST_H
#define AK_ENGINE_BACKENDS_LIST_H

#include "engine/backend/backend.h"

/* Ends in NULL. The CPU is always first. */
const struct ak_backend_ops *const *ak_backend_list(void);

/* Finds the backend called `name`; NULL: the CPU. */
ak_status ak_backend_find(const char *name, const struct ak_backend_ops **out,
                          struct ak_error *error);

/* Composite backend (split.c). Layers [0, split_layer) run on `first`, the others and what follows
 * them on `second`; 0 < split_layer < layers. On success *out owns both and closes them with
 * itself. `spec` must outlive it. */
ak_status ak_backend_open_split(struct ak_backend *first, struct ak_backend *second,
                                const struct ak_spec *spec, uint32_t split_layer,
                                struct ak_backend **out, struct ak_error *error);

#endif
