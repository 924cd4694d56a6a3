#include "api/error.h"

static _Thread_local struct ak_error last_failure;

enum akunu_status ak_api_fail(const struct ak_error *error)
{
    last_failure = *error;
    return error->status;
}

const char *akunu_last_error(void)
{
    return last_failure.message;
}

enum akunu_status akunu_last_status(void)
{
    return last_failure.status;
}

const char *akunu_status_name(enum akunu_status status)
{
    static const char *const names[] = {
        [AKUNU_OK] = "ok",
        [AKUNU_ERROR_ARGUMENT] = "argument",
        [AKUNU_ERROR_FORMAT] = "format",
        [AKUNU_ERROR_UNSUPPORTED] = "unsupported",
        [AKUNU_ERROR_MEMORY] = "memory",
        [AKUNU_ERROR_CONTEXT] = "context",
        [AKUNU_ERROR_IO] = "io",
        [AKUNU_ERROR_CANCELLED] = "cancelled",
        [AKUNU_ERROR_SYSTEM] = "system",
        [AKUNU_ERROR_NUMERIC] = "numeric",
    };
    size_t i = (size_t)status;
    return i < sizeof names / sizeof *names ? names[i] : "unknown";
}
