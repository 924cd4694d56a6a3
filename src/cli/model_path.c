/* Resolves model names: paths, names in the models folder, the only model there. */
#include "cli/load.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/message.h"

static const char quickstart_model[] = "SmolLM2-135M-Instruct.Q4_1.gguf";

/* FOLDER/NAME + SUFFIX, to be freed; NULL if out of memory. */
static char *join(const char *folder, const char *name, const char *suffix)
{
    char *path = NULL;
    return asprintf(&path, "%s/%s%s", folder, name, suffix) < 0 ? NULL : path;
}

/* ${XDG_DATA_HOME:-~/.local/share}/akunu/models, to be freed. As the XDG base directory
 * specification says, a relative XDG_DATA_HOME is ignored. */
static char *models_folder(void)
{
    const char *data = getenv("XDG_DATA_HOME");
    if (data && data[0] == '/')
        return join(data, "akunu/models", "");
    const char *home = getenv("HOME");
    return join(home ? home : "", ".local/share/akunu/models", "");
}

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), n_end = strlen(end);
    return n > n_end && strcmp(text + n - n_end, end) == 0;
}

static void each_in(const char *folder, void (*each)(const char *name, void *user), void *user)
{
    DIR *dir = opendir(folder);
    for (struct dirent *entry; dir && (entry = readdir(dir)) != NULL;)
        if (ends_with(entry->d_name, ".gguf"))
            each(entry->d_name, user);
    if (dir)
        closedir(dir);
}

int cli_visit_models(void (*each)(const char *name, void *user), void *user)
{
    char *folder = models_folder();
    if (!folder)
        return cli_fail_memory();
    each_in(folder, each, user);
    free(folder);
    return CLI_EXIT_OK;
}

struct only {
    size_t n;
    char *name; /* name of one of them */
};

static void count(const char *name, void *user)
{
    struct only *only = user;
    only->n++;
    free(only->name);
    only->name = strdup(name);
}

static int find_default(const char *folder, char **path)
{
    char *fetched = join(folder, quickstart_model, "");
    if (!fetched)
        return cli_fail_memory();
    if (exists(fetched)) {
        *path = fetched;
        return CLI_EXIT_OK;
    }
    free(fetched);

    struct only only = { 0 };
    each_in(folder, count, &only);
    *path = only.n == 1 && only.name ? join(folder, only.name, "") : NULL;
    free(only.name);
    if (*path)
        return CLI_EXIT_OK;
    if (only.n > 1)
        return cli_fail_usage("which model? There are %zu in %s: name one with -m", only.n, folder);
    return cli_fail_usage("no model: name a GGUF file with -m FILE (or AKUNU_MODEL), or let "
                          "./quickstart fetch one into %s",
                          folder);
}

static int find_named(const char *folder, const char *name, char **path)
{
    static const char *const suffixes[] = { "", ".gguf" };
    for (size_t i = 0; i < 2; i++) {
        *path = join(folder, name, suffixes[i]);
        if (!*path)
            return cli_fail_memory();
        if (exists(*path))
            return CLI_EXIT_OK;
        free(*path);
        *path = NULL;
    }
    cli_fail("-m %s: no such model here or in %s, and no preset of that name", name, folder);
    return CLI_EXIT_MODEL;
}

int cli_model_path(const char *name, char **path)
{
    *path = NULL;
    if (name && (strchr(name, '/') || exists(name))) {
        *path = strdup(name);
        return *path ? CLI_EXIT_OK : cli_fail_memory();
    }
    char *folder = models_folder();
    if (!folder)
        return cli_fail_memory();
    int code = name ? find_named(folder, name, path) : find_default(folder, path);
    free(folder);
    return code;
}
