#include "convert/convert.h"

#include "api/error.h"
#include "api/versioned.h"

void akunu_convert_params_default(struct akunu_convert_params *params)
{
    if (params)
        *params = (struct akunu_convert_params){ .size = sizeof *params };
}

static ak_status convert(const char *from, const char *to, const struct akunu_convert_params *given,
                         struct ak_error *error)
{
    struct akunu_convert_params params;
    akunu_convert_params_default(&params);
    if (!from || !to)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "no path is given");
    AK_TRY(ak_api_copy_in(&params, sizeof params, given, "akunu_convert_params", error));
    struct ak_log log = { params.log, params.user };
    struct ak_convert_options options = { .type = params.type,
                                          .pre = params.pre,
                                          .overwrite = params.overwrite,
                                          .override_kv = params.override_kv,
                                          .progress = params.progress,
                                          .user = params.user,
                                          .log = &log };
    return ak_convert(from, to, &options, error);
}

enum akunu_status akunu_convert(const char *from, const char *to,
                                const struct akunu_convert_params *params)
{
    struct ak_error error = { 0 };
    ak_status status = convert(from, to, params, &error);
    return status == AKUNU_OK ? AKUNU_OK : ak_api_fail(&error);
}
