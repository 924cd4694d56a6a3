/* Says what is at a path that no format opens. */
#ifndef AK_WEIGHTS_UNKNOWN_H
#define AK_WEIGHTS_UNKNOWN_H

#include "base/error.h"

/* Fills `error` with what was found at `path` and what is accepted. */
ak_status ak_provider_fail_unknown_format(const char *path, struct ak_error *error);

#endif
