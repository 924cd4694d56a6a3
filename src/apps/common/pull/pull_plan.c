/* From a URL or the name of a repository to the files to download. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "apps/common/input.h"
#include "apps/common/message.h"
#include "apps/common/pull/pull.h"
#include "apps/common/remote.h"
#include "apps/common/load.h"

/* ---- Sources ------------------------------------------------------------ */
static char *decode_percent(const char *text, size_t n)
{
    int n_decoded = 0;
    char *copy = strndup(text, n),
         *decoded = copy ? curl_easy_unescape(NULL, copy, 0, &n_decoded) : NULL;
    char *result = decoded && strlen(decoded) == (size_t)n_decoded ? strdup(decoded) : NULL;
    curl_free(decoded);
    free(copy);
    return result;
}

/* Pages and files of the endpoint are those of a repository: HOST/USER/REPO and
 * HOST/USER/REPO/{resolve,blob}/REVISION/FILE. */
static bool read_endpoint_url(const struct app_http *http, const char *url, struct app_repo *repo)
{
    size_t n = strlen(http->endpoint);
    if (strncasecmp(url, http->endpoint, n) != 0 || url[n] != '/')
        return false;
    const char *part[6] = { url + n + 1 };
    size_t n_parts = 1, length = strcspn(part[0], "?#");
    while (length > 0 && part[0][length - 1] == '/')
        length--;
    const char *end = part[0] + length;
    for (const char *c = part[0]; c < end && n_parts < 5; c++)
        if (*c == '/')
            part[n_parts++] = c + 1;
    if (n_parts == 2 && part[1] < end) {
        repo->name = strndup(part[0], length);
        repo->revision = strdup("main");
        return repo->name && app_is_repo_name(repo->name);
    }
    if (n_parts < 5 || part[4] == end ||
        (strncmp(part[2], "resolve/", 8) != 0 && strncmp(part[2], "blob/", 5) != 0))
        return false;
    repo->name = strndup(part[0], (size_t)(part[2] - part[0]) - 1);
    repo->revision = decode_percent(part[3], (size_t)(part[4] - part[3]) - 1);
    repo->what = decode_percent(part[4], (size_t)(end - part[4]));
    return repo->what && repo->name && app_is_repo_name(repo->name);
}

static int finish_repo(const struct app_http *http, struct app_model_source *source)
{
    const struct app_repo *r = &source->repo;
    char *host = app_url_shown(http->endpoint); /* it may have a password */
    bool ok = host && r->name && r->revision &&
              asprintf(&source->key, "%s %s@%s:%s", host, r->name, r->revision,
                       r->what ? r->what : "") >= 0 &&
              asprintf(&source->shown, "%s%s%s", r->name, r->what ? ":" : "",
                       r->what ? r->what : "") >= 0;
    free(host);
    source->is_repo = true;
    return ok ? APP_EXIT_OK : app_fail_memory();
}

int app_model_source_parse(const struct app_http *http, const char *text,
                           struct app_model_source *source)
{
    char shown[APP_SHOWN_BYTES];
    *source = (struct app_model_source){ 0 };
    if (strncmp(text, "hf:", 3) == 0 || !app_is_remote(text)) {
        int code = app_repo_parse(text + (strncmp(text, "hf:", 3) == 0 ? 3 : 0), &source->repo);
        return code == APP_EXIT_OK ? finish_repo(http, source) : code;
    }
    if (read_endpoint_url(http, text, &source->repo))
        return finish_repo(http, source);
    app_repo_free(&source->repo);
    source->url = strdup(text);
    source->key = app_url_key(text);
    source->shown = app_url_shown(text);
    if (!source->key || !source->shown)
        return app_fail_usage("'%.*s' is not a URL", (int)strcspn(app_show_text(text, shown), "?@"),
                              shown);
    return APP_EXIT_OK;
}

void app_model_source_free(struct app_model_source *source)
{
    app_repo_free(&source->repo);
    free(source->url);
    free(source->key);
    free(source->shown);
    *source = (struct app_model_source){ 0 };
}

/* ---- Files -------------------------------------------------------------- */
static int add_file(struct app_pull_plan *plan, char *url, const char *name)
{
    struct app_remote_file *grown = realloc(plan->files, (plan->n_files + 1) * sizeof *grown);
    if (grown)
        plan->files = grown;
    if (!grown || !url) {
        free(url);
        return app_fail_memory();
    }
    plan->files[plan->n_files] =
        (struct app_remote_file){ .url = url, .name = strdup(name), .size = -1 };
    return plan->files[plan->n_files++].name ? APP_EXIT_OK : app_fail_memory();
}

/* The files of a URL: one, or all parts of a split file. `other`: the name to take if the URL has
 * none; NULL: there is none. */
static int plan_url(const char *url, const char *other, struct app_pull_plan *plan)
{
    unsigned count = 1;
    char *name = app_url_name(url), *shown = app_url_shown(url);
    int code = APP_EXIT_OK;
    if ((!name || !app_is_file_name(name)) && other) {
        free(name);
        name = strdup(other);
    }
    if (!name || !app_is_file_name(name))
        code = app_fail_usage("%s: its path does not end in the name of a file; -o NAME names it",
                              shown ? shown : "the URL");
    bool is_split =
        code == APP_EXIT_OK && app_ends_with(name, ".gguf") && app_split_number(name, &count) > 0;
    count = is_split ? count : 1;
    for (unsigned i = 1; code == APP_EXIT_OK && i <= count; i++) {
        char *part = app_split_name(name, i);
        char *part_url = count > 1 && part ? app_url_with_name(url, part) : strdup(url);
        code = part ? add_file(plan, part_url, part) : app_fail_memory();
        free(part);
    }
    free(shown);
    free(name);
    return code;
}

static int plan_repo(struct app_http *http, const struct app_repo *repo, struct app_pull_plan *plan)
{
    struct app_repo_files files;
    size_t n = 0;
    int code = app_repo_list(http, repo, &files);
    if (code == APP_EXIT_OK)
        code = app_repo_select(repo, &files, &n, &plan->is_folder);
    for (size_t i = 0; code == APP_EXIT_OK && i < n; i++) {
        const struct app_repo_file *f = &files.list[i];
        code = add_file(plan, app_repo_url(http, repo, f->path),
                        plan->is_folder ? f->path : app_base_name(f->path));
        if (code != APP_EXIT_OK)
            break;
        struct app_remote_file *file = &plan->files[i];
        file->size = f->size;
        memcpy(file->id, f->id, sizeof file->id);
        memcpy(file->sha256, f->sha256, sizeof file->sha256);
    }
    app_repo_files_free(&files);
    return code;
}

/* ---- Names -------------------------------------------------------------- */
static int replace(char **text, char *by)
{
    if (!by)
        return app_fail_memory();
    free(*text);
    *text = by;
    return APP_EXIT_OK;
}

/* -o for the files: with the ending of a GGUF file, and the numbers of parts. */
static int rename_files(struct app_pull_plan *plan, const char *name)
{
    bool is_gguf = app_ends_with(plan->files[0].name, ".gguf");
    size_t n_stem = strlen(name) - (app_ends_with(name, ".gguf") ? strlen(".gguf") : 0);
    for (size_t i = 0; i < plan->n_files; i++) {
        char *other = NULL;
        int n = plan->n_files == 1 ?
                    asprintf(&other, "%s%s", name,
                             is_gguf && !app_ends_with(name, ".gguf") ? ".gguf" : "") :
                    asprintf(&other, "%.*s-%05zu-of-%05zu.gguf", (int)n_stem, name, i + 1,
                             plan->n_files);
        int code = replace(&plan->files[i].name, n < 0 ? NULL : other);
        if (code != APP_EXIT_OK)
            return code;
    }
    return APP_EXIT_OK;
}

int app_pull_plan(struct app_http *http, const struct app_model_source *source, const char *name,
                  struct app_pull_plan *plan)
{
    char shown[APP_SHOWN_BYTES];
    *plan = (struct app_pull_plan){ 0 };
    if (name && !app_is_file_name(name))
        return app_fail_usage("-o %s: expected the name of a model in the models folder, without "
                              "a folder and a leading dot",
                              app_show_text(name, shown));
    int code =
        source->is_repo ? plan_repo(http, &source->repo, plan) : plan_url(source->url, name, plan);
    if (code == APP_EXIT_OK && name && !plan->is_folder)
        code = rename_files(plan, name);
    if (code != APP_EXIT_OK)
        return code;
    const char *own = plan->is_folder ? app_base_name(source->repo.name) : plan->files[0].name;
    plan->name = strdup(plan->is_folder && name ? name : own);
    return plan->name ? APP_EXIT_OK : app_fail_memory();
}

void app_pull_plan_free(struct app_pull_plan *plan)
{
    for (size_t i = 0; i < plan->n_files; i++) {
        free(plan->files[i].url);
        free(plan->files[i].name);
    }
    free(plan->files);
    free(plan->name);
    *plan = (struct app_pull_plan){ 0 };
}
