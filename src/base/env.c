#include "base/env.h"

#include <stdlib.h>

const char *ak_env(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}
