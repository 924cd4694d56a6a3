/* akunu_advisor_…: what a model would take and lose as each type. */
#include "api/handles.h"

#include "conversion/advise/advise.h"
#include "base/mem.h"

struct akunu_advisor {
    struct ak_advisor inner;
};

void akunu_advisor_params_default(struct akunu_advisor_params *params, size_t size)
{
    static const struct akunu_advisor_params full = { 0 };
    ak_api_give_default(params, size, &full, sizeof full);
}

static ak_status open_advisor(const char *path, const struct akunu_advisor_params *given,
                              struct ak_advisor *a, struct ak_error *error)
{
    struct akunu_advisor_params params;
    akunu_advisor_params_default(&params, sizeof params);
    if (!path)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "no path is given");
    AK_TRY(ak_api_copy_in(&params, sizeof params, given, "akunu_advisor_params", error));
    akunu_load_params_default(&a->load, sizeof a->load);
    akunu_session_params_default(&a->session, sizeof a->session);
    AK_TRY(ak_api_copy_in(&a->session, sizeof a->session, params.session, "akunu_session_params",
                          error));
    a->load.cpu = params.cpu;
    a->load.override_kv = params.override_kv;
    a->load.ignore_keys = params.ignore_keys;
    a->load.n_gpu_layers = 0; /* the CPU, whatever AKUNU_BACKEND says */
    a->no_speed = params.no_speed;
    return ak_advisor_init(a, path, error);
}

struct akunu_advisor *akunu_advisor_new(const char *path, const struct akunu_advisor_params *params)
{
    struct ak_error error = { 0 };
    struct akunu_advisor *advisor = ak_alloc(1, sizeof *advisor);
    if (!advisor)
        ak_fail_memory(&error, "an advisor", sizeof *advisor);
    else
        open_advisor(path, params, &advisor->inner, &error);
    if (error.status == AKUNU_OK)
        return advisor;
    ak_api_finish(&error);
    akunu_advisor_free(advisor);
    return NULL;
}

void akunu_advisor_free(struct akunu_advisor *advisor)
{
    if (!advisor)
        return;
    ak_advisor_clear(&advisor->inner);
    ak_free(advisor);
}

enum akunu_status akunu_advisor_get_advice(struct akunu_advisor *advisor, const char *type,
                                           struct akunu_advice *advice, size_t size)
{
    struct ak_error error = { 0 };
    struct akunu_advice full;
    if (!advisor)
        ak_fail(&error, AKUNU_ERROR_ARGUMENT, "the advisor is NULL");
    else if (ak_advisor_get(&advisor->inner, type, &full, &error) == AKUNU_OK)
        ak_api_copy_out(advice, size, &full, sizeof full, "akunu_advice", &error);
    return ak_api_finish(&error);
}
