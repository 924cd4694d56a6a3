/* pull: downloads models into the models folder; -m URL and -hf do so at their first use. */
#include "apps/common/pull/pull.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apps/common/load.h"
#include "apps/common/message.h"
#include "apps/common/output.h"
#include "apps/common/remote.h"

struct pull {
    struct app_http http;
    struct app_model_source source;
    struct app_pull_plan plan;
    char *models;  /* the models folder */
    char *path;    /* where the model goes */
    char *staging; /* of a folder: where its files are until all are there */
    json_t *record;
    bool is_new; /* no file was there */
    size_t n_fetched;
    int64_t bytes_fetched;
    struct app_transfer_progress progress;
};

/* ---- Paths -------------------------------------------------------------- */
/* Makes the folders that lead to `path`, which is not made. */
static int make_folders(const char *path)
{
    char *copy = strdup(path);
    if (!copy)
        return app_fail_memory();
    int code = APP_EXIT_OK;
    for (char *slash = strchr(copy + 1, '/'); code == APP_EXIT_OK && slash;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(copy, 0777) != 0 && errno != EEXIST)
            code = app_fail("%s: %s", copy, strerror(errno));
        *slash = '/';
    }
    free(copy);
    return code;
}

static bool is_entry(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

static bool has_size(const char *path, int64_t size)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == size;
}

/* Where a file goes when it is whole: into a new folder's staging folder, else to its place. */
static char *target_of(const struct pull *p, const struct app_remote_file *file)
{
    if (p->plan.is_folder)
        return app_join_path(p->is_new ? p->staging : p->path, file->name, "");
    return app_join_path(p->models, file->name, "");
}

/* ---- Which files are there ---------------------------------------------- */
/* Whether the file is there in the version that the network has. */
static int is_current(struct pull *p, struct app_remote_file *file, const char *target,
                      bool *current)
{
    char *key = app_url_key(file->url);
    const json_t *known = key ? app_pulled_file(p->record, key) : NULL;
    int64_t size = json_integer_value(json_object_get(known, "size"));
    const char *id = json_string_value(json_object_get(known, "id"));
    int code = APP_EXIT_OK;
    *current = false;
    if (known && has_size(target, size)) {
        struct app_http_reply r = { .first = -1 };
        if (!file->id[0]) /* not of a list */
            code = app_transfer_probe(&p->http, file, &r);
        app_http_reply_free(&r);
        *current = code == APP_EXIT_OK && id && *id && strcmp(id, file->id) == 0 &&
                   (file->size < 0 || file->size == size);
        if (*current)
            file->size = size;
    }
    free(key);
    return code;
}

static int fail_exists(const char *path, const char *shown)
{
    return app_fail("%s exists, and is not from %s; 'akunu-cli pull … -o NAME' downloads it under "
                    "another name",
                    path, shown);
}

/* A file of that name that came from elsewhere, or by hand, stays. */
static int check_place(struct pull *p)
{
    bool is_ours = false;
    for (size_t i = 0; !is_ours && i < p->plan.n_files; i++) {
        char *key = app_url_key(p->plan.files[i].url);
        is_ours = key && app_pulled_file(p->record, key);
        free(key);
    }
    p->is_new = !is_entry(p->path);
    if (p->is_new || is_ours)
        return APP_EXIT_OK;
    return fail_exists(p->path, p->source.shown);
}

/* ---- Downloading -------------------------------------------------------- */
/* Path of the part file, to be freed. */
static char *part_path(const struct pull *p, const struct app_remote_file *file)
{
    char *path;
    if (p->plan.is_folder)
        return app_join_path(p->staging, file->name, ".part");
    return asprintf(&path, "%s/.pull/%s.part", p->models, file->name) < 0 ? NULL : path;
}

static void note_file(struct pull *p, const struct app_remote_file *file, const char *key)
{
    p->n_fetched++;
    p->bytes_fetched += file->size;
    app_pulled_add_file(p->record, file, key);
    if (!app_pulled_write(p->models, p->plan.name, p->record))
        app_warn("%s: no record of where it came from can be written: %s", p->plan.name,
                 strerror(errno));
}

static int64_t total_size(const struct app_pull_plan *plan)
{
    int64_t total = 0;
    for (size_t i = 0; i < plan->n_files; i++) {
        if (plan->files[i].size < 0 || plan->files[i].size > INT64_MAX - total)
            return -1;
        total += plan->files[i].size;
    }
    return total;
}

static int fetch_file(struct pull *p, struct app_remote_file *file, const char *target)
{
    char *key = app_url_key(file->url), *shown = app_url_shown(file->url),
         *part = part_path(p, file);
    int code = key && shown && part ? make_folders(part) : app_fail_memory();
    if (code == APP_EXIT_OK)
        code = make_folders(target);
    if (code == APP_EXIT_OK) {
        app_progress_clear(&p->progress.bar);
        if (file->size >= 0)
            app_aside("downloading %s (%.1f MB)", shown, (double)file->size / 1e6);
        else
            app_aside("downloading %s", shown);
        if (total_size(&p->plan) < 0) { /* progress of each file for itself */
            p->progress.before = 0;
            p->progress.total = -1;
        }
        code = app_transfer(&p->http, file, part, target, &p->progress);
    }
    if (code == APP_EXIT_OK)
        note_file(p, file, key);
    free(part);
    free(shown);
    free(key);
    return code;
}

static int fetch_unless_current(struct pull *p, struct app_remote_file *file)
{
    bool current = false;
    char *target = target_of(p, file);
    int code = target ? is_current(p, file, target, &current) : app_fail_memory();
    if (code == APP_EXIT_OK && !current && is_entry(target) &&
        !app_pulled_name(p->record, file->name))
        code = fail_exists(target, p->source.shown);
    if (code == APP_EXIT_OK && !current)
        code = fetch_file(p, file, target);
    if (code == APP_EXIT_OK)
        p->progress.before += file->size;
    free(target);
    return code;
}

/* Downloads what is missing. The first part of a split file comes last: with it the model is one.
 */
static int fetch_all(struct pull *p)
{
    int code = APP_EXIT_OK;
    p->progress = (struct app_transfer_progress){ .bar = app_progress_begin(),
                                                  .total = total_size(&p->plan) };
    for (size_t i = p->plan.n_files; code == APP_EXIT_OK && i-- > 0;)
        code = fetch_unless_current(p, &p->plan.files[i]);
    app_progress_end(&p->progress.bar);
    if (code != APP_EXIT_OK)
        return code;
    if (p->plan.is_folder && p->is_new && rename(p->staging, p->path) != 0)
        return app_fail("%s: %s", p->path, strerror(errno));
    if (p->plan.is_folder && !p->is_new)
        (void)rmdir(p->staging);
    app_pulled_add_source(p->record, p->source.key);
    (void)app_pulled_write(p->models, p->plan.name, p->record);
    if (p->n_fetched > 0)
        app_aside("%s: %.1f MB in %.1f s", p->plan.name, (double)p->bytes_fetched / 1e6,
                  app_seconds() - p->progress.bar.started);
    else
        app_aside("%s: up to date", p->plan.name);
    return APP_EXIT_OK;
}

/* Downloads the model into the models folder, under `name` or a name of its own. */
static int pull_model(struct pull *p, const char *name)
{
    int code = app_pull_plan(&p->http, &p->source, name, &p->plan);
    if (code != APP_EXIT_OK)
        return code;
    p->path = app_join_path(p->models, p->plan.name, "");
    if (!p->path || asprintf(&p->staging, "%s/.pull/%s.folder", p->models, p->plan.name) < 0) {
        p->staging = NULL;
        return app_fail_memory();
    }
    p->record = app_pulled_read(p->models, p->plan.name);
    if (!p->record)
        p->record = app_pulled_new(p->plan.is_folder);
    if (!p->record)
        return app_fail_memory();
    code = check_place(p);
    return code == APP_EXIT_OK ? fetch_all(p) : code;
}

/* ---- Commands ----------------------------------------------------------- */
static int begin_pull(const struct app_options *o, const char *text, struct pull *p)
{
    *p = (struct pull){ 0 };
    p->models = app_models_folder();
    if (!p->models)
        return app_fail_memory();
    int code = app_http_open(o, &p->http);
    if (code == APP_EXIT_OK)
        code = app_model_source_parse(&p->http, text, &p->source);
    return code;
}

static void end_pull(struct pull *p)
{
    json_decref(p->record);
    app_pull_plan_free(&p->plan);
    app_model_source_free(&p->source);
    app_http_close(&p->http);
    free(p->models);
    free(p->staging);
    free(p->path);
}

int cli_pull(const struct app_options *o)
{
    struct app_output out = app_output_stdout();
    struct pull p = { 0 };
    if (!o->download.url)
        return app_fail_usage("nothing to download is named: akunu-cli pull USER/REPO:TYPE, or a "
                              "URL");
    int code = begin_pull(o, o->download.url, &p);
    if (code == APP_EXIT_OK)
        code = pull_model(&p, o->output.path);
    if (code == APP_EXIT_OK)
        app_output_format(&out, "%s\n", p.path);
    end_pull(&p);
    return app_output_end(&out, code);
}

int app_remote_path(const struct app_options *o, const char *name, char **path)
{
    struct pull p;
    char *found = NULL;
    *path = NULL;
    int code = begin_pull(o, name, &p);
    if (code == APP_EXIT_OK)
        found = app_pulled_find(p.models, p.source.key);
    if (found) {
        *path = app_join_path(p.models, found, "");
    } else if (code == APP_EXIT_OK && o->download.offline) {
        app_fail("%s: not in %s, and --offline downloads nothing", p.source.shown, p.models);
        code = APP_EXIT_MODEL;
    } else if (code == APP_EXIT_OK) {
        code = pull_model(&p, NULL);
        *path = code == APP_EXIT_OK ? strdup(p.path) : NULL;
    }
    if (code == APP_EXIT_OK && !*path)
        code = app_fail_memory();
    free(found);
    end_pull(&p);
    return code;
}

const char *app_remote_version(void)
{
    return curl_version_info(CURLVERSION_NOW)->version;
}
