/* JSON texts with numbers beyond jansson's types: they are marked before jansson reads a text, and
 * the marks are removed from what it writes. */
#include "apps/common/json_text.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/json/wide.h"

json_t *app_json_read(const char *text, size_t n, size_t flags, enum app_json_form form,
                      json_error_t *error)
{
    unsigned wide = AK_WIDE_DIGITS | (form == APP_JSON_PYTHON ? AK_WIDE_PYTHON : 0);
    size_t skipped = ak_wide_skip_mark(text, n);
    text += skipped;
    n -= skipped;
    size_t n_marked = ak_wide_mark(text, n, wide, NULL);
    if (n_marked == n)
        return json_loadb(text, n, flags, error);
    char *marked = malloc(n_marked);
    if (!marked) {
        if (error)
            *error = (json_error_t){ .text = "no memory" };
        return NULL;
    }
    ak_wide_mark(text, n, wide, marked);
    json_t *value = json_loadb(marked, n_marked, flags, error);
    free(marked);
    return value;
}

char *app_json_write(const json_t *value, size_t flags)
{
    char *text = json_dumps(value, flags);
    if (text)
        ak_wide_unmark(text);
    return text;
}

bool app_json_is_object(const json_t *value)
{
    return json_is_object(value) && !ak_wide_text(value);
}
