#include "api/versioned.h"

#include <string.h>

#include "base/mem.h"

static ak_status size_of(const void *given, const char *what, size_t *bytes, struct ak_error *error)
{
    memcpy(bytes, given, sizeof *bytes);
    if (*bytes <= sizeof *bytes)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT,
                       "struct %s: its field `size` is %zu and must be the size of the struct",
                       what, *bytes);
    return AKUNU_OK;
}

ak_status ak_api_copy_in(void *out, size_t known_bytes, const void *given, const char *what,
                         struct ak_error *error)
{
    size_t bytes;
    if (!given)
        return AKUNU_OK;
    AK_TRY(size_of(given, what, &bytes, error));
    memcpy(out, given, ak_min_size(bytes, known_bytes));
    memcpy(out, &known_bytes, sizeof known_bytes);
    return AKUNU_OK;
}

ak_status ak_api_copy_out(void *out, const void *full, size_t full_bytes, const char *what,
                          struct ak_error *error)
{
    size_t bytes;
    if (!out)
        return ak_fail(error, AKUNU_ERROR_ARGUMENT, "no struct %s is given to fill", what);
    AK_TRY(size_of(out, what, &bytes, error));
    memcpy(out, full, ak_min_size(bytes, full_bytes));
    memcpy(out, &bytes, sizeof bytes);
    return AKUNU_OK;
}
