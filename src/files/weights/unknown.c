/* Explains why no format opens a path: names known foreign formats and folders that lack a file,
 * since a wrong path is the commonest mistake. */
#include "files/weights/formats.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/utf8.h"

static const char accepted_formats[] =
    "a GGUF file (little-endian, version 2 or 3), a folder of "
    "SafeTensors or of NumPy arrays with a "
    "manifest.json, with config.json, a SafeTensors file beside its "
    "config.json, Whisper's GGML file, OpenAI's Whisper checkpoint "
    "(.pt) and a NumPy array are accepted";

enum { MAGIC_BYTES = 4 };

/* Foreign formats of models, by their first bytes. */
static const struct {
    char magic[MAGIC_BYTES + 1];
    const char *what;
} magics[] = {
    { "fmgg", "an old GGML file (ggmf); convert the model to GGUF" },
    { "tjgg", "an old GGML file (ggjt); convert the model to GGUF" },
    { "algg", "a GGML adapter (ggla); not supported" },
    { "FUGG", "a big-endian GGUF file; not supported" },
};

static ak_status fail_file(const char *path, const struct ak_file *file, struct ak_error *error)
{
    if (file->bytes == 0)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s: an empty file; %s", path, accepted_formats);
    if (file->bytes < MAGIC_BYTES)
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "%s: the end of the file (%llu bytes) comes before that of the magic; %s",
                       path, (unsigned long long)file->bytes, accepted_formats);
    char shown[AK_SHOW_BYTES];
    ak_show(file->data, MAGIC_BYTES, shown);
    for (size_t i = 0; i < sizeof magics / sizeof *magics; i++)
        if (memcmp(file->data, magics[i].magic, MAGIC_BYTES) == 0)
            return ak_fail(error, AKUNU_ERROR_UNSUPPORTED, "%s: begins with \"%s\", %s; %s", path,
                           shown, magics[i].what, accepted_formats);
    return ak_fail(error, AKUNU_ERROR_FORMAT, "%s: an unknown format, which begins with \"%s\"; %s",
                   path, shown, accepted_formats);
}

/* Contents of a folder that hint at a model. */
struct folder {
    char gguf[256]; /* the first GGUF file by name */
    size_t n_entries, n_gguf;
    bool has_config, has_manifest;
};

static bool ends_in(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    return n >= m && strcmp(name + n - m, end) == 0;
}

static void count_entry(const char *name, struct folder *f)
{
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return;
    f->n_entries++;
    f->has_config = f->has_config || strcmp(name, "config.json") == 0;
    f->has_manifest = f->has_manifest || strcmp(name, "manifest.json") == 0;
    if (!ends_in(name, ".gguf"))
        return;
    if (f->n_gguf++ == 0 || strcmp(name, f->gguf) < 0)
        snprintf(f->gguf, sizeof f->gguf, "%s", name);
}

static ak_status fail_folder(const char *path, const struct folder *f, struct ak_error *error)
{
    char shown[AK_SHOW_BYTES];
    if (f->n_entries == 0)
        return ak_fail(error, AKUNU_ERROR_FORMAT, "%s: an empty folder; %s", path,
                       accepted_formats);
    if (f->n_gguf > 0)
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "%s: a folder; give the GGUF file in it, such as %s", path,
                       ak_show(f->gguf, strlen(f->gguf), shown));
    if (f->has_manifest)
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "%s: a folder with manifest.json, which does not begin with the format "
                       "\"akunu-npy\"; %s",
                       path, accepted_formats);
    if (f->has_config)
        return ak_fail(error, AKUNU_ERROR_FORMAT,
                       "%s: a folder with config.json, but without SafeTensors; %s", path,
                       accepted_formats);
    return ak_fail(error, AKUNU_ERROR_FORMAT, "%s: a folder without a model in it; %s", path,
                   accepted_formats);
}

ak_status ak_provider_fail_unknown_format(const char *path, struct ak_error *error)
{
    char shown[AK_SHOW_BYTES];
    ak_show_path(path, shown);
    struct stat st;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        DIR *dir = opendir(path);
        if (!dir)
            return ak_fail(error, AKUNU_ERROR_FORMAT, "%s: a folder that cannot be read; %s", shown,
                           accepted_formats);
        struct folder folder = { 0 };
        for (struct dirent *entry; (entry = readdir(dir));)
            count_entry(entry->d_name, &folder);
        closedir(dir);
        return fail_folder(shown, &folder, error);
    }

    struct ak_file file;
    AK_TRY(ak_file_open(path, &file, error));
    ak_status status = fail_file(shown, &file, error);
    ak_file_close(&file);
    return status;
}
