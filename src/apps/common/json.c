/* JSON values of what model files may hold: any bytes, any float, 64-bit integers. */
#include "apps/common/output.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/common/message.h"

json_t *app_json_text(const char *bytes, size_t n)
{
    static const char replacement[] = "\xef\xbf\xbd";
    json_t *value = json_stringn(bytes ? bytes : "", n);
    if (value)
        return value;

    /* malformed UTF-8 or out of memory: the copy below tells which */
    char *text = n < SIZE_MAX / 4 ? malloc(3 * n + 1) : NULL;
    size_t n_text = 0;
    if (!text)
        return NULL;
    for (size_t i = 0; i < n;) {
        size_t length = app_utf8_length(bytes + i, n - i);
        const char *from = length ? bytes + i : replacement;
        size_t n_from = length ? length : strlen(replacement);
        memcpy(text + n_text, from, n_from);
        n_text += n_from;
        i += length ? length : app_utf8_malformed_length(bytes + i, n - i);
    }
    value = json_stringn(text, n_text);
    free(text);
    return value;
}

json_t *app_json_real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *app_json_unsigned(uint64_t value)
{
    return value <= INT64_MAX ? json_integer((json_int_t)value) : json_real((double)value);
}

static int write_bytes(const char *bytes, size_t n, void *out)
{
    return app_output_bytes(out, bytes, n) ? 0 : -1;
}

bool app_json_print(struct app_output *out, json_t *value)
{
    if (!value || json_dump_callback(value, write_bytes, out, JSON_ENCODE_ANY) != 0) {
        if (out->error == 0)
            out->error = ENOMEM;
    }
    json_decref(value);
    return out->error == 0;
}
