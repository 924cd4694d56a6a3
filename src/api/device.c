#include <stdio.h>

#include "api/error.h"
#include "api/versioned.h"
#include "backends/list.h"

static ak_status find(size_t i, struct akunu_device_info *out, struct ak_error *error)
{
    for (const struct ak_backend_ops *const *ops = ak_backend_list(); *ops; ops++) {
        if (!(*ops)->device_info)
            continue;
        AK_TRY((*ops)->device_info(i, out, error));
        snprintf(out->backend, sizeof out->backend, "%s", (*ops)->name);
        return AKUNU_OK;
    }
    return ak_fail(error, AKUNU_ERROR_UNSUPPORTED,
                   "this build has no backend but the CPU's: it was configured without OpenCL");
}

enum akunu_status akunu_device_at(size_t i, struct akunu_device_info *info)
{
    struct ak_error error = { 0 };
    struct akunu_device_info full = { 0 };
    ak_status status = find(i, &full, &error);
    if (status == AKUNU_OK)
        status = ak_api_copy_out(info, &full, sizeof full, "akunu_device_info", &error);
    return status == AKUNU_OK ? AKUNU_OK : ak_api_fail(&error);
}
