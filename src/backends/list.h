/* The backends of this build. */
#ifndef AK_BACKENDS_LIST_H
#define AK_BACKENDS_LIST_H

#include "backend/backend.h"

/* Ends in NULL. The CPU is always first. */
const struct ak_backend_ops *const *ak_backend_list(void);

/* The backend called `name`; NULL: the CPU's. */
ak_status ak_backend_find(const char *name, const struct ak_backend_ops **out,
                          struct ak_error *error);

#endif
