/* akunu_profile_tune measures kernels for a chip profile; akunu_profile_write writes it to a file.
 */
#include "api/handles.h"
#include "engine/backend/profile.h"
#include "engine/backends/list.h"

void akunu_profile_default(struct akunu_profile *profile, size_t size)
{
    static const struct akunu_profile full = { 0 };
    ak_api_give_default(profile, size, &full, sizeof full);
}

void akunu_tune_params_default(struct akunu_tune_params *params, size_t size)
{
    static const struct akunu_tune_params full = { .n_threads = 1, .n_runs = 5 };
    ak_api_give_default(params, size, &full, sizeof full);
}

static bool on_tune_progress(double fraction, void *user)
{
    const struct akunu_tune_params *params = user;
    return !params->progress || params->progress(fraction, params->user);
}

static ak_status tune(const struct akunu_tune_params *given, struct akunu_profile *out, size_t size,
                      struct ak_error *error)
{
    struct ak_backend_profile tuned = { 0 };
    struct akunu_tune_params params;
    akunu_tune_params_default(&params, sizeof params);
    AK_TRY(ak_api_copy_in(&params, sizeof params, given, "akunu_tune_params", error));
    if (params.n_threads < 1 || params.n_runs < 1 || !out)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "tuning needs at least one thread, one run and a place for the result");
    AK_TRY(ak_backend_list()[0]->tune(params.cpu, params.n_threads, params.n_runs, on_tune_progress,
                                      &params, &tuned, error));
    struct akunu_profile full = {
        .size = size,
        .skinny_scale32 = tuned.skinny_max[AK_BACKEND_PROFILE_SCALE32],
        .skinny_scale256 = tuned.skinny_max[AK_BACKEND_PROFILE_SCALE256],
        .skinny_float = tuned.skinny_max[AK_BACKEND_PROFILE_FLOAT],
        .blas_scale32 = tuned.blas[AK_BACKEND_PROFILE_SCALE32],
        .blas_scale256 = tuned.blas[AK_BACKEND_PROFILE_SCALE256],
        .blas_float = tuned.blas[AK_BACKEND_PROFILE_FLOAT],
    };
    return ak_api_copy_out(out, size, &full, sizeof full, "akunu_profile", error);
}

enum akunu_status akunu_profile_tune(const struct akunu_tune_params *params,
                                     struct akunu_profile *out, size_t size)
{
    struct ak_error error = { 0 };
    tune(params, out, size, &error);
    return ak_api_finish(&error);
}

static ak_status write_profile(const struct akunu_profile *given, const char *path,
                               struct ak_error *error)
{
    struct akunu_profile full = { .size = sizeof full };
    if (!given || !path)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "no profile or no path is given");
    AK_TRY(ak_api_copy_in(&full, sizeof full, given, "akunu_profile", error));
    struct ak_backend_profile profile = { .threads = full.threads,
                                          .prefill_chunk = full.prefill_chunk };
    profile.skinny_max[AK_BACKEND_PROFILE_SCALE32] = full.skinny_scale32;
    profile.skinny_max[AK_BACKEND_PROFILE_SCALE256] = full.skinny_scale256;
    profile.skinny_max[AK_BACKEND_PROFILE_FLOAT] = full.skinny_float;
    profile.blas[AK_BACKEND_PROFILE_SCALE32] = full.blas_scale32;
    profile.blas[AK_BACKEND_PROFILE_SCALE256] = full.blas_scale256;
    profile.blas[AK_BACKEND_PROFILE_FLOAT] = full.blas_float;
    return ak_backend_profile_write(&profile, path, error);
}

enum akunu_status akunu_profile_write(const struct akunu_profile *profile, const char *path)
{
    struct ak_error error = { 0 };
    write_profile(profile, path, &error);
    return ak_api_finish(&error);
}
