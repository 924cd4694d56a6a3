/* Records of downloaded models. A damaged record counts as none. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "apps/common/input.h"
#include "apps/common/message.h"
#include "apps/common/pull/part.h"
#include "apps/common/pull/pull.h"

enum { RECORD_VERSION = 1 };
static const char suffix[] = ".json";

static char *record_path(const char *models, const char *name)
{
    char *path;
    return asprintf(&path, "%s/.pull/%s%s", models, name, suffix) < 0 ? NULL : path;
}

json_t *app_pulled_read(const char *models, const char *name)
{
    char *path = record_path(models, name);
    json_t *record = path ? json_load_file(path, JSON_REJECT_DUPLICATES, NULL) : NULL;
    free(path);
    if (json_integer_value(json_object_get(record, "version")) == RECORD_VERSION &&
        json_is_array(json_object_get(record, "sources")) &&
        json_is_array(json_object_get(record, "files")))
        return record;
    json_decref(record);
    return NULL;
}

bool app_pulled_write(const char *models, const char *name, const json_t *record)
{
    char *path = record_path(models, name);
    bool ok = path && record && app_write_json(path, record);
    free(path);
    return ok;
}

json_t *app_pulled_new(bool is_folder)
{
    return json_pack("{s:i, s:b, s:[], s:[]}", "version", RECORD_VERSION, "folder", is_folder,
                     "sources", "files");
}

static const char *string_member(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

const json_t *app_pulled_file(const json_t *record, const char *key)
{
    const json_t *files = json_object_get(record, "files");
    for (size_t i = 0; i < json_array_size(files); i++)
        if (strcmp(string_member(json_array_get(files, i), "url"), key) == 0)
            return json_array_get(files, i);
    return NULL;
}

bool app_pulled_name(const json_t *record, const char *name)
{
    const json_t *files = json_object_get(record, "files");
    for (size_t i = 0; i < json_array_size(files); i++)
        if (strcmp(string_member(json_array_get(files, i), "name"), name) == 0)
            return true;
    return false;
}

void app_pulled_add_file(json_t *record, const struct app_remote_file *file, const char *key)
{
    json_t *files = json_object_get(record, "files");
    for (size_t i = json_array_size(files); i-- > 0;)
        if (strcmp(string_member(json_array_get(files, i), "name"), file->name) == 0)
            json_array_remove(files, i);
    json_array_append_new(files, json_pack("{s:s, s:s, s:s, s:s, s:I}", "name", file->name, "url",
                                           key, "id", file->id, "sha256", file->sha256, "size",
                                           (json_int_t)file->size));
}

static bool has_source(const json_t *record, const char *source)
{
    const json_t *sources = json_object_get(record, "sources");
    for (size_t i = 0; i < json_array_size(sources); i++) {
        const char *text = json_string_value(json_array_get(sources, i));
        if (text && strcmp(text, source) == 0)
            return true;
    }
    return false;
}

void app_pulled_add_source(json_t *record, const char *source)
{
    if (!has_source(record, source))
        json_array_append_new(json_object_get(record, "sources"), json_string(source));
}

/* Whether all files have their sizes. */
static bool is_there(const char *models, const char *name, const json_t *record)
{
    const json_t *files = json_object_get(record, "files");
    bool is_folder = json_is_true(json_object_get(record, "folder"));
    bool there = json_array_size(files) > 0;
    for (size_t i = 0; there && i < json_array_size(files); i++) {
        const json_t *file = json_array_get(files, i);
        struct stat st;
        char *path;
        if (asprintf(&path, "%s/%s%s%s", models, is_folder ? name : "", is_folder ? "/" : "",
                     string_member(file, "name")) < 0)
            return false;
        there = stat(path, &st) == 0 && S_ISREG(st.st_mode) &&
                st.st_size == json_integer_value(json_object_get(file, "size"));
        free(path);
    }
    return there;
}

static int is_record(const struct dirent *entry)
{
    return app_ends_with(entry->d_name, suffix);
}

char *app_pulled_find(const char *models, const char *source)
{
    struct dirent **entries = NULL;
    char *folder, *found = NULL;
    if (asprintf(&folder, "%s/.pull", models) < 0)
        return NULL;
    int n = scandir(folder, &entries, is_record, alphasort);
    for (int i = 0; i < n; i++) {
        char *name = entries[i]->d_name;
        name[strlen(name) - strlen(suffix)] = '\0';
        json_t *record = found ? NULL : app_pulled_read(models, name);
        if (record && has_source(record, source) && is_there(models, name, record))
            found = strdup(name);
        json_decref(record);
        free(entries[i]);
    }
    free(entries);
    free(folder);
    return found;
}
