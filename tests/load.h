/* Loading a model from a path, for tests. */
#ifndef AK_TESTS_LOAD_H
#define AK_TESTS_LOAD_H

#include "engine/session/model.h"

static inline ak_status load_from(const char *path, const struct akunu_load_params *params,
                                  struct ak_model **out, struct ak_error *error)
{
    const struct ak_model_source source = { .path = path, .params = params };
    return ak_model_load(&source, out, error);
}

#endif
