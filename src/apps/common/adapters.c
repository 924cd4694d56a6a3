/* Reads --lora: FILE[:SCALE], several between commas. A comma or colon may be part of a file's
 * name: if a file of the whole name exists, it is meant. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/common/load.h"
#include "apps/common/message.h"

static int fail_count(void)
{
    return app_fail_usage("--lora: more than %d adapters", APP_MAX_ADAPTERS);
}

/* Cuts ":SCALE" off `text`, unless a file has the whole name. False: SCALE is no number. */
static bool cut_scale(char *text, float *scale)
{
    char *colon = strrchr(text, ':'), *end;
    *scale = 1.0f;
    if (!colon || colon[1] == '\0' || strchr(colon, '/') || access(text, F_OK) == 0)
        return true;
    *scale = strtof(colon + 1, &end);
    *colon = '\0';
    return *end == '\0';
}

static bool is_file(const char *text)
{
    char *copy = strdup(text);
    float scale;
    bool found = copy && cut_scale(copy, &scale) && access(copy, F_OK) == 0;
    free(copy);
    return found;
}

static int add_adapter(struct app_adapters *out, const char *text, size_t n)
{
    if (out->n == APP_MAX_ADAPTERS)
        return fail_count();
    char *path = strndup(text, n);
    if (!path)
        return app_fail_memory();
    struct akunu_adapter *adapter = &out->list[out->n++];
    adapter->path = path;
    if (!cut_scale(path, &adapter->scale))
        return app_fail_usage("--lora %.*s: expected FILE or FILE:SCALE, and SCALE is not a number",
                              (int)n, text);
    if (*path == '\0')
        return app_fail_usage("--lora: the name of a file is missing");
    return APP_EXIT_OK;
}

int app_adapters_read(const struct app_texts *texts, struct app_adapters *out)
{
    int code = APP_EXIT_OK;
    *out = (struct app_adapters){ 0 };
    for (size_t i = 0; code == APP_EXIT_OK && i < texts->n; i++) {
        const char *text = texts->values[i];
        bool whole = is_file(text);
        do {
            size_t n = whole ? strlen(text) : strcspn(text, ",");
            code = add_adapter(out, text, n);
            text += n;
        } while (code == APP_EXIT_OK && *text++ == ',');
    }
    if (code != APP_EXIT_OK)
        app_adapters_free(out);
    return code;
}

void app_adapters_free(struct app_adapters *adapters)
{
    for (size_t i = 0; i < adapters->n; i++)
        free((void *)(uintptr_t)adapters->list[i].path);
    adapters->n = 0;
}
