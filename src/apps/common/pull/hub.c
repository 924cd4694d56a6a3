/* Repositories: their names and the lists of their files. */
#include "apps/common/pull/hub.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "apps/common/message.h"

enum { MAX_LIST_BYTES = 16 << 20, MAX_PAGES = 64, MAX_FILES = 100000, MAX_REPO = 200 };

/* ---- Names -------------------------------------------------------------- */
bool app_is_repo_name(const char *name)
{
    const char *slash = strchr(name, '/');
    size_t n = strlen(name);
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    return n <= MAX_REPO && slash && slash > name && slash[1] && name[0] != '.' &&
           slash[1] != '.' && strspn(name, allowed) == (size_t)(slash - name) &&
           strspn(slash + 1, allowed) == strlen(slash + 1);
}

static bool is_revision(const char *text)
{
    for (const char *c = text; *c; c++)
        if ((unsigned char)*c <= 0x20 || *c == 0x7f)
            return false;
    return *text && !strstr(text, "..");
}

int app_repo_parse(const char *text, struct app_repo *repo)
{
    char shown[APP_SHOWN_BYTES];
    *repo = (struct app_repo){ 0 };
    static const char *const hosts[] = { "hf.co/", "huggingface.co/" }; /* ollama's names */
    const char *from = text;
    for (size_t i = 0; i < 2; i++)
        if (strncmp(from, hosts[i], strlen(hosts[i])) == 0)
            from += strlen(hosts[i]);
    repo->name = strndup(from, strcspn(from, "@:"));
    for (from += strcspn(from, "@:"); *from; from += strcspn(from, "@:")) {
        char **member = *from++ == '@' ? &repo->revision : &repo->what;
        if (*member)
            break;
        *member = strndup(from, strcspn(from, "@:"));
    }
    if (!repo->revision)
        repo->revision = strdup("main");
    if (!repo->name || !repo->revision)
        return app_fail_memory();
    if (!*from && app_is_repo_name(repo->name) && is_revision(repo->revision) &&
        (!repo->what || *repo->what))
        return APP_EXIT_OK;
    return app_fail_usage("'%s' is not a repository: expected USER/REPO, USER/REPO:TYPE, "
                          "USER/REPO:FILE or USER/REPO@REVISION",
                          app_show_text(text, shown));
}

void app_repo_free(struct app_repo *repo)
{
    free(repo->name);
    free(repo->revision);
    free(repo->what);
    *repo = (struct app_repo){ 0 };
}

/* `text` with every slash encoded, too. */
static char *encode_part(const char *text)
{
    char *plain = app_url_encode_path(text), *out = plain ? malloc(3 * strlen(plain) + 1) : NULL;
    char *to = out;
    for (const char *c = plain; out && *c; c++) {
        if (*c == '/') {
            memcpy(to, "%2F", 3);
            to += 3;
        } else {
            *to++ = *c;
        }
    }
    if (out)
        *to = '\0';
    free(plain);
    return out;
}

char *app_repo_url(const struct app_http *http, const struct app_repo *repo, const char *path)
{
    char *url = NULL, *revision = encode_part(repo->revision), *encoded = app_url_encode_path(path);
    if (revision && encoded &&
        asprintf(&url, "%s/%s/resolve/%s/%s", http->endpoint, repo->name, revision, encoded) < 0)
        url = NULL;
    free(revision);
    free(encoded);
    return url;
}

/* ---- Lists -------------------------------------------------------------- */
/* A path without "..", without empty and hidden parts, whose last part may be a file's name. */
static bool is_path(const char *path)
{
    const char *slash = strrchr(path, '/');
    for (const char *c = path; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            return false;
    return app_is_file_name(slash ? slash + 1 : path) && path[0] != '/' && !strstr(path, "//") &&
           !strstr(path, "../");
}

static bool is_sha256(const char *text)
{
    return text && strlen(text) == 64 && strspn(text, "0123456789abcdef") == 64;
}

static int add_file(struct app_repo_files *files, const json_t *entry)
{
    const char *type = json_string_value(json_object_get(entry, "type"));
    const char *path = json_string_value(json_object_get(entry, "path"));
    const char *oid = json_string_value(json_object_get(entry, "oid"));
    const json_t *lfs = json_object_get(entry, "lfs"), *size = json_object_get(entry, "size");
    const char *sha256 = json_string_value(json_object_get(lfs, "oid"));
    if (json_is_integer(json_object_get(lfs, "size")))
        size = json_object_get(lfs, "size");
    if (!type || strcmp(type, "file") != 0 || !path || !is_path(path))
        return APP_EXIT_OK;
    struct app_repo_file *grown =
        files->n < MAX_FILES ? realloc(files->list, (files->n + 1) * sizeof *grown) : NULL;
    if (!grown)
        return app_fail_memory();
    files->list = grown;
    struct app_repo_file *f = &files->list[files->n];
    *f = (struct app_repo_file){ .path = strdup(path), .size = -1 };
    if (!f->path)
        return app_fail_memory();
    files->n++;
    if (json_is_integer(size) && json_integer_value(size) >= 0)
        f->size = json_integer_value(size);
    if (is_sha256(sha256))
        memcpy(f->sha256, sha256, sizeof f->sha256);
    snprintf(f->id, sizeof f->id, "%s", f->sha256[0] ? f->sha256 : oid ? oid : "");
    return APP_EXIT_OK;
}

static int add_page(const struct app_http_reply *r, const char *url, struct app_repo_files *files)
{
    json_t *list = json_loadb(r->body ? r->body : "", r->n_body, 0, NULL);
    int code = APP_EXIT_OK;
    if (!json_is_array(list)) {
        char *shown = app_url_shown(url);
        code = app_fail("%s: expected a list of files in JSON, and the server sends something else",
                        shown ? shown : "the list of files");
        free(shown);
    }
    for (size_t i = 0; code == APP_EXIT_OK && i < json_array_size(list); i++)
        code = add_file(files, json_array_get(list, i));
    json_decref(list);
    return code;
}

static int compare_paths(const void *a, const void *b)
{
    const struct app_repo_file *x = a, *y = b;
    return strcmp(x->path, y->path);
}

static char *list_url(const struct app_http *http, const struct app_repo *repo)
{
    char *url = NULL, *revision = encode_part(repo->revision);
    if (revision && asprintf(&url, "%s/api/models/%s/tree/%s?recursive=true", http->endpoint,
                             repo->name, revision) < 0)
        url = NULL;
    free(revision);
    return url;
}

static int fail_list(const struct app_http *http, const struct app_repo *repo,
                     const struct app_http_reply *r)
{
    char why[APP_HTTP_WHY_BYTES], shown[APP_SHOWN_BYTES];
    bool is_revision_named = r->result == CURLE_OK && r->status == 404;
    if (is_revision_named)
        app_fail("%s: there is no such repository, or it has no revision '%s'", repo->name,
                 app_show_text(repo->revision, shown));
    else
        app_fail("%s: %s", repo->name, app_http_why(http, r, why));
    return r->result == CURLE_OK && r->status < 429 ? APP_EXIT_MODEL : APP_EXIT_FAILURE;
}

int app_repo_list(struct app_http *http, const struct app_repo *repo, struct app_repo_files *files)
{
    *files = (struct app_repo_files){ 0 };
    char *url = list_url(http, repo);
    int code = url ? APP_EXIT_OK : app_fail_memory();
    for (int n = 0; code == APP_EXIT_OK && url && n < MAX_PAGES; n++) {
        struct app_http_reply r;
        char *next = NULL;
        code = app_http_get(http, url, NULL, MAX_LIST_BYTES, &r);
        if (code == APP_EXIT_OK)
            code = app_http_is_good(&r) ? add_page(&r, url, files) : fail_list(http, repo, &r);
        if (code == APP_EXIT_OK && *r.next && app_url_is_same_origin(r.next, http->endpoint) &&
            !(next = strdup(r.next)))
            code = app_fail_memory();
        app_http_reply_free(&r);
        free(url);
        url = next;
    }
    free(url);
    if (files->n > 0)
        qsort(files->list, files->n, sizeof *files->list, compare_paths);
    return code;
}

void app_repo_files_free(struct app_repo_files *files)
{
    for (size_t i = 0; i < files->n; i++)
        free(files->list[i].path);
    free(files->list);
    *files = (struct app_repo_files){ 0 };
}
