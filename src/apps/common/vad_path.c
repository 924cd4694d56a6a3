/* Finds and loads the weights of Silero VAD. They are data beside the programs: the library takes a
 * path. */
#include "apps/common/load.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/common/input.h"

enum { PATH_BYTES = 4096 };
static const char file_name[] = "vad/silero-v6.2.0.bin";

static bool is_file(const char *path)
{
    return access(path, F_OK) == 0;
}

/* FOLDER/MIDDLE/NAME, to be freed, if there is such a file; else NULL. */
static char *find_file(const char *folder, const char *middle, const char *name)
{
    char path[PATH_BYTES];
    int n = snprintf(path, sizeof path, "%s/%s%s", folder, middle, name);
    return n > 0 && n < PATH_BYTES && is_file(path) ? strdup(path) : NULL;
}

/* The folder of a path, "." for a bare name; false: too long. */
static bool folder_of(const char *path, char out[PATH_BYTES])
{
    const char *slash = strrchr(path, '/');
    int n = slash ? snprintf(out, PATH_BYTES, "%.*s", (int)(slash - path), path) :
                    snprintf(out, PATH_BYTES, ".");
    return n >= 0 && n < PATH_BYTES;
}

/* The build folder has data/, an installed program share/akunu beside its bin. */
static char *find_installed(void)
{
    char program[PATH_BYTES], folder[PATH_BYTES], *found = NULL;
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    program[n > 0 ? n : 0] = '\0';
    if (n > 0 && folder_of(program, folder)) {
        found = find_file(folder, "data/", file_name);
        if (!found)
            found = find_file(folder, "../share/akunu/", file_name);
    }
    return found ? found : find_file(APP_DATA_DIR, "", file_name);
}

/* Names of whisper.cpp and ours. */
static int is_silero(const struct dirent *entry)
{
    const char *name = entry->d_name;
    if (strncmp(name, "ggml-", 5) == 0)
        name += 5;
    return strncmp(name, "silero", 6) == 0 && app_ends_with(name, ".bin");
}

/* The last by name, which is the newest. */
static char *find_in(const char *folder)
{
    struct dirent **entries = NULL;
    int n = scandir(folder, &entries, is_silero, versionsort);
    char *found = n > 0 ? find_file(folder, "", entries[n - 1]->d_name) : NULL;
    for (int i = 0; i < n; i++)
        free(entries[i]);
    free(entries);
    return found;
}

static char *find_default(const char *model_path, const char *models)
{
    char folder[PATH_BYTES], *found = find_installed();
    if (!found && folder_of(model_path, folder))
        found = find_in(folder);
    return found ? found : find_in(models);
}

static char *find_path(const char *name, const char *model_path, const char *models)
{
    if (!name)
        return find_default(model_path, models);
    char *path = strchr(name, '/') || is_file(name) ? NULL : find_file(models, "", name);
    return path ? path : strdup(name);
}

int app_load_vad(const struct app_options *o, const char *model_path, bool is_required,
                 struct akunu_vad **out)
{
    char *models = app_models_folder();
    if (!models)
        return app_fail_memory();
    char *path = find_path(o->speech.vad_model, model_path, models);
    *out = path ? akunu_vad_load(path) : NULL;
    int code = *out || !is_required ? APP_EXIT_OK : APP_EXIT_MODEL;
    if (path && !*out && is_required)
        code = app_fail_library();
    else if (path && !*out)
        app_warn("%s; --vad has no weights", akunu_last_error());
    else if (!path && is_required)
        app_fail("--vad: no weights of Silero VAD in %s, beside the model or in %s: name a file "
                 "with --vad-model",
                 APP_DATA_DIR, models);
    free(path);
    free(models);
    return code;
}
