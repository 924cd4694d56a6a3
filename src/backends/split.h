/* A model's layers on two backends: the first ones on one, the last ones and all that
 * follows them on another. */
#ifndef AK_BACKENDS_SPLIT_H
#define AK_BACKENDS_SPLIT_H

#include "backend/backend.h"

/* Layers [0, split_layer) go to `first`, the others to `second`; 0 < split_layer < layers. *out
 * takes both on success and closes them in the end; `spec` outlives it. */
ak_status ak_backend_open_split(struct ak_backend *first, struct ak_backend *second,
                                const struct ak_spec *spec, uint32_t split_layer,
                                struct ak_backend **out, struct ak_error *error);

#endif
