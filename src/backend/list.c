#include "backend/list.h"

#include "cpu/backend.h"

static const struct ak_backend_ops *const backends[] = {
    &ak_cpu_backend,
    NULL,
};

const struct ak_backend_ops *const *ak_backends(void)
{
    return backends;
}
