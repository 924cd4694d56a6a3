/* Resolves model names: paths, names in the models folder, the only model there. */
#include "apps/common/load.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "apps/common/input.h"
#include "apps/common/message.h"
#include "apps/common/remote.h"

static const char quickstart_model[] = "SmolLM2-135M-Instruct.Q4_1.gguf";

const char *app_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

char *app_join_path(const char *folder, const char *name, const char *suffix)
{
    char *path = NULL;
    return asprintf(&path, "%s/%s%s", folder, name, suffix) < 0 ? NULL : path;
}

/* ${XDG_DATA_HOME:-~/.local/share}/akunu/models, to be freed; without HOME, this text. As the XDG
 * base directory specification says, a relative XDG_DATA_HOME is ignored. */
char *app_models_folder(void)
{
    const char *data = getenv("XDG_DATA_HOME");
    if (data && data[0] == '/')
        return app_join_path(data, "akunu/models", "");
    const char *home = getenv("HOME");
    return app_join_path(home && *home ? home : "~", ".local/share/akunu/models", "");
}

/* For messages about the models folder: what keeps it from being found. */
static const char *why_no_folder(const char *folder)
{
    return folder[0] == '~' ? " (HOME is not set)" : "";
}

/* Whether there is such an entry, if only a link that leads nowhere: opening it tells why. */
static bool is_entry(const char *path)
{
    struct stat info;
    return lstat(path, &info) == 0;
}

/* Whether an entry is a model: a GGUF file, of a split one the first part, or a folder with a
 * config.json. */
static bool is_model(const char *folder, const char *name)
{
    const char *of = strstr(name, "-of-");
    if (name[0] == '.')
        return false;
    if (app_ends_with(name, ".gguf"))
        return !of || of - name < 6 || strspn(of - 5, "0123456789") != 5 ||
               strncmp(of - 5, "00001", 5) == 0;
    char *config = app_join_path(folder, name, "/config.json");
    bool found = config && is_entry(config);
    free(config);
    return found;
}

static void each_in(const char *folder, void (*each)(const char *name, void *user), void *user)
{
    struct dirent **entries = NULL;
    int n = scandir(folder, &entries, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        if (is_model(folder, entries[i]->d_name))
            each(entries[i]->d_name, user);
        free(entries[i]);
    }
    free(entries);
}

int app_visit_models(void (*each)(const char *name, void *user), void *user)
{
    char *folder = app_models_folder();
    if (!folder)
        return app_fail_memory();
    each_in(folder, each, user);
    free(folder);
    return APP_EXIT_OK;
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
    char *fetched = app_join_path(folder, quickstart_model, "");
    if (!fetched)
        return app_fail_memory();
    if (is_entry(fetched)) {
        *path = fetched;
        return APP_EXIT_OK;
    }
    free(fetched);

    struct only only = { 0 };
    each_in(folder, count, &only);
    *path = only.n == 1 && only.name ? app_join_path(folder, only.name, "") : NULL;
    free(only.name);
    if (*path)
        return APP_EXIT_OK;
    if (only.n > 1)
        return app_fail_usage("which model? There are %zu in %s: name one with -m", only.n, folder);
    return app_fail_usage("no model: name a GGUF file with -m FILE (or AKUNU_MODEL), or "
                          "download one with -hf USER/REPO or ./quickstart into %s%s",
                          folder, why_no_folder(folder));
}

/* Models that a name means. */
struct matches {
    const char *folder, *name;
    size_t n;
    char *path;      /* of the first one */
    char names[256]; /* of those whose names have `name` in them, for a message */
};

static void match(const char *name, void *user)
{
    struct matches *m = user;
    size_t n = strlen(m->names);
    if (!strcasestr(name, m->name))
        return;
    if (m->n++ == 0)
        m->path = app_join_path(m->folder, name, "");
    if (n + strlen(name) + 3 < sizeof m->names) {
        strcat(m->names, n ? ", " : "");
        strcat(m->names, name);
    }
}

/* Looks for an entry of that name, with or without ".gguf", else for models with the name in
 * theirs, in any case. Free m->path, which is NULL if out of memory or if m->n is 0. */
static void look_up(const char *folder, const char *name, struct matches *m)
{
    static const char *const suffixes[] = { "", ".gguf" };
    *m = (struct matches){ .folder = folder, .name = name };
    for (size_t i = 0; i < 2; i++) {
        m->path = app_join_path(folder, name, suffixes[i]);
        if (!m->path || is_entry(m->path)) {
            m->n = 1;
            return;
        }
        free(m->path);
        m->path = NULL;
    }
    if (*name)
        each_in(folder, match, m);
}

static int find_named(const char *folder, const char *name, char **path)
{
    struct matches m;
    look_up(folder, name, &m);
    if (m.n == 1 && m.path) {
        *path = m.path;
        return APP_EXIT_OK;
    }
    free(m.path);
    if (m.n == 1)
        return app_fail_memory();
    if (m.n > 1)
        return app_fail_usage("-m %s: which one? %s has %s", name, folder, m.names);
    app_fail("-m %s: no such model here or in %s%s, and no preset of that name", name, folder,
             why_no_folder(folder));
    return APP_EXIT_MODEL;
}

bool app_is_model(const char *name)
{
    struct matches m = { .n = 0 };
    char *folder;
    if (strchr(name, '/') || is_entry(name) || app_ends_with(name, ".gguf"))
        return true;
    if ((folder = app_models_folder()) != NULL)
        look_up(folder, name, &m);
    free(m.path);
    free(folder);
    return m.n > 0;
}

int app_model_path(const struct app_options *o, const char *name, char **path)
{
    *path = NULL;
    if (name && app_is_remote(name))
        return app_remote_path(o, name, path);
    if (name && (strchr(name, '/') || is_entry(name))) {
        *path = strdup(name);
        return *path ? APP_EXIT_OK : app_fail_memory();
    }
    char *folder = app_models_folder();
    if (!folder)
        return app_fail_memory();
    int code = name ? find_named(folder, name, path) : find_default(folder, path);
    free(folder);
    return code;
}
