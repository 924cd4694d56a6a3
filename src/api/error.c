/* The last error of each thread, status names, and copying structs that begin with their size. */
#include "api/handles.h"

#include <string.h>

#include "base/mem.h"

static _Thread_local struct ak_error last_failure;

enum akunu_status ak_api_finish(const struct ak_error *error)
{
    if (error->status != AKUNU_OK)
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
        [AKUNU_ERROR_BUSY] = "busy",
    };
    size_t i = (size_t)status;
    return i < sizeof names / sizeof *names ? names[i] : "unknown";
}

/* ---- Sized structs ------------------------------------------------------ */
static void copy(void *out, size_t out_bytes, const void *full, size_t full_bytes)
{
    size_t common = ak_min_size(out_bytes, full_bytes);
    memcpy(out, full, common);
    memset((char *)out + common, 0, out_bytes - common);
}

void ak_api_give_default(void *out, size_t out_bytes, const void *full, size_t full_bytes)
{
    if (!out || out_bytes < sizeof out_bytes)
        return;
    copy(out, out_bytes, full, full_bytes);
    memcpy(out, &out_bytes, sizeof out_bytes);
}

ak_status ak_api_copy_in(void *out, size_t known_bytes, const void *given, const char *what,
                         struct ak_error *error)
{
    size_t bytes;
    if (!given)
        return AKUNU_OK;
    memcpy(&bytes, given, sizeof bytes);
    if (bytes <= sizeof bytes)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "struct %s: its field `size` is %zu and must be the size of the struct",
                       what, bytes);
    memcpy(out, given, ak_min_size(bytes, known_bytes));
    memcpy(out, &known_bytes, sizeof known_bytes);
    return AKUNU_OK;
}

ak_status ak_api_copy_out(void *out, size_t out_bytes, const void *full, size_t full_bytes,
                          const char *what, struct ak_error *error)
{
    if (!out || out_bytes == 0)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "no struct %s is given to fill", what);
    copy(out, out_bytes, full, full_bytes);
    return AKUNU_OK;
}
