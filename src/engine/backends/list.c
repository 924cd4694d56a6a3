/* The backends of this build, by name. */
#include "engine/backends/list.h"

#include <string.h>

#include "config.h"
#include "engine/cpu/backend.h"
#ifdef HAVE_AK_OPENCL
#include "opencl/backend.h"
#endif

static const struct ak_backend_ops *const backends[] = {
    &ak_cpu_backend,
#ifdef HAVE_AK_OPENCL
    &ak_ocl_backend,
#endif
    NULL,
};

const struct ak_backend_ops *const *ak_backend_list(void)
{
    return backends;
}

ak_status ak_backend_find(const char *name, const struct ak_backend_ops **out,
                          struct ak_error *error)
{
    for (const struct ak_backend_ops *const *ops = backends; *ops; ops++) {
        *out = *ops;
        if (!name || strcmp((*ops)->name, name) == 0)
            return AKUNU_OK;
    }
    return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                   "this build has no backend called \"%s\"; it has cpu%s", name,
                   backends[1] ? " and opencl" : ", and none for OpenCL");
}
