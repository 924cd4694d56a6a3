/* Thread pools behind handles, which sessions share. */
#include "api/handles.h"

#include "backend/profile.h"

static ak_status create(unsigned n_threads, const char *cpus, struct ak_pool **out,
                        struct ak_error *error)
{
    const struct ak_backend_profile no_profile = { 0 };
    struct ak_cpus list;
    if (cpus)
        AK_TRY(ak_cpus_parse(cpus, &list, error));
    AK_TRY(ak_session_choose_threads(n_threads, &no_profile, &n_threads, error));
    AK_TRY(ak_pool_create(n_threads, out, error));
    ak_pool_share(*out);
    if (cpus)
        return ak_pool_pin(*out, &list, error);
    ak_pool_pin_numa(*out);
    return AKUNU_OK;
}

struct akunu_pool *akunu_pool_new(unsigned n_threads, const char *cpus)
{
    struct ak_error error = { 0 };
    struct ak_pool *pool = NULL;
    if (create(n_threads, cpus, &pool, &error) == AKUNU_OK)
        return (struct akunu_pool *)pool;
    ak_api_finish(&error);
    ak_pool_free(pool);
    return NULL;
}

void akunu_pool_free(struct akunu_pool *pool)
{
    ak_pool_free(ak_pool_from_handle(pool));
}

unsigned akunu_pool_threads(const struct akunu_pool *pool)
{
    return pool ? ak_pool_threads((const struct ak_pool *)pool) : 0;
}
