/* Thread pools behind handles, which sessions share. */
#include "api/handles.h"

#include "engine/backend/profile.h"

struct akunu_pool *akunu_pool_new(unsigned n_threads, const char *cpus)
{
    const struct ak_backend_profile no_profile = { 0 };
    struct ak_error error = { 0 };
    struct ak_pool *pool;
    ak_session_create_pool(n_threads, cpus, &no_profile, &pool, &error);
    ak_api_finish(&error);
    return (struct akunu_pool *)pool;
}

void akunu_pool_free(struct akunu_pool *pool)
{
    ak_pool_free(ak_pool_from_handle(pool));
}

unsigned akunu_pool_threads(const struct akunu_pool *pool)
{
    return pool ? ak_pool_threads((const struct ak_pool *)pool) : 0;
}
